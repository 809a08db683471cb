//! Names to addresses. Says nothing about whether an address may be used; [`crate::guard`] does.

use crate::name_server_sockets::NameServerSockets;
use hickory_resolver::config::{ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::parse_resolv_conf;
use hickory_resolver::{Hosts, Resolver};
use std::collections::HashMap;
use std::fs::{self, File};
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a name has no addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is no such name, or it has no address.
    #[error("there is no such name")]
    NotFound,
    /// No name server answers.
    #[error("no name server answers")]
    Silent,
    /// Nobody is there to be asked, as far as the network says: not one was waited for.
    #[error("no name server can be reached")]
    Unreachable,
    /// The name servers failed.
    #[error("{0}")]
    Failed(String),
}

/// The answer of a resolver, as it comes.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, ResolveError>> + Send + 'a>>;

/// Whoever knows the addresses of names.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `host`, the best first. Address literals are not asked for.
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a>;

    /// Whom it asks, for who is told that there was no answer; nothing if that is nobody in particular.
    fn asks(&self) -> String {
        String::new()
    }
}

/// The system's own configuration: `/etc/resolv.conf` and `/etc/hosts`, read again when they change. Answers are kept as
/// long as they say and at most a day, or until the configuration changes.
pub struct SystemResolver {
    files: Files,
    read: Mutex<Read>,
}

/// What configures a resolver.
struct Files {
    servers: PathBuf,
    hosts: PathBuf,
}

/// By what a file is seen to have changed: when it was written, how long it is, which it is. `None` where there is none.
type Stamp = Option<(i64, i64, u64, u64)>;

/// What was read of the files.
struct Read {
    stamps: [Stamp; 2],
    names: Arc<Hosts>,
    resolver: Resolver<NameServerSockets>,
    servers: Vec<IpAddr>,
}

impl SystemResolver {
    /// Reads the system's configuration. Without name servers, only `/etc/hosts` is left, and the log says so.
    ///
    /// # Errors
    /// No resolver can be made.
    pub fn new() -> Result<SystemResolver, ResolveError> {
        SystemResolver::of(Files { servers: "/etc/resolv.conf".into(), hosts: "/etc/hosts".into() })
    }

    fn of(files: Files) -> Result<SystemResolver, ResolveError> {
        let read = Mutex::new(files.read()?);
        Ok(SystemResolver { files, read })
    }

    /// What is read of `of` it, anew if the files have changed.
    fn current<T>(&self, of: impl FnOnce(&Read) -> T) -> T {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = self.files.stamps();
        if stamps != read.stamps {
            match self.files.read() {
                Ok(anew) => *read = anew,
                Err(error) => {
                    tracing::warn!(%error, "names are looked up as before");
                    // Once is enough to say so.
                    read.stamps = stamps;
                }
            }
        }
        of(&read)
    }
}

impl Files {
    fn stamps(&self) -> [Stamp; 2] {
        [&self.servers, &self.hosts].map(|path| {
            let about = fs::metadata(path).ok()?;
            Some((about.mtime(), about.mtime_nsec(), about.size(), about.ino()))
        })
    }

    fn read(&self) -> Result<Read, ResolveError> {
        // Before what is read: a change meanwhile is seen next time.
        let stamps = self.stamps();
        let Files { servers, hosts } = self;
        let configuration = fs::read(servers).map_err(NetError::from).and_then(parse_resolv_conf);
        let (config, options) = configuration.unwrap_or_else(|error| {
            let (servers, hosts) = (servers.display(), hosts.display());
            tracing::warn!(%error, "{servers} names no name server that can be used, only {hosts} is left");
            (ResolverConfig::default(), ResolverOpts::default())
        });
        let mut names = Hosts::default();
        if let Ok(file) = File::open(hosts)
            && let Err(error) = names.read_hosts_conf(file)
        {
            tracing::warn!(%error, "{} can't be read to its end", hosts.display());
        }
        Read::new(stamps, config, options, names)
    }
}

impl Read {
    fn new(
        stamps: [Stamp; 2],
        config: ResolverConfig,
        options: ResolverOpts,
        names: Hosts,
    ) -> Result<Read, ResolveError> {
        let servers = config.name_servers().iter().map(|server| server.ip).collect();
        let mut builder = Resolver::builder_with_config(config, NameServerSockets::default());
        *builder.options_mut() = options;
        builder.options_mut().use_hosts_file = ResolveHosts::Never;
        let resolver = builder.build().map_err(|error| ResolveError::Failed(error.to_string()))?;
        Ok(Read { stamps, names: Arc::new(names), resolver, servers })
    }

