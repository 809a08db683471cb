//! `farhop ground`, assembled: identity, socket, control, and the loop that takes carriers and signals.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::sync::Arc;

use farhop_congestion::Choice;
use farhop_control::{Chosen, Server, Socket, forgotten};
use farhop_events::{Bus, Event};
use farhop_htotp::mux::Spread;
use farhop_settings::ground::RemotePeer;
use farhop_settings::{GroundSettings, Spreading, changes};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::memory::Memory;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Accepted, CarrierError, Listener, Peers, Refused};
use farhop_transport::{Connection, tcp};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use url::Url;

use crate::error::GroundError;
use crate::ground::Ground;
use crate::names::Speaker;

/// HTOTP's close code for an end that goes down in order.
const GOING_DOWN: u32 = 0;

/// What ground has somebody else do, who has the right to.
#[derive(Default)]
pub struct Rights {
    /// Makes sockets in the names of clients.
    pub speaker: Option<Speaker>,
    /// Puts the first window of connections over TCP, where settings name one.
    pub first_window: Option<tcp::FirstWindow>,
}

/// Runs ground until SIGTERM or SIGINT, then drains it. On SIGHUP `reload` is asked for settings anew; it may put
/// the log level into force itself, since the log is the caller's. `epoch` is as for [`Ground::new`]. With a speaker,
/// connections may be in the names of clients.
///
/// # Errors
/// Ground cannot start. Once it runs, nothing ends it but a signal.
pub async fn run(
    settings: GroundSettings,
    epoch: u64,
    bus: Bus,
    rights: Rights,
    reload: impl Fn() -> Result<GroundSettings, String> + Send,
) -> Result<(), GroundError> {
    let identity = Identity::load(&settings.identity)?;
    let peers = peers(&settings.remote)?;
    let ground = Ground::new(settings, epoch, bus.clone())?;
    if let Some(speaker) = rights.speaker {
        ground.speak_through(speaker);
    }
    let settings = ground.settings();
    let plan = ground.plan();
    let socket = plan.socket(settings.listen)?;
    let choice: Choice = plan.default_choice(End::Ground);
    let over_tcp = settings
        .tcp
        .then(|| listen_tcp(&settings, &plan, identity.clone(), peers.clone(), rights.first_window));
    let mut over_tcp = over_tcp.transpose()?;
    ground.grow_buffers_of(&socket);
    let listed = watch::Sender::new(peers.clone());
    let mut listener = Listener::new(socket, identity, peers, plan, choice).map_err(system("listen"))?;
    ground.show_repairs(listener.repairs());
    ground.learn(listener.learned());
    ground.know(listener.begun());
    if let Some(over_tcp) = &over_tcp {
        ground.know(over_tcp.begun());
    }
    let paths = Memory::open(&settings.paths)?;
    listener.remember(Arc::clone(&paths));
    let control = Socket::open(&settings.control)?;
    let [mut terminate, mut interrupt, mut hangup] = [
        signals(SignalKind::terminate())?,
        signals(SignalKind::interrupt())?,
        signals(SignalKind::hangup())?,
    ];

    let mut tasks = JoinSet::new();
    tasks.spawn(commands(&ground, bus.clone()).serve(control));
    tracing::info!(listen = %settings.listen, "ground is up");
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Some(Ok(Accepted { connection, name, key })) => {
                    tasks.spawn(serve(ground.clone(), connection.into(), name, key, listed.subscribe()));
                }
                Some(Err(refused)) => tell(&bus, &refused),
                None => pending().await,
            },
            accepted = accept_tcp(over_tcp.as_mut()) => match accepted {
                Ok(tcp::Accepted { connection, name, key }) => {
                    tasks.spawn(serve(ground.clone(), connection.into(), name, key, listed.subscribe()));
                }
                Err(refused) => tell(&bus, &refused),
            },
            Some(_) = tasks.join_next() => {}
            _ = hangup.recv() => if let Some(peers) = apply(&ground, &settings, reload()) {
                listener.set_peers(peers.clone());
                if let Some(over_tcp) = &over_tcp {
                    over_tcp.set_peers(peers.clone());
                }
                // After the listeners: whom they still let in by the old list is seen here.
                listed.send_replace(peers);
            },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    let patience = ground.settings().drain;
    tracing::info!(seconds = patience.as_secs_f32(), "ground is going down once what is under way has ended");
    tokio::select! {
        () = ground.drain(patience) => {}
        // Whoever asks twice does not want to wait.
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    listener.close(GOING_DOWN, "ground is going down").await;
    if let Some(listener) = over_tcp {
        listener.wait_idle().await;
    }
    // Waited for, so that the control socket's file is gone when this returns.
    tasks.shutdown().await;
    // A failure is in the log.
    let _ = tokio::task::spawn_blocking(move || paths.save()).await;
    Ok(())
}

/// Serves a carrier as long as its remote is listed under that name with that key.
async fn serve(
    ground: Ground,
    connection: Connection,
    name: Arc<str>,
    key: PublicKey,
    mut listed: watch::Receiver<Peers>,
) {
    let revoked = async {
        if listed.wait_for(|peers| peers.name(&key).as_ref() != Some(&name)).await.is_err() {
            pending::<()>().await; // ground goes down
        }
        tracing::warn!(remote = %name, %key, "no longer listed: its carrier is closed");
    };
    ground.serve_until(revoked, connection, Arc::clone(&name)).await;
}

