//! From a host and a port to a TCP connection: resolve, guard, and try addresses until one answers.

use crate::error::{Error, asked_of};
use crate::guard::Guard;
use crate::resolve::{Resolve, ResolveError};
use crate::settings::Settings;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// How long a connection may be silent before the system asks whether the other side is still there, and asks again.
const KEEPALIVE: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_secs(15);
/// How often it asks in vain.
const QUESTIONS: u32 = 4;

/// Where to connect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    host: String,
    port: u16,
    /// Where it is if nobody knows the name.
    otherwise: Option<IpAddr>,
}

impl Destination {
    /// A host (IPv6 addresses with or without brackets) and a port. The host is put into lower case.
    pub fn new(host: &str, port: u16) -> Destination {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        Destination { host: bare.to_ascii_lowercase(), port, otherwise: None }
    }

    /// The destination of a URL's scheme and authority, as `http` and `host` or `host:port`.
    ///
    /// # Errors
    /// The scheme has no default port here, or the port is no number.
    pub fn of_url(scheme: &str, authority: &str) -> Result<Destination, Error> {
        let default = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(Error::InvalidRequest(format!("scheme {scheme} is not supported"))),
        };
        let invalid = || Error::InvalidRequest(format!("authority '{authority}' is malformed"));
        let end_of_address = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match authority[end_of_address..].rsplit_once(':') {
            Some((before, "")) => (&authority[..end_of_address + before.len()], default),
            Some((before, digits)) => {
                let port = digits.parse().ok().filter(|&port| port != 0).ok_or_else(invalid)?;
                (&authority[..end_of_address + before.len()], port)
            }
            None => (authority, default),
        };
        if host.is_empty() || host.contains('@') {
            return Err(invalid());
        }
        Ok(Destination::new(host, port))
    }

    /// The same, at this address if name servers know none for the host. Connections to it are kept apart from others: who named
    /// the address may have meant another host's.
    #[must_use]
    pub fn or_at(self, address: IpAddr) -> Destination {
        Destination { otherwise: Some(address), ..self }
    }

    /// The host in lower case, IPv6 addresses without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// As Host says it for a scheme whose port is `default` (RFC 9110 §7.2).
    pub(crate) fn authority(&self, default: u16) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default { host } else { format!("{host}:{}", self.port) }
    }
}

/// Connects to whatever the guard lets through.
#[derive(Clone)]
pub(crate) struct Connector {
    guard: Guard,
    resolver: Arc<dyn Resolve>,
    settings: Arc<Settings>,
}

impl Connector {
    pub(crate) fn new(guard: Guard, resolver: Arc<dyn Resolve>, settings: Arc<Settings>) -> Self {
        Connector { guard, resolver, settings }
    }

    /// Connects to the first address that answers.
    pub(crate) async fn connect(&self, destination: &Destination) -> Result<TcpStream, Error> {
        let addresses = self.addresses(destination).await?;
        self.in_time(destination, self.race(&addresses, destination.port)).await
    }

    /// Connects from a socket that is bound to the address `from`, to the first address of its family.
    pub(crate) async fn connect_from(
        &self,
        socket: TcpSocket,
        from: IpAddr,
        destination: &Destination,
    ) -> Result<TcpStream, Error> {
        let addresses = self.addresses(destination).await?;
        let fitting = addresses.into_iter().find(|address| address.is_ipv4() == from.is_ipv4());
        let none =
            || Error::InvalidRequest(format!("{} has no address to reach from {from}", destination.host));
        let to = SocketAddr::new(fitting.ok_or_else(none)?, destination.port);
        let connecting = async { socket.connect(to).await.map_err(|error| failure(to, &error)) };
        self.in_time(destination, connecting).await
    }

    async fn in_time(
        &self,
        destination: &Destination,
        connecting: impl Future<Output = Result<TcpStream, Error>>,
    ) -> Result<TcpStream, Error> {
        let connected = timeout(self.settings.connect_timeout(), connecting).await;
        let stream =
            connected.unwrap_or_else(|_| Err(Error::ConnectTimedOut { host: destination.host.clone() }))?;
        self.settings.ways.measure(&stream);
        // None of these is worth failing for.
        let _ = stream.set_nodelay(true);
        let socket = SockRef::from(&stream);
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
        let _ = socket.set_tcp_keepalive(&keepalive.with_interval(ASK_AGAIN).with_retries(QUESTIONS));
        // RFC 6093 §6: urgent bytes stay in their place in the stream.
        let _ = socket.set_out_of_band_inline(true);
        Ok(stream)
    }