    /// The addresses of a name that the hosts file has. No name server is asked for those of the other family.
    fn known(&self, host: &str) -> Vec<IpAddr> {
        let Some(name) = name_of(host) else { return Vec::new() };
        let found = [RecordType::A, RecordType::AAAA].map(|kind| {
            let answer = self.names.lookup_static_host(&Query::query(name.clone(), kind));
            answer.map_or_else(Vec::new, |it| {
                it.answers().iter().filter_map(|record| record.data.ip_addr()).collect()
            })
        });
        found.concat()
    }
}

/// Whether a name server's port is closed, or there is no way to it.
fn says_that_nobody_is_there(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
}

/// `host` as name servers are asked for it, whatever its labels are made of (RFC 2181 §11): browsers ask for hosts with
/// underscores, and there are such.
fn name_of(host: &str) -> Option<Name> {
    let labels = host.strip_suffix('.').unwrap_or(host).split('.');
    let mut name = Name::from_labels(labels.map(str::as_bytes)).ok()?;
    name.set_fqdn(host.ends_with('.'));
    Some(name)
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let (known, resolver) = self.current(|read| (read.known(host), read.resolver.clone()));
            if !known.is_empty() {
                return Ok(known);
            }
            let Some(name) = name_of(host) else { return Err(ResolveError::NotFound) };
            match resolver.lookup_ip(name).await {
                Ok(answer) => Ok(answer.iter().collect()),
                Err(error) if error.is_no_records_found() => Err(ResolveError::NotFound),
                Err(NetError::Io(error)) if says_that_nobody_is_there(&error) => {
                    Err(ResolveError::Unreachable)
                }
                Err(error @ (NetError::Timeout | NetError::NoConnections | NetError::Busy)) => {
                    let asks_nobody = self.current(|read| read.servers.is_empty());
                    Err(match error {
                        _ if asks_nobody => self.nobody(),
                        NetError::Timeout => ResolveError::Silent,
                        _ => ResolveError::Unreachable,
                    })
                }
                Err(error) => Err(ResolveError::Failed(error.to_string())),
            }
        })
    }

    fn asks(&self) -> String {
        let servers: Vec<_> = self.name_servers().iter().map(ToString::to_string).collect();
        servers.join(", ")
    }
}

impl SystemResolver {
    /// The name servers of this system, in the order in which they are asked.
    pub fn name_servers(&self) -> Vec<IpAddr> {
        self.current(|read| read.servers.clone())
    }

    fn nobody(&self) -> ResolveError {
        let Files { servers, hosts } = &self.files;
        let (servers, hosts) = (servers.display(), hosts.display());
        ResolveError::Failed(format!("{servers} names no name server, and {hosts} does not have it"))
    }
}

/// A fixed table of names, for tests and laboratories.
#[derive(Debug, Clone, Default)]
pub struct FixedResolver {
    /// Lower-case names and their addresses.
    pub names: HashMap<String, Vec<IpAddr>>,
}

