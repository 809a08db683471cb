//! `farhop lab compare` and `farhop demo`: pages loaded through each variant over the emulated link, judged and summed up.
//!
//! Assembly of the lab: the testbed gives namespaces and link, the workload origins and browser, the report types and their
//! looks. Farhop itself runs as its own two processes and is asked over its control socket; nothing here knows its inside.

mod alternate;
mod bench;
mod books;
mod browsing;
mod check;
mod cli;
mod compare;
mod demo;
mod end_settings;
mod ends;
mod error;
mod falls;
mod further;
mod interception;
mod interrupt;
mod keep;
mod limit;
mod link;
mod load;
mod origins;
mod peers;
mod restart;
mod scene;
mod settle;
mod site;
mod stand;
mod summary;
mod variant;
mod visits;

pub use alternate::{Alternated, Alternation};
pub use browsing::{Browsed, Browsing, Wanted};
pub use cli::{CompareArguments, DemoArguments, OriginsArguments, compare, demo, origins};
pub use compare::{Experiment, Loaded, Plan, Progress, Watch};
pub use demo::{Demo, demonstrate};
pub use end_settings::Tuning;
pub use ends::{Counters, Ends, Keys, Stage, resident};
pub use error::CompareError;
pub use interception::Interception;
pub use interrupt::Interrupt;
pub use link::links;
pub use peers::split::{Peers, RunningPeer, Splitter};
pub use peers::{Peer, Standing};
pub use restart::{Restarted, restart_mid_page};
pub use scene::{Besides, Scene, last_words, spawn};
pub use settle::fast_opened;
pub use site::{HostDelay, SiteArgument};
pub use stand::Stand;
pub use variant::Variant;
pub use visits::{Visit, Visits, Who, delta};
