//! Settings of both ends and of the link manager: one TOML file each, one definition per setting.
//!
//! A setting is declared once, in [`remote`], [`transparent`], [`ground`], [`link_manager`], [`rule`] or [`common`], with its type, default, range
//! and documentation. From that one place come the typed structs that the ends are built from, `--set`,
//! the sample files and `docs/config.md`. This crate reads files and nothing else: it opens no socket and
//! knows nothing of keys or HTTP, so key lines pass through it as text.

mod change;
mod choices;
pub mod common;
mod end;
mod error;
mod generate;
pub mod ground;
mod kinds;
pub mod link_manager;
mod load;
pub mod local;
mod nearest;
mod raw;
pub mod remote;
pub mod rule;
mod section;
mod setting;
mod source;
pub mod transparent;
pub mod udp;

pub use change::{Change, changes};
pub use choices::{CarrierKind, Direction, LogLevel, Role, Spreading};
pub use common::CarrierCeilingSettings;
pub use end::{End, end_of};
pub use error::{Place, SettingsError};
pub use generate::{reference, sample};
pub use ground::GroundSettings;
pub use kinds::{Cidr, HostPort, Hours, PeerName, Percent, PortRange, RuleName, TargetField, UserWeight};
pub use link_manager::LinkManagerSettings;
#[doc(hidden)]
pub use load::fuzz_settings;
pub use load::{Checked, is_given, load, parse};
pub use local::LocalSettings;
pub use raw::Raw;
pub use remote::RemoteSettings;
pub use section::{Definition, Described, Section};
pub use setting::Setting;
