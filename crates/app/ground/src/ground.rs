//! What all carriers of a ground share, and how one is served. It listens nowhere: carriers are handed in, by
//! [`crate::run`] from a socket, by `farhop local` from inside the process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use farhop_control::Chosen;
use farhop_events::{Bus, Event};
use farhop_htotp::frame::Hello;
use farhop_htotp::scheduler::Pace;
use farhop_htotp::session::{Config, Probe, Role};
use farhop_origin::TrustError;
use farhop_settings::GroundSettings;
use farhop_transport::Connection;
use farhop_transport::begun::Begun;
use farhop_transport::hop::Hop;
use farhop_transport::learned::Learned;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::Repairs;
use farhop_transport::socket::udp::UdpSocket;
use farhop_tuning::Parameters;
use farhop_units::BitRate;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use url::Url;

use crate::ahead::Ahead;
use crate::bases::Bases;
use crate::carrier::Carrier;
use crate::components;
use crate::dictionaries::Dictionaries;
use crate::error::GroundError;
use crate::explain::{Explained, explain};
use crate::imaging::{Means, Squeezing};
use crate::mirrors::Mirrors;
use crate::models::PageModels;
use crate::named::Pages;
use crate::names::{Names, Speaker};
use crate::origins::Origins;
use crate::owner::Owners;
use crate::plan::path_plan;
use crate::policies::{Policies, keep};
use crate::recent::Recent;
use crate::returning::Centre;
use crate::spool::Spool;
use crate::streaming::Streaming;

/// Bodies that are squeezed in a stream at a time. At level 9 an encoder holds 3.5 MB, at level 19 6 MB.
pub(crate) const ENCODERS: usize = 12;
/// What bodies that stream as their origin coded them refer back over, together, in KB: at both ends decoders hold as much.
const UNTOUCHED_KB: usize = 48 * 1024;
/// What all texts take that are gathered to be sent against others, in KB.
const ALIKE_KB: usize = 24 * 1024;

/// The end near the internet. Clones are the same ground.
#[derive(Clone)]
pub struct Ground(Arc<Shared>);

/// See [`Ground`].
pub(crate) struct Shared {
    settings: RwLock<Arc<GroundSettings>>,
    pub(crate) bus: Bus,
    pub(crate) components: Vec<components::Half>,
    pub(crate) origins: Origins,
    pub(crate) owners: Owners,
    pub(crate) ahead: Ahead,
    pub(crate) names: Names,
    pub(crate) recent: Recent,
    pub(crate) pages: Pages,
    pub(crate) mirrors: Mirrors,
    pub(crate) models: PageModels,
    pub(crate) spool: Spool,
    pub(crate) centre: Centre,
    pub(crate) encoders: Semaphore,
    pub(crate) untouched: Semaphore,
    /// KB of texts that are gathered to be sent against others.
    pub(crate) alike: Semaphore,
    pub(crate) squeezing: Squeezing,
    pub(crate) policies: Arc<Policies>,
    pub(crate) bases: Arc<Bases>,
    pub(crate) streaming: Streaming,
    pub(crate) dictionaries: Dictionaries,
    pub(crate) plan: PathPlan,
    /// Of the socket on which carriers over QUIC come.
    pub(crate) repairs: OnceLock<Repairs>,
    /// On which carriers over QUIC come, where it is one of the system.
    socket: OnceLock<Arc<UdpSocket>>,
    /// Of each listener.
    begun: RwLock<Vec<Begun>>,
    /// Of the ways to remotes.
    learned: OnceLock<Learned>,
    epoch: u64,
    started: Instant,
    carriers: Mutex<BTreeMap<u64, Arc<Carrier>>>,
    next_carrier: AtomicU64,
}

impl std::fmt::Debug for Ground {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ground").field("carriers", &self.0.lock().len()).finish()
    }
}

impl Ground {
    /// A ground without carriers. `epoch` is a number that no earlier process of this ground had. Must be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// A setting names what does not exist, or the system's name resolution cannot be set up.
    pub fn new(settings: GroundSettings, epoch: u64, bus: Bus) -> Result<Ground, GroundError> {
        let plan = path_plan(&settings.link);
        bus.set_host_only(settings.log.host_only);
        let (centre, speaking) = Centre::new(&settings);
        let shared = Shared {
            centre,
            origins: Origins::new(&settings, bus.clone())?,
            spool: Spool::new(&settings.spool),
            squeezing: Squeezing::new(&settings.squeeze),
            policies: Arc::new(Policies::new(&settings.squeeze)),
            models: PageModels::open(&settings.models, &bus)?,
            bases: Arc::new(Bases::new(settings.squeeze.deltas.0)),
            dictionaries: Dictionaries::new(settings.squeeze.dictionaries.0),
            settings: RwLock::new(Arc::new(settings)),
            streaming: Streaming::default(),
            bus,
            components: components::all(),
            owners: Owners::default(),
            ahead: Ahead::default(),
            names: Names::default(),
            recent: Recent::default(),
            pages: Pages::default(),
            mirrors: Mirrors::default(),
            encoders: Semaphore::new(ENCODERS),
            untouched: Semaphore::new(UNTOUCHED_KB),
            alike: Semaphore::new(ALIKE_KB),
            plan,
            repairs: OnceLock::new(),
            socket: OnceLock::new(),
            begun: RwLock::default(),
            learned: OnceLock::new(),
            epoch,
            started: Instant::now(),
            carriers: Mutex::default(),
            next_carrier: AtomicU64::new(0),
        };
        for speaks in speaking {
            tokio::spawn(speaks);
        }
        let shared = Arc::new(shared);
        let (judged, bus) = (Arc::downgrade(&shared.policies), shared.bus.clone());
        let asked = Arc::downgrade(&shared);
        tokio::spawn(keep(judged, bus, move || Some(asked.upgrade()?.squeezing.used())));
        Ok(Ground(shared))
    }

