//! One load on one route, with what the route needs running for as long.

use farhop_compare::{Peers, RunningPeer};

use crate::TransportError;
use crate::client::Wanted;
use crate::hop::{Hop, Load, Via};
use crate::route::{Kind, Route};
use crate::workload::bulk;

/// Starts what the route needs, loads all of `wanted` at once, and ends it again. Farhop's carrier has brought 2 MB before.
///
/// # Errors
/// A program does not start or is not there, a byte is wrong or missing, or the user wants it to end.
pub fn load_on(
    hop: &mut Hop<'_>,
    route: &Route,
    wanted: &[Wanted],
    peers: &Peers,
) -> Result<Load, TransportError> {
    match route.kind {
        Kind::Farhop { .. } => {
            hop.start(route.name, &route.tuning().unwrap_or_default())?;
            let warmed = hop.load_at_once(&[bulk("/2m")]);
            let load = warmed.and_then(|_| hop.load(Via::Farhop, wanted));
            hop.stop();
            load
        }
        Kind::Direct(controller) => hop.load(Via::Direct(controller), wanted),
        Kind::Peer(peer) => {
            let missing = || TransportError::Unexpected(format!("{} is not present", route.name));
            let program = peers.program(peer).ok_or_else(missing)?;
            let _running = RunningPeer::start(&hop.testbed, peer, program, hop.folder.path(), hop.interrupt)?;
            // The client knows nothing of it, and its own kernel sends across the link.
            hop.load(Via::Direct("cubic"), wanted)
        }
    }
}
