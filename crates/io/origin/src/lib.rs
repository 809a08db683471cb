//! HTTP client towards origins, with resolution and address guard.
