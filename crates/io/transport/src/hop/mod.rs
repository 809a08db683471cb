//! A carrier as the ends use it: exchanges, pushes and tunnels as pairs of an asynchronous sender and
//! receiver. The rules are `farhop_htotp::session`'s; here is only what joins it to tasks.

mod adopt;
mod attune;
mod claim;
mod crowd;
pub(crate) mod datagrams;
mod driver;
mod lanes;
mod line;
mod rejoin;
mod state;
mod stream;
mod told;
mod trickle;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::RequestHead;
use farhop_htotp::datagram::Form;
use farhop_htotp::frame::{Class, Hello, Priority, Resume, Tunnel};
use farhop_htotp::mirror::{BodyHash, Position, Word};
use farhop_htotp::mux::Windows;
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::{Ask, Config, Role, Session};
use farhop_htotp::unread::Unread;
use farhop_tuning::{Measured, Parameters, Sending, Tuner};
use farhop_units::BitRate;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::connection::{Connection, Name};
use crate::path::{End, PathPlan};
use crate::write_ahead::WriteAhead;
use attune::Lesson;
pub use claim::Claim;
use line::Line;
use rejoin::{Asked, Kept};
pub use stream::{Arrival, Gone, Receiver, Sender};

/// Bytes that wait for slow readers before the carrier is no longer read for their streams: of one, at most and however many
/// there are, and of all.
const READ_AHEAD: RangeInclusive<usize> = 16 * 1024..=128 * 1024;
const READ_AHEAD_OF_ALL: usize = 16 << 20;

/// Bytes that are kept for another carrier, beyond what may be unread at the other end: what waits on some dozens of streams.
const KEPT: u64 = 4 << 20;

/// Why a carrier ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The carrier's own connection ended.
    #[error("carrier lost: {0}")]
    Lost(String),
    /// No sign of life.
    #[error("peer gives no sign of life")]
    Silent,
    /// The peer broke the protocol.
    #[error("peer broke the protocol: {0}")]
    Broken(String),
    /// This end closed it.
    #[error("closed by this end")]
    Local,
    /// Another carrier took its place.
    #[error("another carrier took its place")]
    Replaced,
    /// The peer was spoken to before it answered, and did not take it.
    #[error("the peer has not heard what was said before it answered")]
    Unheard,
}

/// What the peer begins.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Incoming {
    /// Ground: a request; its body comes through `receiver`.
    Exchange {
        exchange: u64,
        user: u64,
        class: Class,
        priority: Priority,
        resume: Option<Resume>,
        head: RequestHead,
        sender: Sender,
        receiver: Receiver,
    },
    /// Ground: a tunnel is wanted.
    Tunnel { asked: Tunnel, sender: Sender, receiver: Receiver },
    /// Remote: a promised response begins.
    Push { promise: u64, receiver: Receiver },
    /// Ground: the remote does not want these, of which some may never have been promised.
    Unwanted { promises: RangeInclusive<u64> },
    /// Ground: these have answered requests; some may never have been promised.
    Used { promises: RangeInclusive<u64> },
    /// Ground: of what the page of this exchange asked for, these entries of the mirror have answered, each so many milliseconds
    /// after the page was asked for.
    AnsweredHere { page: u64, entries: Vec<(u64, u64)> },
    /// Ground: the user's browser asks for this promise. If its push is open it has been moved already.
    Wanted { promise: u64, priority: Priority },
    /// Ground: the user's client is about to ask this host.
    Prepare { user: u64, scheme: String, host: String, port: u16 },
    /// Ground: the user's client has ended the connection of this name.
    Left { user: u64, connection: String },
    /// Ground: what the remote says of what it holds.
    Mirror(Word),
    /// Remote: how far ground has heard the mirror's log, on carriers before this one.
    Heard(Position),
    /// Remote: of so many buckets of the mirror's summary these differ.
    Differ { of: u64, buckets: Vec<u64> },
    /// Remote: ground has a trained dictionary that is worth having, which crosses in so many bytes.
    Dictionary { hash: BodyHash, length: u64 },
    /// The peer introduced itself.
    Hello(Hello),
    /// The peer takes no more exchanges.
    Drain,
    /// Ground: the remote wants to go on with what was under way on the carrier of this name.
    Rejoin { carrier: u64, claim: Claim },
    /// Remote: an exchange or tunnel of another carrier goes on on this one.
    Rejoined { exchange: u64 },
    /// A datagram of this flow.
    Datagram { flow: u64, form: Form, payload: Bytes },
}

