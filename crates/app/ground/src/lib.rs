//! The end near the internet.
