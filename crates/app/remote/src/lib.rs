//! The end beside the users: takes their requests, answers what it holds or was promised, asks ground for the rest.
//!
//! A request's life in files: `clients` → `request` → `exchange` → `lookup` → `ask` → `arriving`, with
//! `promising` and `desk` for what comes unasked and `uplink` for the carrier beneath.

mod adrift;
mod announced;
mod answers;
mod arriving;
mod ask;
mod auth;
mod books;
mod caller;
mod carry;
mod clients;
mod consent;
mod course;
mod desk;
mod exchange;
mod files;
mod intercept;
mod lookup;
mod mirror;
pub mod passwords;
mod portal;
mod priority;
mod promising;
mod request;
mod status;
mod stock;
mod transparent;
mod tunnel;
mod unreachable;
mod uplink;
mod upload;
mod users;
mod websocket;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use adrift::Adrift;
use announced::Announced;
use auth::Gate;
use caller::{Caller, Target};
use consent::Consent;
pub use consent::ConsentError;
use desk::Desk;
use farhop_authority::{Authority, AuthorityError, Leaves};
use farhop_control::{ControlError, Server, Socket};
use farhop_events::{Bus, Event, ExchangeId};
use farhop_front::{ListenError, Listener};
use farhop_settings::remote::InterceptionSettings;
use farhop_settings::transparent::TransparentSettings;
use farhop_settings::{CarrierKind, RemoteSettings};
use farhop_store::{Budget, Memory, Repository};
use farhop_transport::hop::Incoming;
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Repairs};
use farhop_transport::race::{Choice as Over, Dialers};
use farhop_transport::{Kind, tcp};
use passwords::PasswordsError;
use quinn::AsyncUdpSocket;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use unreachable::Unreachable;
use uplink::{Carrier, Uplink};
use users::Users;