/// One carrier. Clones share it; it closes when [`Hop::close`] is called or the connection ends.
#[derive(Clone)]
pub struct Hop(Arc<Shared>);

impl std::fmt::Debug for Hop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hop").field("closed", &self.closed()).finish()
    }
}

struct Shared {
    state: Mutex<State>,
    /// Wakes the driver: an app did something.
    work: Notify,
    /// Wakes whoever accepts.
    accept: Notify,
    /// Since when the peer, though asked, gives no sign of life.
    silent: watch::Sender<Option<Instant>>,
    epoch: Instant,
}

struct State {
    role: Role,
    session: Session,
    slots: HashMap<StreamId, Slot>,
    /// Streams that may go on on another carrier, by exchange or tunnel.
    exchanges: HashMap<u64, StreamId>,
    /// Where those are that did.
    moved: HashMap<u64, Weak<Shared>>,
    /// The last exchange that may have been begun here and is not known any more.
    spoiled: Option<u64>,
    kept_bytes: usize,
    /// What has gone out and the other end has not taken.
    unread: Unread,
    /// Streams that wait until the other end takes more of what it has.
    crowded: BTreeSet<StreamId>,
    /// The other end has said what it takes, as both ends do that keep streams for another carrier.
    taking: bool,
    /// Wakes who waits until nothing is kept any more.
    left: Arc<Notify>,
    /// Nothing of this carrier goes on on another.
    given_up: bool,
    /// What is under way when the carrier is lost may go on on another.
    lasting: bool,
    /// What both ends call the connection, once its handshake is over here.
    name: Option<Name>,
    incoming: VecDeque<Incoming>,
    /// What carries datagrams, while it does.
    datagrams: Option<quinn::Connection>,
    /// Streams whose reader has made room.
    resume: Vec<StreamId>,
    closed: Option<Closed>,
    ended: Option<Instant>,
    /// Exchanges and tunnels that were open when the carrier ended.
    lost: u64,
    rtt: Option<Duration>,
    tuner: Tuner,
    sizes: watch::Sender<Parameters>,
    /// How what is sent is driven, where that is not the kernel's affair.
    sending: Option<Sending>,
    /// What a carrier over TCP takes unread.
    mux_windows: Windows,
    lesson: Option<Lesson>,
}

/// What the driver holds for the two handles of a stream.
struct Slot {
    /// A push: no exchange and no tunnel.
    unasked: bool,
    arrivals: VecDeque<Arrival>,
    buffered: usize,
    /// The carrier is not read for it.
    paused: bool,
    /// Its part of [`State::unread`].
    unread: u64,
    signals: Arc<Signals>,
    stopped: bool,
    full: bool,
    receiver_gone: bool,
    sender_gone: bool,
    /// What its handles share; gone when both are.
    line: Weak<Line>,
    /// Set while the stream may go on on another carrier.
    kept: Option<Kept>,
}

#[derive(Default)]
struct Signals {
    readable: Notify,
    writable: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

impl Hop {
    /// Runs a session over a connection that has none yet, sized for a path like `plan`. What is under way ends with it.
    pub fn start(connection: impl Into<Connection>, role: Role, config: Config, plan: &PathPlan) -> Hop {
        Hop::run(connection.into(), role, config, plan, false)
    }

    /// As [`Hop::start`], but what is under way when the connection is lost waits, until it goes on on another ([`Hop::adopt`],
    /// [`Claim::grant`]) or is given up ([`Hop::give_up`]).
    pub fn start_lasting(
        connection: impl Into<Connection>,
        role: Role,
        config: Config,
        plan: &PathPlan,
    ) -> Hop {
        Hop::run(connection.into(), role, config, plan, true)
    }

