//! Congestion controllers in virtual time.
