//! What is set about the TCP connections of a carrier, in the kernel above all. Nothing here needs privileges but the first window, which
//! somebody else puts; what a kernel has not got is left out, but for a congestion control that was asked for by name.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use farhop_htotp::mux::Spread;
use farhop_units::BitRate;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::FirstWindow;
use crate::path::{End, PathPlan};

/// Bytes that the kernel may hold unsent, at the least and the most: what is urgent cannot overtake them.
const UNSENT: (u64, u64) = (16 << 10, 256 << 10);
/// Link time that they may be, as the scheduler writes ahead (`docs/decisions/0007-one-scheduler-above-quic.md`).
const UNSENT_TIME: Duration = Duration::from_millis(50);
/// Probes of an idle connection that may go unanswered.
const PROBES: u32 = 3;
/// Handshakes that may wait to be accepted, with fast open and without.
const BACKLOG: u32 = 1024;

/// The congestion control that was asked for cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CongestionError {
    /// The kernel has none of that name.
    #[error(
        "TCP congestion control '{name}' is not offered by this kernel, which has {offered}: choose one of these, or load it with 'modprobe tcp_{name}'"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        offered: String,
    },
    /// It has, but keeps it for the privileged.
    #[error(
        "TCP congestion control '{name}' may not be used without privileges, only {offered}: choose one of these, or add it to the sysctl net.ipv4.tcp_allowed_congestion_control"
    )]
    Forbidden {
        /// What was asked for.
        name: String,
        /// What is allowed.
        offered: String,
    },
    /// The kernel refused for another reason.
    #[error("TCP congestion control '{name}' cannot be set: {detail}")]
    Refused {
        /// What was asked for.
        name: String,
        /// What the kernel says.
        detail: String,
    },
}

/// What each connection of a carrier is set to.
#[derive(Debug, Clone)]
pub struct Options {
    congestion: Option<String>,
    unsent: u32,
    patience: Duration,
    spread: Spread,
    first_window: Option<FirstWindow>,
}

impl Options {
    /// For the connections of `end` on a path like `plan`; `None` leaves congestion control to the system's default.
    ///
    /// # Errors
    /// The kernel does not offer that congestion control.
    pub fn new(plan: &PathPlan, end: End, congestion: Option<&str>) -> Result<Self, CongestionError> {
        let options = Options {
            congestion: congestion.map(Into::into),
            unsent: unsent(plan.sending_rate(end)),
            patience: plan.idle_timeout(),
            spread: Spread::default(),
            first_window: None,
        };
        options.check()?;
        Ok(options)
    }

    /// These, with streams that go to the connections by `spread`.
    #[must_use]
    pub fn spreading(self, spread: Spread) -> Self {
        Options { spread, ..self }
    }

    /// These, with a first window that is put before connections where it is not left to the system.
    #[must_use]
    pub fn beginning_with(self, first_window: Option<FirstWindow>) -> Self {
        Options { first_window, ..self }
    }

    /// Has connections with `peer` that begin from now on do so with the first window that was asked for.
    pub(super) async fn prepare(&self, peer: IpAddr) {
        if let Some(first_window) = &self.first_window {
            first_window.towards(peer).await;
        }
    }

    /// By what the streams that this end opens go to the connections.
    pub(super) fn spread(&self) -> Spread {
        self.spread
    }

