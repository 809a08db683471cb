//! Where each end holds responses.