/// The same port over TCP.
fn listen_tcp(
    settings: &GroundSettings,
    plan: &PathPlan,
    identity: Identity,
    peers: Peers,
    first_window: Option<tcp::FirstWindow>,
) -> Result<tcp::Listener, GroundError> {
    let options = tcp::Options::new(plan, End::Ground, settings.tcp_congestion.as_deref())?;
    let spread = match settings.tcp_streams {
        Spreading::RoundRobin => Spread::RoundRobin,
        Spreading::Priority => Spread::Priority,
    };
    let options = options.spreading(spread).beginning_with(first_window);
    let listener = tcp::Listener::bind(settings.listen, identity, peers, *plan, options);
    listener.map_err(|error| GroundError::ListenTcp { addr: settings.listen, error })
}

async fn accept_tcp(listener: Option<&mut tcp::Listener>) -> Result<tcp::Accepted, Refused> {
    match listener {
        Some(listener) => listener.accept().await,
        None => pending().await,
    }
}

/// The commands of the control socket.
pub fn commands(ground: &Ground, bus: Bus) -> Server {
    let (told, explained, measured) = (ground.clone(), ground.clone(), ground.clone());
    let (learned, flushed) = (ground.clone(), ground.clone());
    Server::new(bus)
        .command("status", "carriers, what is under way, time up, version", move || {
            let ground = told.clone();
            async move {
                let mut status = ground.status();
                status["store"] = ground.on_disk().await;
                Ok(status)
            }
        })
        .command_with(
            "flush",
            "forgets responses held on disk: {\"url\": URL} or {\"site\": HOST}, else all",
            &["url", "site", "user"],
            move |args| {
                let ground = flushed.clone();
                async move { Ok(forgotten(ground.flush(Chosen::read(args)?).await?)) }
            },
        )
        .command("path", "what is measured of the hop, what is decided by it, and why", move || {
            let path = measured.path();
            async move { Ok(path) }
        })
        .command_with(
            "models",
            "what was learned of pages: {\"site\": HOST, \"erase\": true}",
            &["site", "erase"],
            move |args| {
                let learned = learned.models(args);
                async move { learned }
            },
        )
        .command_with(
            "explain",
            "the plan for a page: {\"url\": URL, \"fields\": {NAME: VALUE}}",
            &["url", "fields"],
            move |args| {
                let ground = explained.clone();
                async move {
                    let asked: Asked = serde_json::from_value(args).map_err(|error| error.to_string())?;
                    let plan = ground.explain(&asked.url()?, asked.fields()?).await?;
                    serde_json::to_value(plan).map_err(|error| error.to_string())
                }
            },
        )
}

/// What `explain` is asked.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    url: String,
    #[serde(default)]
    fields: BTreeMap<String, String>,
}

impl Asked {
    fn url(&self) -> Result<Url, String> {
        Url::parse(&self.url).map_err(|error| format!("{}: {error}", self.url))
    }

    fn fields(&self) -> Result<HeaderMap, String> {
        let field = |(name, value): (&String, &String)| {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| format!("{name}: {error}"))?;
            let value = HeaderValue::from_str(value).map_err(|error| format!("{name}: {error}"))?;
            Ok((name, value))
        };
        self.fields.iter().map(field).collect()
    }
}

fn peers(remotes: &[RemotePeer]) -> Result<Peers, GroundError> {
    let mut listed = Vec::new();
    for remote in remotes {
        for (index, line) in remote.keys.iter().enumerate() {
            let key: PublicKey =
                line.parse().map_err(|error: farhop_transport::identity::KeyError| GroundError::Key {
                    remote: remote.name.to_string(),
                    number: index + 1,
                    reason: error.to_string(),
                })?;
            listed.push((remote.name.to_string(), key));
        }
    }
    Ok(Peers::new(listed)?)
}

fn tell(bus: &Bus, refused: &Refused) {
    match &refused.error {
        CarrierError::Stranger { addr, key } => {
            bus.emit(Event::StrangerRefused { address: addr.to_string(), key: key.to_string() });
        }
        // The operator here can see to it that the other end learns of this key.
        error @ CarrierError::Denied { .. } => tracing::warn!("no carrier: {error}"),
        error => tracing::debug!(address = %refused.addr, "no carrier: {error}"),
    }
}

/// Settings that were read anew: what is live is put into force, the rest is named. The remotes that may be there from now on,
/// unless all stays as it was.
fn apply(
    ground: &Ground,
    started: &GroundSettings,
    reloaded: Result<GroundSettings, String>,
) -> Option<Peers> {
    let read = reloaded.and_then(|settings| {
        let peers = peers(&settings.remote).map_err(|error| error.to_string())?;
        Ok((settings, peers))
    });
    let (settings, peers) = match read {
        Ok(read) => read,
        Err(error) => {
            tracing::error!("settings stay as they are: {error}");
            return None;
        }
    };
    take_over(ground, started, settings);
    Some(peers)
}

/// Puts into force what of new settings can be, and says so of each that differs.
pub fn take_over(ground: &Ground, started: &GroundSettings, settings: GroundSettings) {
    let changes = changes(started, &*ground.settings(), &settings);
    let trusted = ground.set_settings(settings);
    for change in changes {
        match change.live {
            true if trusted.is_err() && ["origin.roots", "origin.crls"].contains(&change.key.as_str()) => {
                tracing::error!(setting = change.key, "is not in force");
            }
            true => tracing::info!(setting = change.key, "is in force"),
            false => tracing::warn!(setting = change.key, "needs a restart to be in force"),
        }
    }
    if let Err(error) = trusted {
        tracing::error!("certificates are judged by what was read before: {error}");
    }
}

fn signals(kind: SignalKind) -> Result<Signal, GroundError> {
    signal(kind).map_err(system("signals"))
}

fn system(what: &'static str) -> impl Fn(io::Error) -> GroundError {
    move |error| GroundError::System { what, error }
}
