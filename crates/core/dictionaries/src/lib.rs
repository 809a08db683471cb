//! Dictionaries: bytes that make bodies of one origin smaller. What is trained on which bodies and when ([`School`]), and whether a
//! remote is to have it ([`Accounts`]).
//!
//! Pure: bodies and sizes in, decisions out. Training and coding are `farhop-squeeze`'s.

mod accounts;
mod school;

pub use accounts::Accounts;
pub use school::{Dictionary, Lesson, School};
