//! Loads pages through each variant, interleaved, and reports what differs.