/// Why the remote cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listening address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The control socket.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// What users have switched off.
    #[error(transparent)]
    Consent(#[from] ConsentError),
    /// Names and passwords.
    #[error(transparent)]
    Passwords(#[from] PasswordsError),
    /// The CA for interception.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The system has no randomness to give.
    #[error("cannot start: the system's random number generator failed")]
    Random,
    /// The carrier's socket.
    #[error("cannot set up the carrier: {0}")]
    Carrier(std::io::Error),
    /// What is measured of paths cannot be kept.
    #[error(transparent)]
    Paths(#[from] farhop_transport::memory::MemoryError),
    /// The congestion control of carriers over TCP.
    #[error("tcp_congestion: {0}")]
    TcpCongestion(#[from] tcp::CongestionError),
    /// A key of a ground.
    #[error("ground {name}: {why}")]
    Key {
        /// Which.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

/// How the remote reaches ground.
pub struct Reach {
    /// The socket below QUIC.
    pub socket: Arc<dyn AsyncUdpSocket>,
    /// This end's key.
    pub identity: Identity,
    /// The link it is sized for.
    pub plan: PathPlan,
    /// For a ground in the same process, its address on that socket and its key: takes the place of `[[ground]]`. It is
    /// called over TCP only if the settings say so, since that socket may be no socket of the system.
    pub in_process: Option<(SocketAddr, PublicKey)>,
    /// The CA with which this end answers TLS; `None` where interception is off.
    pub authority: Option<Arc<Authority>>,
}

/// The remote, shared by all its tasks.
pub struct Remote {
    settings: RwLock<Arc<RemoteSettings>>,
    bus: Bus,
    uplink: Uplink,
    repository: Arc<dyn Repository>,
    budget: Arc<Budget>,
    desk: Mutex<Desk>,
    users: Users,
    gate: Gate,
    consent: Arc<Consent>,
    leaves: Option<Leaves>,
    within: Arc<farhop_front::Settings>,
    secret: portal::Secret,
    ledger: portal::Ledger,
    plan: PathPlan,
    repairs: Repairs,
    unreachable: Unreachable,
    announced: Announced,
    census: clients::Census,
    caught: clients::Census,
    exchanges: AtomicU64,
    busy: AtomicU64,
    started: Instant,
    drain: watch::Sender<bool>,
}

/// Counts an exchange as under way.
struct Busy<'a>(&'a AtomicU64);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A remote that runs until it is told to stop or dropped.
pub struct Running {
    remote: Arc<Remote>,
    addresses: Vec<SocketAddr>,
    tasks: JoinSet<()>,
}

/// Starts the remote: listeners first, so that a wrong address is told at once, then the carrier.
///
/// # Errors
/// See [`StartError`]; nothing is left running.
pub async fn start(
    settings: RemoteSettings,
    reach: Reach,
    bus: Bus,
    control: bool,
) -> Result<Running, StartError> {
    let mut listeners = Vec::new();
    for address in &settings.listen {
        listeners.push(Listener::bind(*address, clients::front_settings(&settings)).await?);
    }
    start_with(listeners, settings, reach, bus, control)
}

/// As [`start`], with sockets that listen already in place of the settings' addresses: a service manager's.
///
/// # Errors
/// See [`StartError`]; nothing is left running.
pub async fn start_on(
    inherited: Vec<TcpListener>,
    settings: RemoteSettings,
    reach: Reach,
    bus: Bus,
    control: bool,
) -> Result<Running, StartError> {
    let listen = |listener| Listener::from_listener(listener, clients::front_settings(&settings));
    let listeners = inherited.into_iter().map(listen).collect();
    start_with(listeners, settings, reach, bus, control)
}

fn start_with(
    listeners: Vec<Listener>,
    settings: RemoteSettings,
    reach: Reach,
    bus: Bus,
    control: bool,
) -> Result<Running, StartError> {
    bus.set_host_only(settings.log.host_only);
    let addresses = listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    // What runs in one process with its ground leaves nothing behind.
    let is_kept = reach.in_process.is_none();
    let consent = Arc::new(Consent::open(&settings.interception, is_kept, bus.clone())?);
    let gate = Gate::open(&settings.auth, bus.clone())?;
    let leaves = reach.authority.map(Leaves::new).transpose()?;
    let within = Arc::new(clients::front_settings(&settings));
    let socket = if control { Some(Socket::open(&settings.control)?) } else { None };
    let targets = match reach.in_process {
        Some((address, key)) => vec![caller::in_process("ground", address, key)],
        None => targets(&settings)?,
    };
    let epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    let plan = reach.plan;
    let choice = caller::choice(&plan);
    let config = caller::session_config(&settings, &plan, epoch);
    let over = match settings.carrier {
        CarrierKind::Auto if is_kept => Over::Either,
        CarrierKind::Auto | CarrierKind::Quic => Over::Only(Kind::Quic),
        CarrierKind::Tcp => Over::Only(Kind::Tcp),
    };
    let options = tcp::Options::new(&plan, End::Remote, settings.tcp_congestion.as_deref())?;
    let lanes = settings.tcp_connections as usize;
    let tcp = tcp::Dialer::new(reach.identity.clone(), plan, options, lanes);
    let mut quic = Dialer::new(reach.socket, reach.identity, plan, choice).map_err(StartError::Carrier)?;
    if choice.searches() && is_kept {
        quic = quic.remembering(farhop_transport::memory::Memory::open(&settings.paths)?);
    }
    let repairs = quic.repairs();
    let dialers = Dialers::new(quic, tcp, over, &plan);
    let longest_pause = settings.probe.reconnect_max;
    let quic_again = settings.quic_again;

    let budget = Budget::new(settings.repository.size.0);
    let late: Arc<std::sync::OnceLock<Arc<Remote>>> = Arc::default();
    let (attended, asked) = (Arc::clone(&late), Arc::clone(&late));
    let outage = settings.timeouts.outage;
    let patience = move || asked.get().map_or(outage, |remote| remote.settings().timeouts.outage);
    let adrift = Arc::new(Adrift::new(patience));
    let caller =
        Caller { dialers, plan, quic_again, targets, config, longest_pause, adrift, bus: bus.clone() };
    let (uplink, calling) = caller.start(move |carrier| {
        let remote = attended.get().cloned();
        async move {
            if let Some(remote) = remote {
                attend(remote, carrier).await;
            }
        }
    });
    let remote = Arc::new(Remote {
        settings: RwLock::new(Arc::new(settings)),
        desk: Mutex::new(Desk::new(bus.clone())),
        bus,
        uplink,
        repository: Arc::new(Memory::new(Arc::clone(&budget))),
        budget,
        users: Users::default(),
        gate,
        consent,
        leaves,
        within,
        secret: portal::Secret::random().map_err(|_| StartError::Random)?,
        ledger: portal::Ledger::default(),
        plan,
        repairs,
        unreachable: Unreachable::default(),
        announced: Announced::default(),
        census: clients::Census::default(),
        caught: clients::Census::default(),
        exchanges: AtomicU64::new(1),
        busy: AtomicU64::new(0),
        started: Instant::now(),
        drain: watch::Sender::new(false),
    });
    // Set before anything can look: the calls begin below.
    let _ = late.set(Arc::clone(&remote));

    let mut tasks = JoinSet::new();
    tasks.spawn(calling);
    tasks.spawn(keep_time(Arc::clone(&remote)));
    let consent = Arc::clone(&remote.consent);
    tasks.spawn(async move { consent.keep().await });
    let (told, changes) = (Arc::clone(&remote), remote.repository().changes());
    tasks.spawn(async move { stock::tell_evicted(&told, changes).await });
    for listener in listeners {
        tasks.spawn(clients::accept(Arc::clone(&remote), listener));
    }
    if let Some(socket) = socket {
        tasks.spawn(status::server(&remote, Server::new(remote.bus.clone())).serve(socket));
    }
    Ok(Running { remote, addresses, tasks })
}

fn targets(settings: &RemoteSettings) -> Result<Vec<Target>, StartError> {
    let mut targets = Vec::new();
    for peer in &settings.ground {
        let name = peer.name.to_string();
        let keys = peer.keys.iter().map(|key| key.parse::<PublicKey>()).collect::<Result<Vec<_>, _>>();
        let keys = keys.map_err(|why| StartError::Key { name: name.clone(), why: why.to_string() })?;
        targets.push(Target { name, address: peer.address.clone(), keys });
    }
    Ok(targets)
}

/// Takes what ground begins, for as long as the carrier lasts.
async fn attend(remote: Arc<Remote>, carrier: Carrier) {
    tokio::select! {
        () = take(&remote, &carrier) => {}
        never = mirror::keep(&remote, &carrier.hop) => match never {},
    }
    remote.desk().carrier_lost(carrier.generation, remote.now());
}

async fn take(remote: &Arc<Remote>, carrier: &Carrier) {
    while let Some(incoming) = carrier.hop.accept().await {
        match incoming {
            Incoming::Push { promise, receiver } => promising::pushed(remote, carrier, promise, receiver),
            Incoming::Hello(hello) => {
                tracing::debug!(target: "farhop", "ground {} is {}", carrier.peer, hello.agent);
            }
            // A ground that drains goes on with what is open; its end brings the next carrier.
            Incoming::Drain | Incoming::Unwanted { .. } | Incoming::Wanted { .. } => {}
            Incoming::Rejoined { exchange } => {
                remote.bus().emit(Event::Rejoined { exchange: ExchangeId(exchange) });
            }
            Incoming::Rejoin { .. }
            | Incoming::Exchange { .. }
            | Incoming::Tunnel { .. }
            | Incoming::Prepare { .. }
            | Incoming::Mirror(_) => {}
        }
    }
}

/// Lets promises lapse.
async fn keep_time(remote: Arc<Remote>) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tick.tick().await;
        let now = remote.now();
        remote.desk().lapse(now);
        promising::tell_unwanted(&remote);
    }
}

impl Running {
    /// Addresses on which clients are served.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves connections that were caught on their way, as these listeners accept them: their local address is where
    /// they were to lead.
    pub fn catch(&mut self, listeners: Vec<TcpListener>) {
        let settings = self.remote.settings();
        let mut front = clients::front_settings(&settings);
        front.connections = settings.transparent.connections as usize;
        for listener in listeners {
            let listener = Listener::from_listener(listener, front.clone());
            self.tasks.spawn(transparent::accept(Arc::clone(&self.remote), listener));
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
            ground: kept.ground.clone(),
            carrier: kept.carrier,
            quic_again: kept.quic_again,
            tcp_connections: kept.tcp_connections,
            tcp_congestion: kept.tcp_congestion.clone(),
            role: kept.role,
            transparent: TransparentSettings {
                enabled: kept.transparent.enabled,
                connections: kept.transparent.connections,
                mark: kept.transparent.mark,
                ..settings.transparent.clone()
            },
            auth,
            interception,
            ..settings
        };
        *current = Arc::new(settings);
    }

    /// Answers TLS with the certificates of `authority` from the next connection on, as after a rotation; where
    /// interception is off it stays so.
    pub fn renew(&self, authority: Arc<Authority>) {
        if let Some(leaves) = &self.remote.leaves {
            leaves.renew(authority);
        }
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
        self.remote.consent.save().await;
    }
}

impl Remote {
    fn settings(&self) -> Arc<RemoteSettings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn bus(&self) -> &Bus {
        &self.bus
    }

    fn uplink(&self) -> &Uplink {
        &self.uplink
    }

    fn repository(&self) -> &dyn Repository {
        &*self.repository
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn users(&self) -> &Users {
        &self.users
    }

    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn consent(&self) -> &Arc<Consent> {
        &self.consent
    }

    /// Certificates for the hosts whose TLS is answered here; `None` where interception is off.
    fn leaves(&self) -> Option<&Leaves> {
        self.leaves.as_ref()
    }

    /// What connections are told whose TLS is looked into; they share its sessions.
    /// Uploads may go as far ahead as the carrier makes it worth while.
    fn within(&self) -> Arc<farhop_front::Settings> {
        let sizes = match self.uplink.now() {
            Some(carrier) => carrier.hop.sizes(),
            None => self.plan.parameters(End::Remote, &Default::default()),
        };
        Arc::new(farhop_front::Settings {
            stream_window: sizes.neighbour_stream,
            connection_window: sizes.neighbour_connection,
            ..(*self.within).clone()
        })
    }

    fn secret(&self) -> &portal::Secret {
        &self.secret
    }

    fn ledger(&self) -> &portal::Ledger {
        &self.ledger
    }

    /// The link that this end is sized for.
    fn plan(&self) -> &PathPlan {
        &self.plan
    }

    fn unreachable(&self) -> &Unreachable {
        &self.unreachable
    }

    fn announced(&self) -> &Announced {
        &self.announced
    }

    fn census(&self) -> &clients::Census {
        &self.census
    }

    /// Connections that were caught, by client.
    fn caught(&self) -> &clients::Census {
        &self.caught
    }

    fn next_exchange(&self) -> ExchangeId {
        ExchangeId(self.exchanges.fetch_add(1, Ordering::Relaxed))
    }

    fn busy(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(&self.busy)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    async fn draining(&self) {
        // The sender lives as long as this.
        let _ = self.drain.subscribe().wait_for(|drains| *drains).await;
    }
}
