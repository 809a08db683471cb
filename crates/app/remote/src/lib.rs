//! The end beside the users.
