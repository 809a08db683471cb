//! A remote that serves, as the program holds it: new settings, new certificates, its end.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use farhop_authority::{Authority, AuthorityError};
use farhop_front::Listener;
use farhop_settings::RemoteSettings;
use farhop_settings::remote::{DnsSettings, InterceptionSettings};
use farhop_settings::transparent::TransparentSettings;
use farhop_settings::udp::UdpSettings;
use farhop_transport::memory::Memory;
use farhop_transport::socket::udp::UdpSocket;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::tun::Device;
use crate::udp::Answerer;
use crate::{Remote, clients, transparent, tun, udp};

/// A remote that runs until it is told to stop or dropped.
pub struct Running {
    pub(crate) remote: Arc<Remote>,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) tasks: JoinSet<()>,
    /// What is measured of paths; none where that is not kept.
    pub(crate) paths: Option<Arc<Memory>>,
}

impl Running {
    /// Addresses on which clients are served.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Lets the buffers of the carrier's socket grow with the path. The first word counts.
    pub fn grow_buffers_of(&self, socket: &Arc<UdpSocket>) {
        socket.grow(self.remote.sizes.borrow().socket_buffer);
        let _ = self.remote.socket.set(Arc::clone(socket));
    }

    /// Serves connections that were caught on their way, as these listeners accept them: their local address is where
    /// they were to lead.
    pub fn catch(&mut self, listeners: Vec<TcpListener>) {
        let settings = self.remote.settings();
        let mut front = clients::front_settings(&settings);
        front.connections = settings.transparent.connections as usize;
        for listener in listeners {
            let listener = Listener::from_listener(listener, front.clone());
            self.tasks.spawn(transparent::accept(
                Arc::clone(&self.remote),
                listener,
                transparent::Found::Diverted,
            ));
        }
    }

    /// Serves what comes by a TUN device: connections as these listeners accept them, and datagrams.
    pub fn catch_by(&mut self, device: &Arc<Device>, listeners: Vec<TcpListener>) {
        let settings = self.remote.settings();
        let mut front = clients::front_settings(&settings);
        front.connections = settings.transparent.connections as usize;
        for listener in listeners {
            let listener = Listener::from_listener(listener, front.clone());
            let found = transparent::Found::By(Arc::clone(device));
            self.tasks.spawn(transparent::accept(Arc::clone(&self.remote), listener, found));
        }
        self.tasks.spawn(tun::serve(Arc::clone(&self.remote), Arc::clone(device)));
    }

    /// Carries datagrams that were caught on their way: these sockets take the first of each flow, and `answerer` makes those that
    /// answer. Nothing happens where the settings want no UDP component.
    pub fn catch_datagrams(&mut self, sockets: Vec<tokio::net::UdpSocket>, answerer: &Answerer) {
        let Some(flows) = self.remote.flows.get() else { return };
        for socket in sockets {
            let (remote, flows) = (Arc::clone(&self.remote), Arc::clone(flows));
            self.tasks.spawn(udp::accept(remote, flows, socket, Arc::clone(answerer)));
        }
    }

    /// Takes the settings marked live from `settings`, and reads the file of users anew. Where that is damaged it stays as
    /// it was, with a line in the log.
    pub fn reload(&self, settings: RemoteSettings) {
        self.remote.bus.set_host_only(settings.log.host_only);
        let mut current = self.remote.settings.write().unwrap_or_else(PoisonError::into_inner);
        let kept = Arc::clone(&current);
        let auth = match self.remote.gate.reload(&settings.auth) {
            Ok(()) => settings.auth.clone(),
            Err(error) => {
                tracing::error!(target: "farhop", "users stay as they are: {error}");
                kept.auth.clone()
            }
        };
        let interception = InterceptionSettings {
            enabled: kept.interception.enabled,
            ca: kept.interception.ca.clone(),
            state: kept.interception.state.clone(),
            ..settings.interception.clone()
        };
        self.remote.consent.reload(&interception);
        // What is read only at the start stays what it was.
        let settings = RemoteSettings {
            listen: kept.listen.clone(),
            control: kept.control.clone(),
            identity: kept.identity.clone(),
            link: kept.link.clone(),
            probe: kept.probe.clone(),
            repository: kept.repository.clone(),
            store: kept.store.clone(),
            ground: kept.ground.clone(),
            carrier: kept.carrier,
            quic_again: kept.quic_again,
            tcp_connections: kept.tcp_connections,
            tcp_streams: kept.tcp_streams,
            tcp_congestion: kept.tcp_congestion.clone(),
            tcp_initial_window: kept.tcp_initial_window,
            role: kept.role,
            udp: UdpSettings {
                enabled: kept.udp.enabled,
                flows: kept.udp.flows,
                link: kept.udp.link.clone(),
                ..settings.udp.clone()
            },
            dns: DnsSettings { prefetch: settings.dns.prefetch, ..kept.dns.clone() },
            transparent: TransparentSettings {
                enabled: kept.transparent.enabled,
                connections: kept.transparent.connections,
                mark: kept.transparent.mark,
                tun: kept.transparent.tun.clone(),
                tun_networks: kept.transparent.tun_networks.clone(),
                ..settings.transparent.clone()
            },
            auth,
            interception,
            ..settings
        };
        let mut within = self.remote.within.write().unwrap_or_else(PoisonError::into_inner);
        // Its windows and sessions go on.
        *within =
            Arc::new(clients::with_patience(farhop_front::Settings::clone(&within), &settings.timeouts));
        *current = Arc::new(settings);
    }

    /// Answers TLS with the certificates of `authority` from the next connection on, as after a rotation; where
    /// interception is off it stays so.
    ///
    /// # Errors
    /// The system has no randomness for the key of those certificates. All is as before then.
    pub fn renew(&self, authority: Arc<Authority>) -> Result<(), AuthorityError> {
        self.remote.leaves.as_ref().map_or(Ok(()), |leaves| leaves.renew(authority))
    }

    /// Waits until the carrier is up, at most so long.
    pub async fn connected(&self, within: Duration) -> bool {
        self.remote.uplink.carrier(Instant::now() + within).await.is_some()
    }

    /// Takes no more requests, waits for those under way within the settings' bound, then ends.
    pub async fn stop(mut self) {
        self.remote.drain.send_replace(true);
        let deadline = Instant::now() + self.remote.settings().drain;
        while self.remote.busy.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if let Some(carrier) = self.remote.uplink.now() {
            carrier.hop.close();
        }
        self.tasks.shutdown().await;
        if let Some(paths) = self.paths.take() {
            // A failure is in the log.
            let _ = tokio::task::spawn_blocking(move || paths.save()).await;
        }
        self.remote.consent.save().await;
        self.remote.repository.close().await;
    }
}