impl Resolve for FixedResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> Resolving<'a> {
        let addresses = self.names.get(&host.to_ascii_lowercase()).cloned();
        Box::pin(async move { addresses.ok_or(ResolveError::NotFound) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_resolver::config::{ConnectionConfig, NameServerConfig};
    use std::net::{Ipv4Addr, UdpSocket};

    /// Files in a folder that goes with them.
    fn files(servers: &str, hosts: &str) -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        let files = Files { servers: folder.path().join("resolv.conf"), hosts: folder.path().join("hosts") };
        fs::write(&files.servers, servers).unwrap();
        fs::write(&files.hosts, hosts).unwrap();
        (folder, files)
    }

    #[tokio::test]
    async fn the_hosts_file_is_honoured() {
        let resolver = SystemResolver::new().unwrap();
        let addresses = resolver.resolve("localhost").await.unwrap();
        assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback), "{addresses:?}");
    }

    #[tokio::test]
    async fn labels_may_be_made_of_anything() {
        // RFC 6761 §6.3: all below `localhost` is answered without asking anyone.
        let resolver = SystemResolver::new().unwrap();
        for host in ["a_b.localhost", "_.localhost", "-a.localhost", "a-.localhost", "ab--c.LOCALHOST."] {
            let addresses = resolver.resolve(host).await.unwrap_or_else(|error| panic!("{host}: {error}"));
            assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback), "{host}");
        }
        assert_eq!(resolver.resolve("a..localhost").await, Err(ResolveError::NotFound));
    }

    #[tokio::test]
    async fn a_name_that_can_never_exist_is_not_found() {
        // RFC 6761 §6.4: `invalid` is answered without asking anyone.
        let resolver = SystemResolver::new().unwrap();
        assert_eq!(resolver.resolve("nowhere.invalid").await, Err(ResolveError::NotFound));
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_is_read_again_and_what_the_hosts_file_has_is_asked_of_nobody() {
        let begun = tokio::time::Instant::now();
        let (_folder, files) = files("nameserver 192.0.2.53\n", "192.0.2.1 a.test\n");
        let (servers, hosts) = (files.servers.clone(), files.hosts.clone());
        let resolver = SystemResolver::of(files).unwrap();
        let found = async |host: &str| resolver.resolve(host).await.unwrap();
        assert_eq!(found("a.test").await, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(resolver.asks(), "192.0.2.53");
        fs::write(&hosts, "192.0.2.2 a.test b.test\n").unwrap();
        for host in ["a.test", "b.test"] {
            assert_eq!(found(host).await, ["192.0.2.2".parse::<IpAddr>().unwrap()], "{host}");
        }
        fs::write(&servers, "nameserver 192.0.2.53\nnameserver 2001:db8::53\n").unwrap();
        assert_eq!(resolver.asks(), "192.0.2.53, 2001:db8::53");
        assert_eq!(found("b.test").await.len(), 1);
        assert_eq!(begun.elapsed(), std::time::Duration::ZERO, "this name server would not answer");
    }

    #[tokio::test]
    async fn without_name_servers_that_is_said() {
        let (_folder, files) = files("options ndots:1\n", "192.0.2.1 a.test\n");
        let resolver = SystemResolver::of(files).unwrap();
        assert_eq!(resolver.resolve("a.test").await.unwrap().len(), 1);
        let Err(ResolveError::Failed(line)) = resolver.resolve("b.test").await else {
            panic!("it has an address")
        };
        assert!(line.contains("resolv.conf names no name server") && line.contains("hosts"), "{line}");
    }

    /// Asks a name server of this machine in these ways.
    fn asking(connections: Vec<ConnectionConfig>) -> (tempfile::TempDir, SystemResolver) {
        let server = NameServerConfig::new(Ipv4Addr::LOCALHOST.into(), true, connections);
        let config = ResolverConfig::from_parts(None, vec![], vec![server]);
        let (folder, files) = files("", "");
        let read = Read::new(files.stamps(), config, ResolverOpts::default(), Hosts::default()).unwrap();
        (folder, SystemResolver { files, read: Mutex::new(read) })
    }

    /// A port that hears and says nothing, and both ways to ask there.
    fn deaf() -> (UdpSocket, Vec<ConnectionConfig>) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut ways = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
        ways.iter_mut().for_each(|way| way.port = socket.local_addr().unwrap().port());
        (socket, ways)
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_server_that_does_not_answer_is_silent() {
        let (_deaf, ways) = deaf();
        let (_folder, resolver) = asking(ways);
        assert_eq!(resolver.resolve("a.test").await, Err(ResolveError::Silent));
        assert_eq!(resolver.asks(), "127.0.0.1");
    }

    #[tokio::test]
    async fn a_name_server_whose_port_is_closed_is_not_waited_for() {
        let (port, ways) = deaf();
        drop(port);
        let (_folder, resolver) = asking(ways);
        // Had it been waited for, it would be silent.
        assert_eq!(resolver.resolve("a.test").await, Err(ResolveError::Unreachable));
    }

    #[tokio::test]
    async fn of_name_servers_to_which_there_is_no_way_it_is_not_said_that_they_were_waited_for() {
        // As where there is no route to it.
        let (_folder, resolver) = asking(vec![]);
        assert_eq!(resolver.resolve("a.test").await, Err(ResolveError::Unreachable));
    }
}
