//! The device that is shaped, as the manager sees it: the kernel's, or a test's.

use std::net::SocketAddr;

use farhop_netdev::{Applied, Error, Shaping};

/// What can be done with a device. Calls block for as long as a tool runs.
pub trait Device: Send + Sync + 'static {
    /// Puts a shaping into force.
    ///
    /// # Errors
    /// As [`Shaping::apply`].
    fn apply(&self, shaping: &Shaping) -> Result<Applied, Error>;

    /// Names the media that go first.
    ///
    /// # Errors
    /// As [`farhop_netdev::set_media`].
    fn set_media(&self, interface: &str, media: &[SocketAddr]) -> Result<(), Error>;

    /// Whether the device is there.
    fn is_there(&self, interface: &str) -> bool;

    /// Whether all that is ours stands there.
    ///
    /// # Errors
    /// As [`farhop_netdev::shaped`].
    fn stands(&self, interface: &str) -> Result<bool, Error>;
}

/// The kernel that this process runs on.
#[derive(Debug, Clone, Copy)]
pub struct Linux;

impl Device for Linux {
    fn apply(&self, shaping: &Shaping) -> Result<Applied, Error> {
        shaping.apply()
    }

    fn set_media(&self, interface: &str, media: &[SocketAddr]) -> Result<(), Error> {
        farhop_netdev::set_media(interface, media)
    }

    fn is_there(&self, interface: &str) -> bool {
        farhop_netdev::has_interface(interface)
    }

    fn stands(&self, interface: &str) -> Result<bool, Error> {
        Ok(farhop_netdev::shaped(interface)?.is_some_and(|shaped| shaped.has_rules))
    }
}
