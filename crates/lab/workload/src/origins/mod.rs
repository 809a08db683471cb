//! The origins of the lab: several sites in one process, each with its own address, name, certificate and delay, and the
//! DNS server that knows them. `farhop lab origins --spec FILE` runs [`run`]; the parent waits with [`await_ready`].

mod answer;
mod authority;
mod dns;
pub mod live;
mod log;
pub mod media;
mod server;
pub mod site;
mod spec;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use authority::AuthorityError;
pub use spec::{Listening, OriginSpec, OriginsSpec, Ready, ServerSettings, chain_file, key_file};

use authority::{Authority, TLS_RECORD_BYTES};
use server::Origin;

/// Why the origins cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OriginsError {
    /// The spec file cannot be read.
    #[error("origins spec {path}: {reason}")]
    Spec {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder cannot be served.
    #[error("folder {folder} of origin {name}: {source}")]
    Folder {
        /// The origin.
        name: String,
        /// Its folder.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A socket cannot listen.
    #[error("origin {name} cannot listen on {address}: {source}")]
    Listen {
        /// The origin, or `dns`.
        name: String,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Certificates.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A file that tells others what they need cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Runs the origins of a spec file until the process ends.
///
/// # Errors
/// See [`OriginsError`]; nothing is served then.
pub fn run(spec: &Path) -> Result<std::convert::Infallible, OriginsError> {
    let broken = |reason: String| OriginsError::Spec { path: spec.into(), reason };
    let text = std::fs::read_to_string(spec).map_err(|error| broken(error.to_string()))?;
    let spec: OriginsSpec = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| broken(format!("no runtime: {error}")))?;
    runtime.block_on(async {
        serve(&spec).await?;
        std::future::pending().await
    })
}

/// Starts every origin of a spec on the current runtime and writes its `ready` file.
///
/// # Errors
/// See [`OriginsError`].
pub async fn serve(spec: &OriginsSpec) -> Result<Ready, OriginsError> {
    let authority = Authority::make()?;
    write(&spec.ca, authority.pem())?;
    let log = log::Log::open(spec.log.as_deref())
        .map_err(|source| OriginsError::Write { path: spec.log.clone().unwrap_or_default(), source })?;
    let log = Arc::new(log);

    let mut origins: Vec<Listening> = Vec::new();
    let mut sites: HashMap<(&Path, bool), Arc<site::Site>> = HashMap::new();
    for wanted in &spec.origins {
        let place = (wanted.folder.as_path(), wanted.brotli);
        let site = match sites.get(&place) {
            Some(known) => known.clone(),
            None => {
                let open = if wanted.brotli { site::Site::with_brotli } else { site::Site::open };
                Arc::new(open(&wanted.folder).map_err(|source| OriginsError::Folder {
                    name: wanted.name.clone(),
                    folder: wanted.folder.clone(),
                    source,
                })?)
            }
        };
        sites.insert(place, site.clone());
        let origin = |secure| {
            Arc::new(Origin {
                name: wanted.name.clone(),
                site: site.clone(),
                delay: Duration::from_millis(wanted.delay_ms),
                log: log.clone(),
                secure,
                caching: wanted.caching.clone(),
            })
        };
        let listen = |port| {
            let address = SocketAddr::new(wanted.address, port);
            let failed = |source| OriginsError::Listen { name: wanted.name.clone(), address, source };
            let listener = server::listen(address, &wanted.congestion_control).map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            let control = server::congestion_control(&listener).map_err(failed)?;
            Ok::<_, OriginsError>((listener, bound, control))
        };
        let (plain, http, congestion_control) = listen(spec.http_port)?;
        let (secure, https, _) = listen(spec.https_port)?;
        let identity = authority.identity(&wanted.name, wanted.address)?;
        if let Some(folder) = &spec.identities {
            write(&chain_file(folder, &wanted.name), &identity.chain_pem())?;
            write_secret(&key_file(folder, &wanted.name), &identity.key_pem())?;
        }
        let tls = Arc::new(identity.server()?);
        tokio::spawn(server::serve_plain(plain, origin(false)));
        tokio::spawn(server::serve_tls(secure, origin(true), tls));
        origins.push(Listening { name: wanted.name.clone(), http, https, congestion_control });
    }

    let dns = match spec.dns {
        Some(address) => {
            let failed = |source| OriginsError::Listen { name: "dns".into(), address, source };
            let socket = tokio::net::UdpSocket::bind(address).await.map_err(failed)?;
            let bound = socket.local_addr().map_err(failed)?;
            let name = |origin: &OriginSpec| origin.dns_name.as_ref().unwrap_or(&origin.name).clone();
            let own = spec.origins.iter().map(|origin| (name(origin), origin.address));
            let others = spec.names.iter().map(|(name, address)| (name.clone(), *address));
            let names = own.chain(others).collect();
            tokio::spawn(dns::serve(socket, Arc::new(names), log));
            Some(bound)
        }
        None => None,
    };

    let mut controls: Vec<&str> = Vec::new();
    for origin in &origins {
        if !controls.contains(&origin.congestion_control.as_str()) {
            controls.push(&origin.congestion_control);
        }
    }
    let settings = ServerSettings {
        congestion_control: controls.join(" and "),
        gzip_level: site::GZIP_LEVEL,
        brotli_level: spec.origins.iter().any(|origin| origin.brotli).then_some(site::BROTLI_LEVEL),
        tls_record_bytes: TLS_RECORD_BYTES as u64,
        h2_streams: server::H2_STREAMS,
        keep_alive: true,
        nodelay: true,
    };
    let ready = Ready { spki: authority.spki(), origins, dns, settings };
    // Renamed into place, so that whoever waits for the file never reads half of it.
    let half = spec.ready.with_extension("half");
    write(&half, &serde_json::to_string(&ready).unwrap_or_default())?;
    std::fs::rename(&half, &spec.ready)
        .map_err(|source| OriginsError::Write { path: spec.ready.clone(), source })?;
    Ok(ready)
}

fn write(path: &Path, text: &str) -> Result<(), OriginsError> {
    std::fs::write(path, text).map_err(|source| OriginsError::Write { path: path.into(), source })
}

/// The same for a file that its owner alone may read.
fn write_secret(path: &Path, text: &str) -> Result<(), OriginsError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| OriginsError::Write { path: path.into(), source })
}

/// Waits for the `ready` file of an origins process; `alive` says whether that process still runs.
///
/// # Errors
/// The process ended, or said nothing for as long as `patience`.
pub fn await_ready(
    file: &Path,
    patience: Duration,
    mut alive: impl FnMut() -> bool,
) -> Result<Ready, OriginsError> {
    let broken = |reason: String| OriginsError::Spec { path: file.into(), reason };
    let deadline = Instant::now() + patience;
    loop {
        let ended = !alive(); // asked before the look at the file: a process may write it and end
        match std::fs::read_to_string(file) {
            Ok(text) => return serde_json::from_str(&text).map_err(|error| broken(error.to_string())),
            Err(_) if ended => return Err(broken("the origins process ended before it was ready".into())),
            Err(_) if Instant::now() > deadline => {
                return Err(broken(format!("the origins are not ready after {} s", patience.as_secs())));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
