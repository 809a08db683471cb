//! How the remote comes up: everything that can fail first, then the carrier and the tasks that serve.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use farhop_authority::{Authority, AuthorityError, Leaves};
use farhop_control::{ControlError, Server, Socket};
use farhop_events::Bus;
use farhop_front::{ListenError, Listener};
use farhop_htotp::mux::Spread;
use farhop_replacement::Link;
use farhop_settings::{CarrierKind, RemoteSettings, Spreading};
use farhop_store::{Budget, Disk, DiskError, DiskOptions, Key, KeyError, Repository, Store};
use farhop_transport::capacity::Modem;
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::memory::Memory;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::Dialer;
use farhop_transport::race::{Choice as Over, Dialers};
use farhop_transport::{Kind, tcp};
use farhop_tuning::Measured;
use farhop_units::BitRate;
use quinn::AsyncUdpSocket;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::adrift::Adrift;
use crate::announced::Announced;
use crate::attend::attend;
use crate::auth::Gate;
use crate::bodies::Bodies;
use crate::caller::{self, Caller, Target};
use crate::consent::{Consent, ConsentError};
use crate::desk::Desk;
use crate::dns::DnsError;
use crate::finishing::Finishing;
use crate::holdouts::Holdouts;
use crate::parts::Parts;
use crate::passwords::PasswordsError;
use crate::running::Running;
use crate::unreachable::Unreachable;
use crate::users::Users;
use crate::{Remote, class, clients, components, portal, promising, status, stock, transparent};

/// What is dear to bring again is judged by, and what is far, where the link's rate is not known.
pub(crate) const UNKNOWN_RATE: BitRate = BitRate::mbit(8);

/// Why the remote cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listening address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// An address of the DNS component.
    #[error(transparent)]
    Dns(#[from] DnsError),
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
    /// The store on disk.
    #[error(transparent)]
    Store(#[from] DiskError),
    /// Its key.
    #[error("store.key: {0}")]
    StoreKey(#[from] KeyError),
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
    /// Puts the first window of connections over TCP, where settings name one.
    pub first_window: Option<tcp::FirstWindow>,
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
    let addresses: Vec<_> = listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let components = components::of(&settings, listeners)?;
    let rules = class::Rules::new(&settings);
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
    let epoch = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |t| t.as_millis() as u64);
    let plan = reach.plan;
    let choice = caller::choice(&plan);
    let config = caller::session_config(&settings, &plan, epoch);
    let over = match settings.carrier {
        CarrierKind::Auto if is_kept => Over::Either,
        CarrierKind::Auto | CarrierKind::Quic => Over::Only(Kind::Quic),
        CarrierKind::Tcp => Over::Only(Kind::Tcp),
    };
    let options = tcp::Options::new(&plan, End::Remote, settings.tcp_congestion.as_deref())?;
    let spread = match settings.tcp_streams {
        Spreading::RoundRobin => Spread::RoundRobin,
        Spreading::Priority => Spread::Priority,
    };
    let lanes = settings.tcp_connections as usize;
    let tcp = tcp::Dialer::new(
        reach.identity.clone(),
        plan,
        options.spreading(spread).beginning_with(reach.first_window),
        lanes,
    );
    let mut quic = Dialer::new(reach.socket, reach.identity, plan, choice).map_err(StartError::Carrier)?;
    let paths = if is_kept { Some(Memory::open(&settings.paths)?) } else { None };
    if let Some(paths) = &paths {
        quic = quic.remembering(Arc::clone(paths));
    }
    let repairs = quic.repairs();
    let dialers = Dialers::new(quic, tcp, over, &plan);
    let longest_pause = settings.probe.reconnect_max;
    let quic_again = settings.quic_again;

    let budget = Budget::new(settings.repository.size.0);
    let repository = repository(&settings, &plan, Arc::clone(&budget))?;
    let late: Arc<OnceLock<Arc<Remote>>> = Arc::default();
    let (attended, asked) = (Arc::clone(&late), Arc::clone(&late));
    let sizes = plan.parameters(End::Remote, &Measured::default());
    within.windows.fit(sizes.neighbours);
    let outage = settings.timeouts.outage.unwrap_or(sizes.outage);
    let patience = move || asked.get().map_or(outage, |remote| remote.outage());
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
    let modem = settings.capacity.modem.as_ref().map(|at| (at.to_string(), settings.capacity.ahead.0));
    let modem = modem.map(|(at, most)| (at, Modem::new(most, None)));
    let remote = Arc::new(Remote {
        modem: modem.as_ref().map(|(_, modem)| modem.clone()),
        settings: RwLock::new(Arc::new(settings)),
        desk: Mutex::new(Desk::new(bus.clone())),
        holdouts: Holdouts::new(bus.clone(), epoch),
        bus,
        components,
        rules,
        flows: OnceLock::new(),
        uplink,
        users: Users::new(Arc::clone(&repository)),
        repository,
        parts: Parts::new(Arc::clone(&budget)),
        bodies: Bodies::default(),
        dictionaries: Default::default(),
        budget,
        gate,
        consent,
        leaves,
        within: RwLock::new(within),
        sizes: watch::Sender::new(sizes),
        socket: OnceLock::new(),
        secret: portal::Secret::random().map_err(|_| StartError::Random)?,
        ledger: portal::Ledger::default(),
        plan,
        repairs,
        unreachable: Unreachable::default(),
        finishing: Finishing::default(),
        announced: Announced::default(),
        strange: transparent::Strange::default(),
        doubts: Default::default(),
        validating: Default::default(),
        collapsing: Default::default(),
        mirror: Default::default(),
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
    if let Some((address, modem)) = modem {
        tasks.spawn(modem.speak_to(address));
    }
    let consent = Arc::clone(&remote.consent);
    tasks.spawn(async move { consent.keep().await });
    let (told, changes) = (Arc::clone(&remote), remote.repository().changes());
    tasks.spawn(async move { stock::tell_evicted(&told, changes).await });
    for half in remote.components() {
        half.start(&remote, &mut tasks);
    }
    if let Some(socket) = socket {
        tasks.spawn(status::server(&remote, Server::new(remote.bus.clone())).serve(socket));
    }
    Ok(Running { remote, addresses, tasks, paths })
}

/// Where responses are held, as the settings have it.
fn repository(
    settings: &RemoteSettings,
    plan: &PathPlan,
    budget: Arc<Budget>,
) -> Result<Arc<dyn Repository>, StartError> {
    let Some(folder) = settings.store.directory.clone() else {
        return Ok(Arc::new(Store::in_memory(budget)));
    };
    let link = Link { round_trip: plan.rtt, rate: plan.forward.unwrap_or(UNKNOWN_RATE) };
    let key = Key::load_or_make(&settings.store.key)?;
    let disk = Disk::open(DiskOptions { folder: folder.clone(), size: settings.store.size.0, key, link })?;
    let store = Store::on(disk, budget).map_err(|error| DiskError::Io { folder, error })?;
    Ok(Arc::new(store))
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

/// Lets promises lapse.
async fn keep_time(remote: Arc<Remote>) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tick.tick().await;
        let now = remote.now();
        remote.desk().lapse(now);
        remote.holdouts().close(now);
        promising::tell_unwanted(&remote);
        promising::tell_used(&remote);
    }
}