    /// Lets `status` tell what this socket repairs. The first word counts.
    pub fn show_repairs(&self, repairs: Repairs) {
        let _ = self.0.repairs.set(repairs);
    }

    /// Lets connections be in the names of clients. The first word counts.
    pub fn speak_through(&self, speaker: Speaker) {
        self.0.names.speak_through(speaker);
    }

    /// Lets the buffers of the socket on which carriers come grow with the quickest of them. The first word counts.
    pub fn grow_buffers_of(&self, socket: &Arc<UdpSocket>) {
        let _ = self.0.socket.set(Arc::clone(socket));
    }

    /// Lets remotes be told what never came for want of a handshake's last part. Call it for each listener.
    pub fn know(&self, begun: &Begun) {
        self.0.begun.write().unwrap_or_else(PoisonError::into_inner).push(begun.clone());
    }

    /// Keeps what carriers measure where the socket on which they come looks for it. The first word counts.
    pub fn learn(&self, learned: &Learned) {
        let _ = self.0.learned.set(learned.clone());
    }

    /// What the settings say of the long hop.
    pub fn plan(&self) -> PathPlan {
        self.0.plan
    }

    /// Serves `connection` from the remote of this name, until it ends.
    pub async fn serve_carrier(&self, connection: impl Into<Connection>, remote: Arc<str>) {
        self.serve_until(std::future::pending(), connection, remote).await;
    }

    /// Likewise, until `revoked` completes: from then on its remote gets nothing more.
    pub async fn serve_until(
        &self,
        revoked: impl Future<Output = ()>,
        connection: impl Into<Connection>,
        remote: Arc<str>,
    ) {
        let shared = &self.0;
        let connection: Connection = connection.into();
        let over = connection.kind().to_string();
        let address = connection.remote_address().to_string();
        let round_trip_ms = connection.rtt().as_millis() as u64;
        let number = shared.next_carrier.fetch_add(1, Relaxed);
        let config = shared.session_config(shared.plan.round_trip(&connection));
        let hop = Hop::start_lasting(connection.clone(), Role::Ground, config, &shared.plan);
        if let Some(learned) = shared.learned.get() {
            hop.learn(learned, connection.remote_address().ip());
        }
        let carrier = Carrier::new(Arc::clone(shared), hop, Arc::clone(&remote), number, connection);
        shared.change(|carriers| carriers.insert(number, Arc::clone(&carrier)));
        let peer = remote.to_string();
        shared.bus.emit(Event::CarrierUp { peer, address, over, round_trip_ms, early: false });
        {
            let serving = async {
                carrier.serve().await;
                carrier.keep().await;
            };
            tokio::pin!(serving);
            tokio::select! {
                () = &mut serving => {}
                () = revoked => {
                    carrier.hop.close();
                    serving.await;
                }
            }
        }
        shared.change(|carriers| carriers.remove(&number));
    }