    fn run(connection: Connection, role: Role, config: Config, plan: &PathPlan, lasting: bool) -> Hop {
        let end = match role {
            Role::Remote => End::Remote,
            Role::Ground => End::Ground,
        };
        let epoch = Instant::now();
        let session = Session::new(role, config, Duration::ZERO);
        let tuner = Tuner::new(plan.set(end), Measured::default());
        let state = State {
            role,
            session,
            slots: HashMap::new(),
            exchanges: HashMap::new(),
            moved: HashMap::new(),
            spoiled: None,
            kept_bytes: 0,
            unread: Unread::default(),
            crowded: BTreeSet::new(),
            taking: false,
            left: Arc::default(),
            given_up: false,
            lasting,
            name: connection.name(),
            incoming: VecDeque::new(),
            datagrams: None,
            resume: Vec::new(),
            closed: None,
            ended: None,
            lost: 0,
            rtt: None,
            sizes: watch::Sender::new(*tuner.parameters()),
            tuner,
            sending: None,
            mux_windows: Windows::LEAST,
            lesson: None,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            work: Notify::new(),
            accept: Notify::new(),
            silent: watch::Sender::new(None),
            epoch,
        });
        match connection {
            Connection::Quic(connection) => {
                let ahead = WriteAhead::new(plan, end);
                tokio::spawn(driver::run(connection, Arc::clone(&shared), ahead, end));
            }
            Connection::Tcp(connection) => match connection.take_parts() {
                Some(parts) => drop(tokio::spawn(lanes::run(connection, parts, Arc::clone(&shared)))),
                // Another session has it.
                None => shared.lock().close(&shared, Closed::Local),
            },
        }
        Hop(shared)
    }

    /// The next thing that the peer begins; `None` once the carrier has ended.
    pub async fn accept(&self) -> Option<Incoming> {
        loop {
            let notified = self.0.accept.notified();
            {
                let mut state = self.0.lock();
                if let Some(incoming) = state.incoming.pop_front() {
                    return Some(incoming);
                }
                if state.closed.is_some() {
                    return None;
                }
            }
            notified.await;
        }
    }

    /// Remote: asks at once, without waiting for anything.
    pub fn ask(&self, ask: Ask, head: &RequestHead) -> (Sender, Receiver) {
        let mut state = self.0.lock();
        let id = state.session.ask(self.0.now(), ask, head);
        self.handles(&mut state, id, Asked::Exchange(ask, Box::new(head.clone())))
    }

    /// Remote: asks for a tunnel; bytes may be written at once.
    pub fn open_tunnel(&self, asked: Tunnel) -> (Sender, Receiver) {
        let mut state = self.0.lock();
        let id = state.session.open_tunnel(&asked);
        self.handles(&mut state, id, Asked::Tunnel(asked))
    }

    /// Ground: opens the stream of a promised response; `None` when it is not wanted any more.
    pub fn push(&self, promise: u64) -> Option<Sender> {
        let mut state = self.0.lock();
        let id = state.session.push(promise)?;
        let line = state.add(&self.0, id);
        if let Some(slot) = state.slots.get_mut(&id) {
            (slot.unasked, slot.receiver_gone) = (true, true);
        }
        self.0.work.notify_one();
        Some(Sender::new(line))
    }

    /// Remote: these promises are not wanted.
    pub fn refuse_promises(&self, promises: RangeInclusive<u64>) {
        self.0.lock().session.refuse_promises(promises);
        self.0.work.notify_one();
    }

    /// Remote: these promises have answered requests.
    pub fn tell_used(&self, promises: RangeInclusive<u64>) {
        self.0.lock().session.tell_used(promises);
        self.0.work.notify_one();
    }

    /// Remote: these entries of the mirror have answered what the page of this exchange asked for, each so many milliseconds
    /// after the page.
    pub fn tell_answered(&self, page: u64, entries: &[(u64, u64)]) {
        self.0.lock().session.tell_answered(page, entries);
        self.0.work.notify_one();
    }

