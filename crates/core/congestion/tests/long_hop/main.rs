//! The controllers over the satellite model, in virtual time: repeatable to the last digit.

mod jitter;
mod paced;
mod simulation;
mod slow;
mod targets;
