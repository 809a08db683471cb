//! The controllers over the satellite model, in virtual time: repeatable to the last digit.

mod changing;
mod demand;
mod jitter;
mod paced;
mod policed;
mod simulation;
mod slow;
mod targets;
