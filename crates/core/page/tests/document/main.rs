//! A page as a whole: its HTML, stylesheets and scripts together.

#![allow(clippy::unwrap_used)] // helpers of tests

mod bounds;
mod encodings;
mod frames;
mod lazy;
mod loading;
mod markup;
mod pieces;
mod policies;
mod scripts;
mod shadow;
mod sheets;
