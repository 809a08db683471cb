//! The remote's side: calls ground and gives a connection whose peer bears a listed key.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use farhop_congestion::Choice;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{AsyncUdpSocket, ClientConfig, Connection, Endpoint, TokioRuntime, VarInt};

use super::{CarrierError, Repairs, lasting_config, protect, repaired};
use crate::identity::{Identity, PublicKey};
use crate::memory::{Memory, Recall, local_address};
use crate::path::{End, PathPlan};
use crate::socket::fec::FecSocket;
use crate::tls::{self, Seen};

/// Keys are pinned and names say nothing, but the API wants one; it is not sent.
const SERVER_NAME: &str = "farhop";

/// Calls ground over one socket, as often as needed.
#[derive(Debug, Clone)]
pub struct Dialer {
    endpoint: Endpoint,
    identity: Identity,
    plan: PathPlan,
    choice: Choice,
    memory: Option<Arc<Memory>>,
    fec: Option<Arc<FecSocket>>,
}

impl Dialer {
    /// A dialer over `socket` for a path like `plan`, whose return link `choice` drives. Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    /// The socket has no local address.
    pub fn new(
        socket: Arc<dyn AsyncUdpSocket>,
        identity: Identity,
        plan: PathPlan,
        choice: Choice,
    ) -> io::Result<Self> {
        let config = lasting_config(&identity);
        let (socket, fec) = repaired(socket, &plan, choice);
        let endpoint = Endpoint::new_with_abstract_socket(config, None, socket, Arc::new(TokioRuntime))?;
        Ok(Dialer { endpoint, identity, plan, choice, memory: None, fec })
    }

    /// Lets connections start from what `memory` knows of their paths, and add to it.
    #[must_use]
    pub fn remembering(self, memory: Arc<Memory>) -> Self {
        Dialer { memory: Some(memory), ..self }
    }

    /// Calls `addr` and waits until it has proved to hold one of `keys`: one round trip.
    ///
    /// Ground judges this end's key half a round trip later; when it refuses, the connection fails
    /// with what [`CarrierError::explain`] calls [`CarrierError::Denied`].
    ///
    /// # Errors
    /// Nobody answers within [`PathPlan::handshake_timeout`], the key is another, or the peer speaks
    /// something else.
    pub async fn connect(&self, addr: SocketAddr, keys: &[PublicKey]) -> Result<Connection, CarrierError> {
        let setup = |detail: String| CarrierError::Setup { addr, detail };
        let seen = Seen::default();
        let listed = keys.to_vec();
        let tls = tls::client(&self.identity, move |key| listed.contains(key), &seen)
            .map_err(|error| setup(error.to_string()))?;
        let crypto = QuicClientConfig::try_from(tls).map_err(|error| setup(error.to_string()))?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        let recall = self.memory.as_ref().map_or_else(Recall::nothing, Recall::from);
        let transport = self.plan.transport_config(End::Remote, self.choice, recall.clone());
        config.transport_config(Arc::new(transport));
        let connecting = self
            .endpoint
            .connect_with(config, addr, SERVER_NAME)
            .map_err(|error| setup(error.to_string()))?;
        let after = self.plan.handshake_timeout();
        match tokio::time::timeout(after, connecting).await {
            Ok(Ok(connection)) => {
                if let Some(key) = seen.key() {
                    recall.identify(&key, addr.ip(), local_address(addr));
                }
                if let Some(fec) = &self.fec {
                    protect(fec, &connection, End::Remote);
                }
                Ok(connection)
            }
            Ok(Err(error)) => Err(self.explain(&error, addr, seen.key())),
            Err(_) => Err(CarrierError::NoAnswer { addr, after }),
        }
    }

    fn explain(
        &self,
        error: &quinn::ConnectionError,
        addr: SocketAddr,
        key: Option<PublicKey>,
    ) -> CarrierError {
        CarrierError::explain_handshake(error, addr, self.identity.public(), key)
    }

    /// What the repair layers of this end's socket have done.
    pub fn repairs(&self) -> Repairs {
        Repairs(self.fec.clone())
    }

    /// The local address of the socket.
    ///
    /// # Errors
    /// The system cannot tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// This end's public key.
    pub fn public_key(&self) -> PublicKey {
        self.identity.public()
    }

    /// Closes every connection with `code` and `reason` and waits until the peers have been told.
    pub async fn close(&self, code: u32, reason: &str) {
        self.endpoint.close(VarInt::from_u32(code), reason.as_bytes());
        self.endpoint.wait_idle().await;
        if let Some(memory) = &self.memory {
            memory.save();
        }
    }
}