    /// Tries the congestion control on a socket that is good for nothing else.
    fn check(&self) -> Result<(), CongestionError> {
        let Some(name) = &self.congestion else { return Ok(()) };
        let tried = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
            .and_then(|socket| socket.set_tcp_congestion(name.as_bytes()));
        let Err(error) = tried else { return Ok(()) };
        let name = name.clone();
        Err(match error.kind() {
            io::ErrorKind::NotFound => CongestionError::Unknown { name, offered: listed("available") },
            io::ErrorKind::PermissionDenied => {
                CongestionError::Forbidden { name, offered: listed("allowed") }
            }
            _ => CongestionError::Refused { name, detail: error.to_string() },
        })
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// The system's.
    pub(super) async fn connect(&self, addr: SocketAddr) -> io::Result<TcpStream> {
        self.prepare(addr.ip()).await;
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        self.apply(&SockRef::from(&socket))?;
        // RFC 7413: the first words travel with the SYN, from the second call on. Not every kernel lets it.
        let _ = farhop_netdev::fast_open_connect(&socket);
        TcpSocket::from_std_stream(socket.into()).connect(addr).await
    }

    /// Listens; what is accepted inherits the options.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn listen(&self, addr: SocketAddr) -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        // A ground that is restarted finds its port again while connections of the old one fade away.
        socket.set_reuse_address(true)?;
        if addr.is_ipv6() && addr.ip().is_unspecified() {
            socket.set_only_v6(false)?;
        }
        self.apply(&SockRef::from(&socket))?;
        socket.bind(&addr.into())?;
        socket.listen(BACKLOG as i32)?;
        let _ = farhop_netdev::fast_open_listen(&socket, BACKLOG);
        socket.set_nonblocking(true)?;
        TcpListener::from_std(socket.into())
    }

    /// Sets one connection.
    pub(super) fn apply(&self, socket: &SockRef<'_>) -> io::Result<()> {
        if let Some(name) = &self.congestion {
            socket.set_tcp_congestion(name.as_bytes())?;
        }
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_notsent_lowat(self.unsent)?;
        // RFC 5482: what is unacknowledged for so long is given up, however often it may still be repeated.
        socket.set_tcp_user_timeout(Some(self.patience))?;
        let pause = (self.patience / PROBES).max(Duration::from_secs(1));
        socket.set_tcp_keepalive(
            &TcpKeepalive::new().with_time(pause).with_interval(pause).with_retries(PROBES),
        )
    }
}

/// Bytes that the kernel may hold unsent where so much is known of the rate.
pub(super) fn unsent(rate: Option<BitRate>) -> u32 {
    rate.map_or(UNSENT.1, |rate| rate.bytes_in(UNSENT_TIME).0.clamp(UNSENT.0, UNSENT.1)) as u32
}

/// What the kernel names under `net.ipv4.tcp_*_congestion_control`.
fn listed(which: &str) -> String {
    let file = format!("/proc/sys/net/ipv4/tcp_{which}_congestion_control");
    let names = std::fs::read_to_string(file).unwrap_or_default();
    let names: Vec<&str> = names.split_whitespace().collect();
    if names.is_empty() { "none that it names".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_holds_unsent_follows_the_rate_as_far_as_it_is_known() {
        let rates = [None, Some(BitRate::kbit(64)), Some(BitRate::mbit(8)), Some(BitRate::mbit(1000))];
        assert_eq!(rates.map(unsent), [256 << 10, 16 << 10, 50_000, 256 << 10]);
    }

    #[test]
    fn a_congestion_control_that_the_kernel_lacks_is_refused_with_those_that_it_has() {
        let error = Options::new(&PathPlan::UNKNOWN, End::Remote, Some("nonesuch")).unwrap_err();
        assert!(matches!(&error, CongestionError::Unknown { offered, .. } if offered.contains("reno")));
        assert!(error.to_string().contains("'nonesuch' is not offered"), "{error}");
    }

    #[tokio::test]
    async fn a_connection_has_the_options_that_were_asked_for() {
        let options = Options::new(&PathPlan::UNKNOWN, End::Remote, Some("reno")).unwrap();
        let listener = options.listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let near = options.connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        for stream in [&near, &far] {
            let socket = SockRef::from(stream);
            let name = socket.tcp_congestion().unwrap();
            assert!(name.starts_with(b"reno"), "{name:?}");
            assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
            assert_eq!(u64::from(socket.tcp_notsent_lowat().unwrap()), UNSENT.1);
            assert_eq!(socket.tcp_user_timeout().unwrap(), Some(PathPlan::UNKNOWN.idle_timeout()));
        }
    }
}
