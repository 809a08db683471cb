//! Page models: what follows a document, as earlier visits have shown, so that the next visit can begin with it before
//! the document is there. Learned from requests alone; no script is run, and no body is looked into.
//!
//! Each visit teaches up to four models: the user's own and everyone's, of this page and of pages like it (their
//! *template*, [`template`]). A user's own serves that user alone and is never written down. Everyone's holds only
//! scripts, styles, images and fonts, and gives out and writes down only what three users have shown (DESIGN.md, "No
//! user learns of another").
//!
//! Pure: the time comes in, what is kept is bounded in bytes, and the same visits in the same order make the same models.

mod foresight;
mod history;
mod model;
mod models;
mod needs;
mod pattern;
mod saved;
mod told;
mod visit;

pub use foresight::{Foreseen, Means};
pub use model::LONGEST_URL;
pub use models::{Limits, Models};
pub use needs::Needs;
pub use pattern::template;
pub use saved::{SavedError, fuzz};
pub use told::{ToldModel, ToldResource};
pub use visit::{Asked, Policies, User, Visit};
