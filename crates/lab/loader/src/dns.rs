//! Names of origins: asked of a DNS server once in a load, as a browser with an empty cache does, or known beforehand.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use tokio::net::UdpSocket;
use tokio::sync::OnceCell;

/// When a question is asked again, and how often it is asked: resolvers wait for some seconds.
const PATIENCE: Duration = Duration::from_secs(3);
const QUESTIONS: usize = 4;

/// How names become addresses.
#[derive(Debug, Default)]
pub struct Names {
    server: Option<SocketAddr>,
    known: HashMap<String, IpAddr>,
    aliases: HashMap<String, String>,
    asked: Mutex<HashMap<String, Arc<OnceCell<IpAddr>>>>,
}

impl Names {
    /// Names that are known, and nobody to be asked for others.
    pub fn known(known: HashMap<String, IpAddr>) -> Names {
        Names { known, ..Names::default() }
    }

    /// All others are asked of this DNS server, each once.
    pub fn of(server: SocketAddr) -> Names {
        Names { server: Some(server), ..Names::default() }
    }

    /// Looks these hosts up by other names: servers that stand in for them.
    #[must_use]
    pub fn aliased(self, aliases: HashMap<String, String>) -> Names {
        Names { aliases, ..self }
    }

    /// The same with nothing asked yet.
    #[must_use]
    pub fn anew(&self) -> Names {
        Names {
            server: self.server,
            known: self.known.clone(),
            aliases: self.aliases.clone(),
            asked: Mutex::default(),
        }
    }

    /// The address of a host, which may be an address itself.
    ///
    /// # Errors
    /// Nobody knows it.
    pub(crate) async fn address(&self, host: &str) -> io::Result<IpAddr> {
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return Ok(address);
        }
        let host = self.aliases.get(host).map_or(host, String::as_str);
        if let Some(address) = self.known.get(host) {
            return Ok(*address);
        }
        let Some(server) = self.server else {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("nobody knows the name {host}")));
        };
        let cell = self
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(host.to_owned())
            .or_default()
            .clone();
        cell.get_or_try_init(|| ask(server, host)).await.copied()
    }
}

/// RFC 1035 §4.2.1: one question in a datagram, again where no answer comes.
async fn ask(server: SocketAddr, host: &str) -> io::Result<IpAddr> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    let name = Name::from_ascii(format!("{host}.")).map_err(io::Error::other)?;
    let mut question = Message::query();
    question.add_query(Query::query(name, RecordType::A));
    let question = question.to_vec().map_err(io::Error::other)?;
    let mut reply = [0; 1500];
    for _ in 0..QUESTIONS {
        socket.send(&question).await?;
        let Ok(length) = tokio::time::timeout(PATIENCE, socket.recv(&mut reply)).await else { continue };
        // The socket is connected: nobody else's datagram arrives, and it has asked nothing else.
        let answer = Message::from_vec(&reply[..length?]).map_err(io::Error::other)?;
        let address = answer.answers.iter().find_map(|record| match &record.data {
            RData::A(address) => Some(IpAddr::V4(address.0)),
            _ => None,
        });
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("the name {host} has no address"));
        return address.ok_or_else(missing);
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("the DNS server does not answer for {host}")))
}
