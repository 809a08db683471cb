//! One carrier: takes what its remote begins and gives each to the ground half of its component (`components`), and knows
//! what is under way on it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_bundle::{Likeness, Unasked};
use farhop_component::keep_to;
use farhop_events::{Event, ExchangeId};
use farhop_freshness::Validators;
use farhop_htotp::frame::Verdict;
use farhop_htotp::frame::{Hello, Priority};
use farhop_htotp::mirror::Word;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_settings::CarrierCeilingSettings;
use farhop_squeeze::{LARGEST_BASE, Policy};
use farhop_transport::hop::{Claim, Hop, Incoming};
use farhop_transport::path::End;
use farhop_transport::{Connection, Kind, Name};
use farhop_tuning::ASSUMED_RATE;
use farhop_units::BitRate;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::ahead::Visitor;
use crate::bases::Memory;
use crate::components;
use crate::ground::Shared;
use crate::imaging::Means;
use crate::kin::{self, Kin, Recipient};
use crate::mirror::{Mirror, Stale};
use crate::named::Opener;
use crate::overtaken::Overtaken;
use crate::owner::Owner;
use crate::passing::{Found, Pass, Passing};
use crate::policies::Outlet;
use crate::stock::Former;
use crate::streaming;
use crate::treatment::Treatment;

/// How often a carrier that is drained is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// What a carrier that has ended takes besides the bytes that it keeps.
const REST: usize = 16 * 1024;
/// Scheduling and the peer's delayed acknowledgement, beyond the link's own time.
const LEAST_FAREWELL: Duration = Duration::from_millis(100);

/// A carrier and what is under way on it.
pub(crate) struct Carrier {
    pub(crate) ground: Arc<Shared>,
    pub(crate) hop: Hop,
    pub(crate) remote: Arc<str>,
    /// Whose the remote's users are, for as long as this carrier numbers them.
    owners: Arc<str>,
    pub(crate) connection: Connection,
    since: Instant,
    state: Mutex<State>,
    number: u64,
    mirror: Arc<Mutex<Mirror>>,
    passing: Arc<Passing>,
    pub(crate) overtaken: Overtaken,
    /// Exchanges, tunnels, and fetches of what nobody asked for.
    under_way: AtomicU64,
    exchanges: AtomicU64,
    tunnels: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Promises that are not kept yet.
    promises: BTreeMap<u64, Promise>,
    tasks: JoinSet<()>,
    hello: Option<Hello>,
}

/// Who has to be told what becomes of a promise.
struct Promise {
    /// Rings when it is not wanted; so does dropping it.
    _bell: oneshot::Sender<()>,
    /// Told when the browser asks for it, and when it thinks better of how urgent that is.
    wanted: Option<Wanted>,
}

type Wanted = Arc<dyn Fn(Priority) + Send + Sync>;

impl Carrier {
    /// Carrier `number` over `hop`, which runs on `connection`, to the remote of this name.
    pub(crate) fn new(
        ground: Arc<Shared>,
        hop: Hop,
        remote: Arc<str>,
        number: u64,
        connection: Connection,
    ) -> Arc<Carrier> {
        let mirror = ground.mirrors.of(&remote);
        Arc::new(Carrier {
            ground,
            hop,
            // A remote that was restarted numbers its users anew: connections that an origin may take for one user
            // must not pass to another.
            owners: format!("{remote}#{number}").into(),
            remote,
            connection,
            since: Instant::now(),
            state: Mutex::default(),
            number,
            mirror,
            passing: Arc::default(),
            overtaken: Overtaken::default(),
            under_way: AtomicU64::new(0),
            exchanges: AtomicU64::new(0),
            tunnels: AtomicU64::new(0),
        })
    }

