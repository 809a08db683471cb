//! Where Farhop's two ends stand in the testbed, and where they are reached there. Pure.

use std::net::{Ipv4Addr, SocketAddr};

use farhop_testbed::{Addresses, Place};

/// Port of the proxy, and of ground.
pub(crate) const PROXY_PORT: u16 = 3128;
const CARRIER_PORT: u16 = 4433;

/// Where the two ends are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Stand {
    /// One at each end of the link, which their carrier crosses.
    #[default]
    Both,
    /// Both at the terminal: what crosses the link are ground's connections to origins.
    Terminal,
    /// Both at the gateway: what crosses the link are clients' connections to the remote.
    Gateway,
}

impl Stand {
    /// Where remote and ground run.
    pub(crate) fn places(self) -> [Place; 2] {
        match self {
            Stand::Both => [Place::Remote, Place::Ground],
            Stand::Terminal => [Place::Remote, Place::Remote],
            Stand::Gateway => [Place::Ground, Place::Ground],
        }
    }

    /// Where clients find the proxy.
    pub(crate) fn proxy(self, at: &Addresses) -> SocketAddr {
        let address = if self == Stand::Gateway { at.ground_satellite } else { at.remote };
        (address, PROXY_PORT).into()
    }

    /// Where the remote finds ground.
    pub(crate) fn carrier(self, at: &Addresses) -> SocketAddr {
        let address = if self == Stand::Both { at.ground_satellite } else { Ipv4Addr::LOCALHOST };
        (address, CARRIER_PORT).into()
    }

    /// The profile of settings that the carrier has in place of the link's; none where it crosses that.
    pub(crate) fn profile(self) -> Option<&'static str> {
        (self != Stand::Both).then_some("none")
    }
}
