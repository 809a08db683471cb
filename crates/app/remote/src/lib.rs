//! The end beside the users: takes their requests, answers what it holds or was promised, asks ground for the rest.
//!
//! A request's life in files: `clients` → `request` → `exchange` → `lookup` → `ask` → `arriving`, with
//! `promising` and `desk` for what comes unasked and `uplink` for the carrier beneath.

mod admission;
mod adrift;
mod announced;
mod answers;
mod arriving;
mod ask;
mod attend;
mod auth;
mod bodies;
mod books;
mod caller;
mod calls;
mod carry;
mod class;
mod classifier;
mod clients;
mod collapse;
mod completing;
mod components;
mod consent;
mod course;
mod desk;
mod dictionaries;
mod dns;
mod exchange;
mod finishing;
mod held;
mod holdouts;
mod intercept;
mod kept;
mod login;
mod lookup;
mod mirror;
mod opened;
mod overheard;
mod own_dictionary;
mod parts;
pub mod passwords;
mod portal;
mod priority;
mod promising;
mod request;
mod revalidate;
mod running;
mod section;
mod shown;
mod start;
mod status;
mod stock;
mod transparent;
mod tun;
mod tunnel;
mod udp;
mod under_way;
mod unreachable;
mod uplink;
mod upload;
mod users;
mod validating;
mod watched;
mod websocket;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use announced::Announced;
use auth::Gate;
pub use classifier::{Classifier, Observed, hear};
use consent::Consent;
pub use consent::ConsentError;
use desk::Desk;
pub use dns::DnsError;
use farhop_authority::Leaves;
use farhop_events::{Bus, ExchangeId};
use farhop_settings::RemoteSettings;
use farhop_store::{Budget, Repository};
use farhop_transport::capacity::{Expected, Modem};
use farhop_transport::path::PathPlan;
use farhop_transport::quic::Repairs;
use farhop_transport::socket::udp::UdpSocket;
use farhop_tuning::Parameters;
pub use running::Running;
pub use start::{Reach, StartError, start, start_on};
use tokio::sync::watch;
use tokio::time::Instant;
pub use tun::{Device, Place};
pub use udp::{Answerer, Answers};
use unreachable::Unreachable;
use uplink::Uplink;
use users::Users;

/// A part of an arriving body that is no further ahead than this is waited for, however short the way.
const LEAST_AHEAD: u64 = 256 << 10;

/// The remote, shared by all its tasks.
pub struct Remote {
    settings: RwLock<Arc<RemoteSettings>>,
    bus: Bus,
    components: Vec<components::Half>,
    rules: class::Rules,
    flows: OnceLock<Arc<udp::Flows>>,
    uplink: Uplink,
    /// Whom capacity is asked of.
    modem: Option<Modem>,
    repository: Arc<dyn Repository>,
    budget: Arc<Budget>,
    desk: Mutex<Desk>,
    users: Users,
    gate: Gate,
    consent: Arc<Consent>,
    leaves: Option<Leaves>,
    within: RwLock<Arc<farhop_front::Settings>>,
    /// What fits the path by the last carrier.
    sizes: watch::Sender<Parameters>,
    /// The carrier's socket, where it is one of the system.
    socket: OnceLock<Arc<UdpSocket>>,
    secret: portal::Secret,
    ledger: portal::Ledger,
    plan: PathPlan,
    repairs: Repairs,
    unreachable: Unreachable,
    finishing: finishing::Finishing,
    announced: Announced,
    strange: transparent::Strange,
    doubts: revalidate::Doubts,
    validating: validating::Validating,
    collapsing: Arc<collapse::Collapsing>,
    mirror: mirror::Mirror,
    parts: parts::Parts,
    holdouts: holdouts::Holdouts,
    bodies: bodies::Bodies,
    dictionaries: dictionaries::Dictionaries,
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

impl Remote {
    fn settings(&self) -> Arc<RemoteSettings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Those that the settings want.
    fn components(&self) -> &[components::Half] {
        &self.components
    }

    /// What the operator says of what crosses.
    fn rules(&self) -> &class::Rules {
        &self.rules
    }

    fn uplink(&self) -> &Uplink {
        &self.uplink
    }

    /// So many bytes will be sent soon, as far as that is known and there is somebody to be told.
    fn expect(&self, bytes: Option<u64>) -> Expected {
        let both = self.modem.as_ref().zip(bytes);
        both.map_or_else(Expected::default, |(modem, bytes)| modem.expect(bytes))
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

    /// What connections are told that begin now; those whose TLS is looked into share its sessions.
    fn within(&self) -> Arc<farhop_front::Settings> {
        Arc::clone(&self.within.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// This fits the path from now on. Uploads may go as far ahead as that makes it worth while.
    fn fit(&self, sizes: &Parameters) {
        self.within().windows.fit(sizes.neighbours);
        self.sizes.send_replace(*sizes);
        if let Some(socket) = self.socket.get() {
            socket.grow(sizes.socket_buffer);
        }
    }

    /// How long a request waits for a lost carrier to come back.
    fn outage(&self) -> Duration {
        self.settings().timeouts.outage.unwrap_or_else(|| self.sizes.borrow().outage)
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

    /// Bytes that come while a request crosses: of a body that is arriving, what is further away is asked for.
    fn soon(&self) -> u64 {
        let rate = self.plan.forward.unwrap_or(start::UNKNOWN_RATE);
        // A body may share the link with others, and a request waits for its turn, too.
        (2 * rate.bytes_in(self.plan.rtt).0).max(LEAST_AHEAD)
    }

    /// What still comes of bodies for which nobody waits.
    fn finishing(&self) -> &finishing::Finishing {
        &self.finishing
    }

    fn unreachable(&self) -> &Unreachable {
        &self.unreachable
    }

    fn announced(&self) -> &Announced {
        &self.announced
    }

    /// Names that ground does not know.
    fn strange(&self) -> &transparent::Strange {
        &self.strange
    }

    /// What is being asked about behind clients' backs.
    fn doubts(&self) -> &revalidate::Doubts {
        &self.doubts
    }

    fn holdouts(&self) -> &holdouts::Holdouts {
        &self.holdouts
    }

    /// What ground asks about.
    fn validating(&self) -> &validating::Validating {
        &self.validating
    }

    /// What is on its way to somebody and may answer others, too.
    fn collapsing(&self) -> &Arc<collapse::Collapsing> {
        &self.collapsing
    }

    /// What ground was told of what is held.
    fn mirror(&self) -> &mirror::Mirror {
        &self.mirror
    }

    fn parts(&self) -> &parts::Parts {
        &self.parts
    }

    /// What changed texts may be sent against.
    fn bodies(&self) -> &bodies::Bodies {
        &self.bodies
    }

    /// The trained dictionaries that are held.
    fn dictionaries(&self) -> &dictionaries::Dictionaries {
        &self.dictionaries
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