    /// Serves until the carrier ends. What nobody has asked for ends with it; the rest may go on on another.
    pub(crate) async fn serve(self: &Arc<Self>) {
        let heard = self.mirror().listen_to(self.number);
        self.hop.tell_heard(heard);
        let mut sizes = self.hop.sizes();
        let ceilings = keep_to(&self.hop, || {
            self.ground.settings().ceiling.iter().map(CarrierCeilingSettings::ceiling).collect()
        });
        tokio::pin!(ceilings);
        loop {
            self.ground.fit(&sizes.borrow_and_update());
            tokio::select! {
                // Fails only once the hop is gone, which is held here.
                Ok(()) = sizes.changed() => {}
                () = &mut ceilings => {}
                incoming = self.hop.accept() => match incoming {
                    Some(incoming) => self.begin(incoming),
                    None => break,
                },
            }
        }
        let exchanges = self.exchanges.load(Relaxed) + self.tunnels.load(Relaxed);
        let tasks = std::mem::take(&mut self.lock().tasks);
        // Dropped outside of the lock, which the ends of tasks take: nobody is left to answer.
        drop(tasks);
        // It is left from now on, and kept for the next carrier.
        self.ground.mirrors.of(&self.remote);
        let why = self.hop.closed().map_or_else(|| "it has ended".into(), |closed| closed.to_string());
        self.ground.bus.emit(Event::CarrierDown { peer: self.remote.to_string(), why, exchanges });
    }

    /// Each thing that the remote begins goes to the component that it is for; what is left is the carrier's own.
    fn begin(self: &Arc<Self>, incoming: Incoming) {
        match components::take(self, incoming) {
            Some(Incoming::Hello(hello)) => {
                self.lock().hello = Some(hello);
                if let Some(memory) = self.memory() {
                    self.ground.dictionaries.arrived(&memory);
                    self.ground.bases.arrived(&memory);
                }
            }
            Some(Incoming::Rejoin { carrier, claim }) => self.rejoin(carrier, claim),
            // A remote that drains begins nothing more; what is under way goes on. All else the session lets ground alone say.
            _ => {}
        }
    }

    /// What the remote holds has changed; told what differs where that shows.
    pub(crate) fn hear_mirror(&self, word: Word) {
        let differ = self.mirror().hear(self.number, word, self.ground.now());
        if let Some((of, buckets)) = differ {
            self.hop.tell_differ(of as u64, buckets);
        }
    }

    /// Goes on with what was under way on the carrier of this name, if that was this remote's. What its task still knows of
    /// that carrier are promises, and those ended with it.
    fn rejoin(&self, carrier: u64, claim: Claim) {
        let exchange = ExchangeId(claim.exchange());
        match self.ground.carrier_named(&self.remote, carrier) {
            Some(former) => {
                if let Verdict::GoesOn(_) = claim.grant(&former.hop) {
                    self.ground.bus.emit(Event::Rejoined { exchange });
                }
            }
            None if self.ground.never_came(carrier) => claim.never_came(),
            None => claim.refuse(),
        }
    }

    /// What counts an exchange or tunnel for as long as it is under way: it ends by itself when its handles say that
    /// nobody is there any more, which may be long after this carrier.
    pub(crate) fn counted_exchange(self: &Arc<Self>) -> [Count; 2] {
        self.counted(|carrier| &carrier.exchanges)
    }

    /// The same for a tunnel, wherever it leads.
    pub(crate) fn counted_tunnel(self: &Arc<Self>) -> [Count; 2] {
        self.counted(|carrier| &carrier.tunnels)
    }

    fn counted(self: &Arc<Self>, number: fn(&Carrier) -> &AtomicU64) -> [Count; 2] {
        [Count::new(self, number), Count::new(self, |carrier| &carrier.under_way)]
    }

    /// Knows of the carrier after its end, for as long and in as much memory as ground keeps anything: the remote may want
    /// to go on with what was under way, and has to be told what never came.
    pub(crate) async fn keep(&self) {
        if self.hop.has_given_up() {
            return;
        }
        let shelter = self.ground.spool.shelter(self.hop.kept().unwrap_or(0) + REST);
        if let Some(most) = shelter.bytes.checked_sub(REST) {
            self.hop.bound(most);
            tokio::time::sleep(self.ground.settings().spool.keep).await;
        }
        self.hop.give_up();
    }

