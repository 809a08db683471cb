//! Calls a ground: by its name and addresses, with its keys.

use std::net::SocketAddr;

use farhop_settings::HostPort;
use farhop_transport::identity::PublicKey;
use farhop_transport::quic::Early;
use farhop_transport::{Connection, Kind};

use super::Caller;

/// A ground that may be called.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) address: HostPort,
    pub(crate) keys: Vec<PublicKey>,
}

/// A ground that has answered, or may be spoken to before.
pub(super) struct Called {
    pub(super) peer: String,
    pub(super) address: SocketAddr,
    pub(super) connection: Connection,
    pub(super) early: Option<Early>,
}

impl Caller {
    /// Calls a ground that was reached before, without waiting for its answer.
    pub(super) async fn call_early(&self, target: &Target) -> Option<Called> {
        let host = (target.address.host.as_str(), target.address.port);
        let address = tokio::net::lookup_host(host).await.ok()?.next()?;
        let early = self.dialers.early(address, &target.keys)?;
        let connection = Connection::Quic(early.connection().clone());
        Some(Called { peer: target.name.clone(), address, connection, early: Some(early) })
    }

    pub(super) async fn call(&self, target: &Target, favourite: Kind) -> Result<Called, String> {
        let addresses = tokio::net::lookup_host((target.address.host.as_str(), target.address.port)).await;
        let addresses =
            addresses.map_err(|error| format!("cannot resolve {}: {error}", target.address.host))?;
        let mut last = format!("{} has no address", target.address.host);
        for address in addresses {
            match self.dialers.connect(address, &target.keys, favourite).await {
                Ok(connection) => {
                    return Ok(Called { peer: target.name.clone(), address, connection, early: None });
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }
}

/// A ground reached over a socket in this process is called by any address.
pub(crate) fn in_process(name: &str, address: std::net::SocketAddr, key: PublicKey) -> Target {
    let address = HostPort { host: address.ip().to_string(), port: address.port() };
    Target { name: name.into(), address, keys: vec![key] }
}
