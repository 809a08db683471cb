//! What the origins process is told (`farhop lab origins --spec FILE`) and what it tells back when it is ready.
//! Plain data; touches neither sockets nor the sites' folders.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// All origins of one testbed, served by one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginsSpec {
    /// Every origin: its name, its address, its folder.
    pub origins: Vec<OriginSpec>,
    /// Where the DNS server listens (UDP); none when names are resolved otherwise.
    #[serde(default)]
    pub dns: Option<SocketAddr>,
    /// Port of plain HTTP, on each origin's address; 0 takes a free one.
    #[serde(default = "http_port")]
    pub http_port: u16,
    /// Port of HTTPS, on each origin's address; 0 takes a free one.
    #[serde(default = "https_port")]
    pub https_port: u16,
    /// Where the throwaway CA's certificate is written (PEM).
    pub ca: PathBuf,
    /// Written whole, as [`Ready`], once every socket listens.
    pub ready: PathBuf,
    /// One JSON line per request answered and per DNS question.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// Names that the DNS server knows besides the origins' own: servers that others run.
    #[serde(default)]
    pub names: BTreeMap<String, IpAddr>,
    /// A folder where each origin's certificate chain and key are written (PEM, see [`chain_file`] and [`key_file`]), for
    /// servers of others that stand in for it. Without it no key leaves the process.
    #[serde(default)]
    pub identities: Option<PathBuf>,
}

impl OriginsSpec {
    /// These origins on ports that are free, with what is written (`ca.pem`, `ready.json`) in `folder`; neither DNS nor log.
    pub fn on_free_ports(origins: Vec<OriginSpec>, folder: &Path) -> OriginsSpec {
        OriginsSpec {
            origins,
            dns: None,
            http_port: 0,
            https_port: 0,
            ca: folder.join("ca.pem"),
            ready: folder.join("ready.json"),
            log: None,
            names: BTreeMap::new(),
            identities: None,
        }
    }
}

/// Where an origin's certificate chain is, in the folder of identities.
pub fn chain_file(identities: &Path, name: &str) -> PathBuf {
    identities.join(format!("{name}.pem"))
}

/// Where an origin's key is, in the folder of identities.
pub fn key_file(identities: &Path, name: &str) -> PathBuf {
    identities.join(format!("{name}.key"))
}

/// One origin: a folder served under a name at an address of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginSpec {
    /// The host name, lower case, without port.
    pub name: String,
    /// The address it listens on.
    pub address: IpAddr,
    /// The folder it serves.
    pub folder: PathBuf,
    /// What it waits before each response head, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// The name by which the DNS server knows it, where that is not its own: so a site has a second server.
    #[serde(default)]
    pub dns_name: Option<String>,
    /// TCP congestion control of its listening sockets, pinned so that the opponent is the same on every machine; accepted
    /// sockets inherit it.
    #[serde(default = "cubic")]
    pub congestion_control: String,
    /// `Cache-Control` of what begins with a path, the longest path that fits; nothing is said of the rest.
    #[serde(default)]
    pub caching: BTreeMap<String, String>,
    /// Text goes in Brotli of the best level to who takes it, beside gzip.
    #[serde(default)]
    pub brotli: bool,
}

impl OriginSpec {
    /// An origin that answers at once, sends with CUBIC and is known by its own name.
    pub fn new(
        name: impl Into<String>,
        address: impl Into<IpAddr>,
        folder: impl Into<PathBuf>,
    ) -> OriginSpec {
        OriginSpec {
            name: name.into(),
            address: address.into(),
            folder: folder.into(),
            delay_ms: 0,
            dns_name: None,
            congestion_control: cubic(),
            caching: BTreeMap::new(),
            brotli: false,
        }
    }
}

/// What the origins process says of itself once it listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Base64 SHA-256 of the leaf key's SubjectPublicKeyInfo, for Chromium's `--ignore-certificate-errors-spki-list`.
    pub spki: String,
    /// The sockets of each origin, in the order of the spec.
    pub origins: Vec<Listening>,
    /// Where the DNS server listens.
    pub dns: Option<SocketAddr>,
    /// The servers' settings, for the report.
    pub settings: ServerSettings,
}

/// The sockets of one origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// The origin's name.
    pub name: String,
    /// Its plain-HTTP socket.
    pub http: SocketAddr,
    /// Its HTTPS socket.
    pub https: SocketAddr,
    /// TCP congestion control of both, as the kernel reports it.
    pub congestion_control: String,
}

/// What an opponent's server settings are: they can outweigh an accelerator, so every report states them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSettings {
    /// TCP congestion control of the listening sockets; each that occurs, the first origin's first.
    pub congestion_control: String,
    /// gzip level of text resources.
    pub gzip_level: u32,
    /// Brotli level of text resources, where any origin has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brotli_level: Option<u32>,
    /// Largest TLS record in bytes.
    pub tls_record_bytes: u64,
    /// HTTP/2 streams a client may have open.
    pub h2_streams: u32,
    /// HTTP/1.1 connections stay open.
    pub keep_alive: bool,
    /// Nagle's algorithm is off.
    pub nodelay: bool,
}

impl std::fmt::Display for ServerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} congestion control, text gzip -{}{}, TLS records {} bytes, HTTP/2 {} streams, keep-alive {}, TCP_NODELAY {}",
            self.congestion_control,
            self.gzip_level,
            self.brotli_level.map_or_else(String::new, |level| format!(" or br -{level}")),
            self.tls_record_bytes,
            self.h2_streams,
            if self.keep_alive { "on" } else { "off" },
            if self.nodelay { "on" } else { "off" },
        )
    }
}

fn http_port() -> u16 {
    80
}

fn https_port() -> u16 {
    443
}

fn cubic() -> String {
    "cubic".into()
}