    /// What the forward link carries: what settings say, else what was seen of late. `None`: nothing limits it.
    pub(crate) fn rate(&self) -> Option<BitRate> {
        let measured = || self.hop.measured().sending.unwrap_or(ASSUMED_RATE);
        let said = self.ground.plan.sending_rate(End::Ground);
        said.or_else(|| self.ground.settings().link.profile.is_none().then(measured))
    }

    /// To whom what is sent to this user goes.
    pub(crate) fn outlet(&self, owner: &Owner) -> Outlet {
        Outlet { remote: Arc::clone(&self.remote), user: owner.user }
    }

    /// The image policy for this user at this moment, for what is asked for or not.
    pub(crate) fn policy(&self, owner: &Owner, unasked: bool) -> Policy {
        self.ground.policies.policy(&self.remote, owner.user, unasked)
    }

    /// What may be done to bodies for this user at this moment, asked for or not.
    pub(crate) fn means(&self, owner: &Owner, unasked: bool) -> Means {
        let policy = self.policy(owner, unasked);
        let most = streaming::most(&self.ground.settings().streaming, policy, self.rate());
        Means { policy, most, ..self.ground.means(self.rate()) }
    }

    /// What both ends call it; none before the handshake is over here.
    pub(crate) fn name(&self) -> Option<Name> {
        self.hop.name().or_else(|| self.connection.name())
    }

    pub(crate) fn owner(&self, user: u64) -> Owner {
        Owner { remote: Arc::clone(&self.owners), user }
    }

    /// A user by a name that outlives the carrier; none before the remote has introduced itself.
    pub(crate) fn visitor(&self, user: u64) -> Option<Visitor> {
        self.lock().hello.as_ref().map(|hello| (hello.epoch, user))
    }

    /// Whose page a user of the remote opens; none before the remote has introduced itself.
    pub(crate) fn opener(&self, user: u64) -> Option<Opener> {
        Some(Opener { remote: Arc::clone(&self.remote), visitor: self.visitor(user)? })
    }

    /// The remote by what it remembers, which outlives the carrier; none before it has introduced itself.
    pub(crate) fn memory(&self) -> Option<Memory> {
        let epoch = self.lock().hello.as_ref()?.epoch;
        Some(Memory { remote: Arc::clone(&self.remote), epoch })
    }

    /// What the answer to a request of `owner` is to others that the remote has been sent.
    pub(crate) fn kin(
        &self,
        owner: &Owner,
        request: &RequestHead,
        response: &ResponseHead,
        treatment: &Treatment,
        resumes: bool,
    ) -> Option<Kin> {
        let means = self.ground.means(self.rate());
        let to = Recipient { memory: self.memory()?, user: owner.user, resumes, means };
        let ground = &self.ground;
        Kin::of(&ground.bases, &ground.dictionaries, to, request, response, treatment)
    }

    /// What is not right any more of what is held here may be what the remote holds.
    pub(crate) async fn take_up(&self, request: &RequestHead, former: Option<Former>) {
        let ground = &self.ground;
        if let (Some(former), Some(memory)) = (former, self.memory())
            // It is decoded, and may be long.
            && let Ok(_room) = ground.alike.try_acquire_many((LARGEST_BASE / 1024) as u32)
        {
            kin::take_up(&ground.bases, memory, request, former).await;
        }
    }