    /// The addresses of `destination` that may be connected to, at least one, in the order to try them.
    async fn addresses(&self, destination: &Destination) -> Result<Vec<IpAddr>, Error> {
        let host = &destination.host;
        let found = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => match (self.resolve(host).await, destination.otherwise) {
                (Err(Error::NotFound { .. } | Error::Lookup { .. }), Some(address)) => vec![address],
                (found, _) => found?,
            },
        };
        let mut refused = None;
        let mut passed = Vec::new();
        for address in found {
            match self.guard.check(address) {
                Ok(()) => passed.push(address),
                Err(refusal) => {
                    refused.get_or_insert(Error::Refused { host: host.clone(), address, refusal });
                }
            }
        }
        match refused {
            Some(error) if passed.is_empty() => Err(error),
            _ if passed.is_empty() => Err(Error::NotFound { host: host.clone() }),
            _ => Ok(interleave(passed)),
        }
    }

    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, Error> {
        let started = Instant::now();
        let answer = timeout(self.settings.connect_timeout(), self.resolver.resolve(host)).await;
        let host = host.to_owned();
        match answer {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(ResolveError::NotFound)) => Err(Error::NotFound { host }),
            Ok(Err(ResolveError::Failed(cause))) => Err(Error::Lookup { host, cause }),
            Ok(Err(error @ ResolveError::Unreachable)) => {
                Err(Error::Lookup { host, cause: format!("{error}{}", asked_of(&self.resolver.asks())) })
            }
            Ok(Err(ResolveError::Silent)) | Err(_) => {
                let (asked, after) = (self.resolver.asks(), started.elapsed());
                Err(Error::LookupTimedOut { host, asked, after })
            }
        }
    }

    /// RFC 8305 §5: starts the next attempt when one fails or takes its time, and takes the first that succeeds.
    async fn race(&self, addresses: &[IpAddr], port: u16) -> Result<TcpStream, Error> {
        let mut waiting = addresses.iter();
        let mut attempts = JoinSet::new();
        let mut first_failure = None;
        let mut start_next = true;
        let delay = self.settings.attempt_delay();
        loop {
            if std::mem::take(&mut start_next)
                && let Some(&address) = waiting.next()
            {
                let address = SocketAddr::new(address, port);
                attempts.spawn(
                    async move { TcpStream::connect(address).await.map_err(|e| failure(address, &e)) },
                );
            }
            tokio::select! {
                ended = attempts.join_next() => match ended {
                    Some(Ok(Ok(stream))) => return Ok(stream),
                    Some(Ok(Err(error))) => {
                        first_failure.get_or_insert(error);
                        start_next = true;
                    }
                    // An attempt neither panics nor is it aborted while this loop runs.
                    Some(Err(_)) => start_next = true,
                    None => {
                        let none = Error::InvalidRequest("there is no address to connect to".into());
                        return Err(first_failure.unwrap_or(none));
                    }
                },
                () = sleep(delay), if waiting.len() > 0 => start_next = true,
            }
        }
    }
}

fn failure(address: SocketAddr, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectRefused { address },
        io::ErrorKind::TimedOut => Error::ConnectTimedOut { host: address.to_string() },
        _ => Error::Unreachable { address, cause: error.to_string() },
    }
}

/// RFC 8305 §4: families take turns, the first one's first.
fn interleave(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let first_is_v4 = addresses.first().is_some_and(IpAddr::is_ipv4);
    let (mut first, mut second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv4() == first_is_v4);
    let mut ordered = Vec::with_capacity(first.len() + second.len());
    first.reverse();
    second.reverse();
    while let Some(address) = first.pop() {
        ordered.push(address);
        ordered.extend(second.pop());
    }
    second.reverse();
    ordered.extend(second);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::Resolving;

    #[test]
    fn families_take_turns() {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        let given = list(&["::1", "::2", "::3", "1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4"]);
        let wanted = list(&["::1", "1.0.0.1", "::2", "1.0.0.2", "::3", "1.0.0.3", "1.0.0.4"]);
        assert_eq!(interleave(given), wanted);
    }

    /// A resolver of which nothing is heard.
    struct Deaf;

    impl Resolve for Deaf {
        fn resolve<'a>(&'a self, _: &'a str) -> Resolving<'a> {
            Box::pin(std::future::pending())
        }

        fn asks(&self) -> String {
            "192.0.2.53, 192.0.2.54".into()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silent_name_servers_are_named_with_the_time_that_they_were_given() {
        let settings = Settings { connect_timeout: Some(Duration::from_secs(7)), ..Settings::default() };
        let connector = Connector::new(Guard::new(vec![]), Arc::new(Deaf), Arc::new(settings));
        let error = connector.connect(&Destination::new("a.test", 80)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "looking up a.test failed: no name server answered within 7 s (asked: 192.0.2.53, 192.0.2.54, see /etc/resolv.conf)"
        );
        assert_eq!((error.proxy_status(), error.status().as_u16()), ("dns_timeout", 504));
    }

    #[test]
    fn authorities_become_destinations() {
        let of = |scheme, authority| Destination::of_url(scheme, authority);
        assert_eq!(of("http", "A.example"), Ok(Destination::new("a.example", 80)));
        assert_eq!(of("https", "a.example"), Ok(Destination::new("a.example", 443)));
        assert_eq!(of("http", "a.example:8080"), Ok(Destination::new("a.example", 8080)));
        assert_eq!(of("http", "[::1]:81"), Ok(Destination::new("::1", 81)));
        assert_eq!(of("http", "[::1]"), Ok(Destination::new("[::1]", 80)));
        assert_eq!(of("http", "a:"), Ok(Destination::new("a", 80)));
        for bad in ["", ":80", "a:0", "a:x", "a:70000", "u@a"] {
            assert!(of("http", bad).is_err(), "{bad}");
        }
        assert!(of("ftp", "a").is_err());
        assert_eq!(Destination::new("::1", 80).authority(80), "[::1]");
        assert_eq!(Destination::new("a", 81).authority(80), "a:81");
    }
}
