//! The link manager (BACOPT, Davern, Nashid Islam, Sreenan, 2012, §4): keeps the classes of a device in force, admits calls to
//! what is set aside for them, and tells others what happens. It judges nothing itself: `core/diffserv` does; and it makes no
//! rule itself: `io/netdev` does.

mod arguments;
mod config;
mod device;
mod early;
mod follow;
mod granted;
mod hours;
mod manager;
mod rest;
mod run;
mod shaping;
mod sip;
mod state;
mod told;

pub use arguments::{NewCall, call_id, media};
pub use config::{CallTerms, Config, FollowTerms, GrantTerms, Hour, RateSource, SipTerms, Window};
pub use device::{Device, Echo, Linux, time_of_day};
pub use hours::hours;
pub use manager::{LinkError, Manager};
pub use run::run;
pub use shaping::{Left, Shaped, in_kernel, plan};
pub use state::StateError;
pub use told::{CallTold, HoursTold, LossTold, Status};