    /// Runs a task until it or the carrier ends.
    pub(crate) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.lock();
        if self.hop.closed().is_some() {
            return;
        }
        while let Some(ended) = state.tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                tracing::error!("a task of the carrier to {} failed: {error}", self.remote);
            }
        }
        let count = Count::new(self, |carrier| &carrier.under_way);
        state.tasks.spawn(async move {
            task.await;
            drop(count);
        });
    }

    /// A promise was made; the bell rings when it is not wanted.
    pub(crate) fn promised(&self, promise: u64) -> oneshot::Receiver<()> {
        let (_bell, unwanted) = oneshot::channel();
        self.lock().promises.insert(promise, Promise { _bell, wanted: None });
        unwanted
    }

    /// Calls `wanted` with the priority that the promise has from then on, whenever the user's browser says so before it
    /// is settled. A push that is open has been moved by then; this is for what has not come so far.
    pub(crate) fn on_wanted(&self, promise: u64, wanted: impl Fn(Priority) + Send + Sync + 'static) {
        if let Some(promise) = self.lock().promises.get_mut(&promise) {
            promise.wanted = Some(Arc::new(wanted));
        }
    }

    /// The user's browser asks for this promise.
    pub(crate) fn wanted(&self, promise: u64, priority: Priority) {
        self.ground.models.used(&self.owners, promise..=promise);
        let wanted = self.lock().promises.get(&promise).and_then(|promise| promise.wanted.clone());
        // Without the lock: who is told may begin to fetch.
        if let Some(wanted) = wanted {
            wanted(priority);
        }
    }

    /// These promises have answered requests.
    pub(crate) fn used(&self, promises: RangeInclusive<u64>) {
        self.ground.models.used(&self.owners, promises);
    }

    /// None of a run of promises is wanted; the run may be longer than what is promised.
    pub(crate) fn unwanted(&self, promises: RangeInclusive<u64>) {
        self.ground.models.unwanted(&self.owners, promises.clone());
        let settled: Vec<Promise> = {
            let mut state = self.lock();
            let numbers: Vec<u64> = state.promises.range(promises).map(|(number, _)| *number).collect();
            numbers.iter().filter_map(|number| state.promises.remove(number)).collect()
        };
        drop(settled);
    }

    /// Whether the remote will answer this request of `owner` from what it holds, as far as is known here.
    pub(crate) fn holds_fresh(&self, owner: &Owner, url: &Url, request: &HeaderMap) -> bool {
        let round_trip = self.connection.rtt();
        self.mirror().holds_fresh(owner.user, url, request, self.ground.now(), round_trip)
    }

    /// Under which fingerprints the remote holds what answers this request.
    pub(crate) fn held_as(&self, owner: &Owner, asks: &Unasked) -> Vec<u64> {
        self.mirror().held_as(owner.user, &asks.url, &asks.fields)
    }

    pub(crate) fn answered_here(&self, page: ExchangeId, entries: Vec<(u64, u64)>) {
        for (entry, after_ms) in entries {
            let fingerprint = self.mirror().fingerprint(entry);
            if let Some(fingerprint) = fingerprint {
                let after = Duration::from_millis(after_ms);
                let from = (&self.remote, &self.owners);
                self.ground.models.answered_here(from, page, fingerprint, after);
            }
        }
    }

    /// What the remote holds for this request of `owner` and has to have validated, as far as is known here.
    pub(crate) fn holds_stale(&self, owner: &Owner, url: &Url, request: &HeaderMap) -> Option<Stale> {
        self.mirror().holds_stale(owner.user, url, request)
    }

    /// By what the origin of this entry of the remote can be asked about it, as far as is known here.
    pub(crate) fn validators(&self, entry: u64) -> Option<Validators> {
        self.mirror().validators_of(entry)
    }

    /// A push of `response` to `request` is complete: until the remote's word comes it counts as held.
    pub(crate) fn pushed(&self, owner: &Owner, request: &RequestHead, response: &ResponseHead) {
        self.mirror().pushed(owner.user, request, response, self.ground.now());
    }

    /// What is on its way to anyone of the remote's users and will answer this as well, which is like that.
    pub(crate) fn coming(&self, owner: &Owner, likeness: &Likeness, request: &HeaderMap) -> Found {
        let (policy, round_trip) = (self.policy(owner, true), self.connection.rtt());
        self.passing.find(likeness, policy, request, self.ground.now(), round_trip)
    }

    /// Something like this is fetched for `owner`; `None` where it is for another already.
    pub(crate) fn begin_passing(&self, owner: &Owner, likeness: Likeness) -> Option<Pass> {
        self.passing.begin(likeness, self.policy(owner, true), self.ground.now())
    }

    /// All of it has been sent.
    pub(crate) fn passed(&self, pass: Pass) {
        pass.sent(self.ground.now(), self.connection.rtt());
    }

    fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.mirror.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A promise was kept, withdrawn, or is not wanted. Dropping the bell rings it.
    pub(crate) fn settled(&self, promise: u64) {
        let bell = self.lock().promises.remove(&promise);
        drop(bell);
    }

    /// Waits, at most until `deadline`, for what is under way, and closes once the remote can have it all.
    pub(crate) async fn drain(&self, deadline: Instant) {
        self.hop.drain();
        let served = self.hop.is_active();
        let _ = timeout_at(deadline, self.ended()).await;
        if served {
            // Closing throws away what the remote has not acknowledged: at most a send window, which crosses in this
            // time. A remote that has it all may close by itself, or call another ground.
            let window = self.ground.plan.send_window(End::Ground);
            let crossing = self.rate().map_or(Duration::ZERO, |rate| rate.time_for(window));
            let acknowledged = Instant::now() + crossing + 3 * self.connection.rtt() + LEAST_FAREWELL;
            let _ = timeout_at(deadline.min(acknowledged), self.connection.closed()).await;
        }
        self.hop.close();
    }

    /// Completes when nothing is under way and all of it has been given to the connection.
    async fn ended(&self) {
        while self.under_way.load(Relaxed) > 0 || (self.hop.is_active() && self.hop.closed().is_none()) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How long what is made ahead for its users waits for them.
    pub(crate) fn ahead(&self) -> Duration {
        self.hop.sizes().borrow().ahead
    }

    /// For `path`.
    pub(crate) fn path(&self) -> Value {
        let kind = self.connection.kind();
        let mut told = self.hop.path(kind);
        if kind == Kind::Quic {
            let repairs = self.ground.repairs.get();
            let towards = self.connection.remote_address();
            told.decided.extend(repairs.and_then(|repairs| repairs.decided(towards, &self.ground.plan)));
        }
        self.ground.origins.tell(&self.ground.settings(), &mut told);
        json!({
            "peer": &*self.remote,
            "address": self.connection.remote_address().to_string(),
            "over": kind.to_string(),
            "up_s": self.since.elapsed().as_secs(),
            "heard_s": self.hop.silence().as_secs(),
            "path": told,
        })
    }

    /// For `status`.
    pub(crate) fn status(&self) -> Value {
        let hello = self.lock().hello.clone();
        json!({
            "remote": &*self.remote,
            "address": self.connection.remote_address().to_string(),
            "over": self.connection.kind().to_string(),
            "agent": hello.map(|hello| hello.agent),
            "up_s": self.since.elapsed().as_secs(),
            "heard_s": self.hop.silence().as_secs(),
            "round_trip_ms": self.connection.rtt().as_millis() as u64,
            "congestion": self.connection.driven().map(|driven| json!({
                "controller": driven.choice.name(),
                "resume": driven.phase.name(),
                "window_bytes": driven.window.0,
                "pace_bps": driven.pacing.map(|rate| rate.0),
            })),
            "repairs": self.ground.repairs.get().and_then(|repairs| repairs.counters(self.connection.remote_address())),
            "exchanges": self.exchanges.load(Relaxed),
            "tunnels": self.tunnels.load(Relaxed),
            "promises": self.lock().promises.len(),
            "mirror": self.mirror().len(),
            "validators": self.mirror().validators(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts something for as long as it lives.
pub(crate) struct Count {
    carrier: Arc<Carrier>,
    number: fn(&Carrier) -> &AtomicU64,
}

impl Count {
    fn new(carrier: &Arc<Carrier>, number: fn(&Carrier) -> &AtomicU64) -> Count {
        number(carrier).fetch_add(1, Relaxed);
        Count { carrier: Arc::clone(carrier), number }
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        (self.number)(&self.carrier).fetch_sub(1, Relaxed);
    }
}