    /// Puts new settings into force, as far as they are live (the others are read once, at the start).
    ///
    /// # Errors
    /// Whom to trust can't be read: that stays as it was, the rest is in force.
    pub fn set_settings(&self, settings: GroundSettings) -> Result<(), TrustError> {
        self.0.bus.set_host_only(settings.log.host_only);
        let trusted = self.0.origins.set(&settings);
        self.0.squeezing.set(&settings.squeeze);
        self.0.policies.set(&settings.squeeze, &self.0.bus);
        self.0.models.set(&settings.models);
        self.0.bases.set(settings.squeeze.deltas.0);
        self.0.dictionaries.set(settings.squeeze.dictionaries.0);
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        trusted
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<GroundSettings> {
        self.0.settings()
    }

    /// Tells every remote to begin nothing more, and waits at most `patience` for what is under way. Then closes.
    pub async fn drain(&self, patience: Duration) {
        let carriers = self.0.carriers();
        let deadline = Instant::now() + patience;
        let mut draining: JoinSet<()> = JoinSet::new();
        for carrier in carriers {
            draining.spawn(async move { carrier.drain(deadline).await });
        }
        while draining.join_next().await.is_some() {}
        if let Some(stock) = self.0.origins.stock() {
            stock.close().await;
        }
        let models = self.0.models.clone();
        let _ = tokio::task::spawn_blocking(move || models.save()).await;
    }

    /// The plan for the page at `url`, as a browser with these request fields would get it: what ground would promise
    /// and what it would leave to the browser. Nothing crosses.
    ///
    /// # Errors
    /// Why the page cannot be had, in words.
    pub async fn explain(&self, url: &Url, fields: HeaderMap) -> Result<Explained, String> {
        explain(&self.0, url, fields).await
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }

    /// What `farhop models` shows and erases.
    ///
    /// # Errors
    /// What is asked is not understood.
    pub fn models(&self, args: Value) -> Result<Value, String> {
        self.0.models.command(args)
    }

    /// What `farhop path` shows.
    pub fn path(&self) -> Value {
        let carriers: Vec<Value> = self.0.carriers().iter().map(|carrier| carrier.path()).collect();
        json!({ "end": "ground", "carriers": carriers })
    }

    /// Forgets what is chosen of the responses held on disk; gives how many, where not all.
    ///
    /// # Errors
    /// Nothing of that kind is held here, in words.
    pub async fn flush(&self, chosen: Chosen) -> Result<Option<u64>, String> {
        match (chosen, self.0.origins.stock()) {
            (Chosen::User(_), _) => {
                Err("ground holds what anyone may have; flush what is one user's at the remote".into())
            }
            (Chosen::All, stock) => {
                if let Some(stock) = stock {
                    stock.clear().await;
                }
                Ok(None)
            }
            (chosen, Some(stock)) => Ok(Some(stock.forget(chosen).await)),
            (_, None) => Ok(Some(0)),
        }
    }

    /// What `farhop status` shows of the store on disk; nothing where there is none.
    pub async fn on_disk(&self) -> Value {
        match self.0.origins.stock() {
            Some(stock) => stock.status().await,
            None => Value::Null,
        }
    }

    /// What `farhop status` shows besides.
    pub fn status(&self) -> Value {
        let carriers: Vec<Value> = self.0.carriers().iter().map(|carrier| carrier.status()).collect();
        json!({
            "end": "ground",
            "version": env!("CARGO_PKG_VERSION"),
            "up_s": self.0.started.elapsed().as_secs(),
            "texts": self.0.bases.status(),
            "dictionaries": self.0.dictionaries.status(),
            "origin_dictionaries": self.0.origins.dictated(),
            "loads": self.0.policies.status(),
            "components": self.0.components.iter().map(|half| half.component().name).collect::<Vec<_>>(),
            "carriers": carriers,
            "models": self.0.models.status(),
        })
    }
}

impl Shared {
    /// The settings in force.
    pub(crate) fn settings(&self) -> Arc<GroundSettings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A carrier's path wants these sizes.
    pub(crate) fn fit(&self, sizes: &Parameters) {
        self.origins.fit(sizes);
        if let Some(socket) = self.socket.get() {
            socket.grow(sizes.socket_buffer);
        }
    }

    /// Since the start.
    pub(crate) fn up(&self) -> Duration {
        self.started.elapsed()
    }

    /// What may be done to bodies at this moment that cross a link of this rate.
    pub(crate) fn means(&self, rate: Option<BitRate>) -> Means {
        self.squeezing.means(&self.settings().squeeze, rate)
    }

    /// The carrier of this name to this remote, if anything of it is kept.
    pub(crate) fn carrier_named(&self, remote: &str, name: u64) -> Option<Arc<Carrier>> {
        let bears = |carrier: &Carrier| carrier.name().is_some_and(|own| own.number() == name);
        self.lock().values().find(|carrier| *carrier.remote == *remote && bears(carrier)).cloned()
    }

    /// Whether nothing came of what was said on the carrier of this name, since its handshake was not over here, nor ever will be.
    pub(crate) fn never_came(&self, name: u64) -> bool {
        let begun = self.begun.read().unwrap_or_else(PoisonError::into_inner);
        begun.iter().any(|begun| begun.never_came(name))
    }

    /// Those that have not ended.
    fn carriers(&self) -> Vec<Arc<Carrier>> {
        self.lock().values().filter(|carrier| carrier.hop.closed().is_none()).cloned().collect()
    }

    /// Since this ground began.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn session_config(&self, round_trip: Duration) -> Config {
        let hello = Hello {
            versions: Vec::new(),
            epoch: self.epoch,
            profile: self.settings().link.told().into(),
            agent: format!("farhop/{}", env!("CARGO_PKG_VERSION")),
        };
        Config {
            hello,
            pace: Pace { rate: self.plan.sending_rate(End::Ground), ..Pace::default() },
            bodies: self.bases.is_on() || self.dictionaries.is_on(),
            probe: Probe { patience: self.settings().probe.patience + round_trip, ..Probe::default() },
            keeps_log: true,
            held_pages: self.settings().bundle.enabled,
            ..Config::default()
        }
    }

    /// Adds a carrier or takes one away.
    fn change<T>(&self, how: impl FnOnce(&mut BTreeMap<u64, Arc<Carrier>>) -> T) {
        let mut carriers = self.lock();
        let gone = how(&mut carriers);
        self.origins.serve(carriers.len());
        drop(carriers);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Carrier>>> {
        self.carriers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
