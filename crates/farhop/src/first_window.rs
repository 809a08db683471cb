//! The first window of carriers over TCP, put into the kernel by the helper that may.

use std::io;
use std::sync::Arc;

use farhop_netdev::Privileged;
use farhop_transport::tcp::FirstWindow;

/// What needs the right to change networks.
pub(crate) const WHAT: &str = "a first window of carriers over TCP (tcp_initial_window)";

/// Puts so many segments by `helper` for as long as that is there; none where the system's are wanted.
pub(crate) fn of(helper: Option<&Arc<Privileged>>, segments: Option<u32>) -> Option<FirstWindow> {
    let (helper, segments) = (Arc::downgrade(helper?), segments?);
    Some(FirstWindow::new(move |peer| {
        let helper = helper.upgrade().ok_or_else(|| io::Error::other("this end is going down"))?;
        helper.set_first_window(peer, segments).map_err(io::Error::other)
    }))
}
