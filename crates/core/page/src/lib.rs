//! Finds what an HTML page will need while its bytes stream by.