    /// Remote: the user's browser asks for what was promised and is not whole yet.
    pub fn want(&self, promise: u64, priority: Priority) {
        self.0.lock().session.want(promise, priority);
        self.0.work.notify_one();
    }

    /// Remote: the user's browser has given a request under way another priority.
    pub fn reorder(&self, exchange: u64, priority: Priority) {
        self.0.lock().session.reorder(exchange, priority);
        self.0.work.notify_one();
    }

    /// Remote: this user's client is about to ask a host; ground may resolve, connect and verify meanwhile.
    pub fn prepare(&self, user: u64, scheme: &str, host: &str, port: u16) {
        self.0.lock().session.prepare(user, scheme, host, port);
        self.0.work.notify_one();
    }

    /// Remote: this user's client has ended the connection that requests named so.
    pub fn leave(&self, user: u64, connection: &str) {
        self.0.lock().session.leave(user, connection);
        self.0.work.notify_one();
    }

    /// What these classes of what this end sends never exceed from now on.
    pub fn set_ceilings(&self, ceilings: &[(Class, BitRate)]) {
        self.0.lock().session.set_ceilings(self.0.now(), ceilings);
        self.0.work.notify_one();
    }

    /// Remote: what this user has of each class in either direction, in hundredths of what others have.
    pub fn weigh(&self, user: u64, hundredths: u32) {
        self.0.lock().session.weigh(user, hundredths);
        self.0.work.notify_one();
    }

    /// Remote: tells ground what is held; gives the bytes of such words that wait.
    pub fn tell_mirror(&self, word: Word) -> usize {
        let waiting = self.0.lock().session.tell_mirror(word);
        self.0.work.notify_one();
        waiting
    }

    /// Remote: whether anything was said of the mirror.
    pub fn mirror_begun(&self) -> bool {
        self.0.lock().session.mirror_begun()
    }

    /// Remote: whether ground remembers the mirror's log beyond the carrier; `None` before it has said so or not.
    pub fn log_kept(&self) -> Option<bool> {
        self.0.lock().session.log_kept()
    }

    /// Ground: says how far it has heard the mirror's log.
    pub fn tell_heard(&self, position: Position) {
        self.0.lock().session.tell_heard(position);
        self.0.work.notify_one();
    }

    /// Ground: says which of so many buckets of the mirror's summary differ.
    pub fn tell_differ(&self, of: u64, buckets: Vec<u64>) {
        self.0.lock().session.tell_differ(of, buckets);
        self.0.work.notify_one();
    }

    /// Ground: says that this dictionary is worth having, which crosses in so many bytes.
    pub fn offer_dictionary(&self, hash: BodyHash, length: u64) {
        self.0.lock().session.offer_dictionary(hash, length);
        self.0.work.notify_one();
    }

    /// Remote: whether ground has said that it makes use of being told which bodies are held.
    pub fn takes_bodies(&self) -> bool {
        self.0.lock().session.takes_bodies()
    }

    /// Remote: whether ground has said that it makes use of being told of pages that the remote answers by itself.
    pub fn takes_held_pages(&self) -> bool {
        self.0.lock().session.takes_held_pages()
    }

    /// Remote: bytes of the mirror's log that wait.
    pub fn mirror_backlog(&self) -> usize {
        self.0.lock().session.mirror_backlog()
    }

    /// Tells the peer that this end takes no more exchanges.
    pub fn drain(&self) {
        self.0.lock().session.drain();
        self.0.work.notify_one();
    }

    /// Ends the carrier, with all that is under way.
    pub fn close(&self) {
        self.end(Closed::Local);
    }

    fn end(&self, reason: Closed) {
        self.0.lock().close(&self.0, reason);
        self.0.work.notify_one();
    }

    /// Ends the session and leaves the connection to another: the peer has not heard this one.
    pub fn forsake(&self) {
        self.end(Closed::Unheard);
    }

    fn handles(&self, state: &mut State, id: StreamId, asked: Asked) -> (Sender, Receiver) {
        let line = state.add(&self.0, id);
        state.keep(id, Some(asked));
        self.0.work.notify_one();
        (Sender::new(Arc::clone(&line)), Receiver::new(line))
    }
}
