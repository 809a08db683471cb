//! The end near the internet: takes requests and tunnels off carriers, answers them from origins, and fetches what
//! pages will need before anyone asks. [`run`] is `farhop ground`; [`Ground`] is the same without a socket of its own,
//! for `farhop local` and tests. Sockets, clocks and policy of the layers below stay there.

mod accompanied;
mod ahead;
mod allowance;
mod bases;
mod body;
mod bundle;
mod carrier;
mod components;
mod delivery;
mod dictated;
mod dictionaries;
mod error;
mod exchange;
mod explain;
mod failure;
mod ground;
mod head;
mod imaging;
mod kin;
mod manifest;
mod mirror;
mod mirrors;
mod models;
mod named;
mod names;
mod order;
mod origins;
mod overtaken;
mod owner;
mod page;
mod passing;
mod plan;
mod policies;
mod prefix;
mod reading;
mod recent;
mod redirected;
mod returning;
mod server;
mod shape;
mod spool;
mod stock;
mod streaming;
mod tally;
mod treatment;
mod tunnel;
mod upload;
mod validation;
mod variant;
mod websocket;
#[cfg(test)]
mod written;

pub use error::GroundError;
pub use explain::{Explained, Explanation, Follows, Learned};
pub use ground::Ground;
pub use models::ModelsError;
pub use names::Speaker;
pub use plan::path_plan;
pub use server::{Rights, commands, run, take_over};
