//! The control socket of an end: JSON lines.
