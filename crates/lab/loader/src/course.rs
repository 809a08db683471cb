//! One load under way: what is wanted, who is on it, what came. Shared by the tasks of the load, under one lock that is never
//! held across a wait.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use url::Url;

use crate::body::{Body, judge};
use crate::connect::Connect;
use crate::graph::PageGraph;
use crate::lane::Lane;
use crate::open::Traffic;
use crate::result::{ConnectionResult, Loaded, ObjectResult};
use crate::settings::{Protocol, Settings};
use crate::tls::{Facts, Sessions};

/// How often one object is asked for before it is given up.
const REQUESTS: u32 = 4;

/// Who answers: connections are made for one of these.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Origin {
    pub(crate) fn of(url: &Url) -> Origin {
        Origin {
            secure: url.scheme() == "https",
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port_or_known_default().unwrap_or(80),
        }
    }

    fn in_words(&self) -> String {
        format!("{}://{}:{}", if self.secure { "https" } else { "http" }, self.host, self.port)
    }
}

/// See the module.
pub(crate) struct Course {
    pub(crate) graph: Arc<PageGraph>,
    pub(crate) settings: Settings,
    pub(crate) connector: Arc<dyn Connect>,
    pub(crate) sessions: Sessions,
    start: Instant,
    state: Mutex<State>,
    /// Told when the last object is done.
    pub(crate) finished: Notify,
}

#[derive(Default)]
struct State {
    objects: Vec<Progress>,
    lanes: HashMap<Origin, Arc<Lane>>,
    connections: Vec<Made>,
    left: usize,
    tasks: Vec<AbortHandle>,
    pushes_refused: u32,
}

#[derive(Default)]
struct Progress {
    result: ObjectResult,
    /// Bytes of its content that are there.
    known: u64,
    /// How many of its names were told of.
    told: usize,
    is_promised: bool,
    is_done: bool,
}

struct Made {
    result: ConnectionResult,
    traffic: Arc<Traffic>,
    facts: Option<Arc<Facts>>,
}

/// The lock of a part of a load.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked changed one field at a time: what is there can be read.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Course {
    pub(crate) fn new(
        graph: Arc<PageGraph>,
        settings: Settings,
        connector: Arc<dyn Connect>,
        sessions: Sessions,
    ) -> Arc<Course> {
        let result = |url: &Url| ObjectResult { url: url.to_string(), ..ObjectResult::default() };
        let objects: Vec<Progress> = graph
            .objects
            .iter()
            .map(|object| Progress { result: result(&object.url), ..Progress::default() })
            .collect();
        let state = State { left: objects.len(), objects, ..State::default() };
        Arc::new(Course {
            graph,
            settings,
            connector,
            sessions,
            start: Instant::now(),
            state: Mutex::new(state),
            finished: Notify::new(),
        })
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// What is offered by ALPN.
    pub(crate) fn alpn(&self) -> &'static [u8] {
        match self.settings.protocol {
            Protocol::Http1(_) => b"http/1.1",
            Protocol::Http2(_) => b"h2",
            Protocol::Http3 => crate::http3::ALPN,
        }
    }

    /// Connections to one origin, at most.
    fn most(&self) -> usize {
        match self.settings.protocol {
            Protocol::Http1(_) => self.settings.connections.max(1),
            Protocol::Http2(_) | Protocol::Http3 => 1,
        }
    }

    /// A task that ends with the load.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let handle = tokio::spawn(task).abort_handle();
        locked(&self.state).tasks.push(handle);
    }

    fn lane(&self, origin: &Origin) -> Arc<Lane> {
        locked(&self.state).lanes.entry(origin.clone()).or_default().clone()
    }

    /// An object is wanted: nothing to do where it was promised or is there, else it waits for a connection.
    pub(crate) fn want(self: &Arc<Self>, object: usize) {
        let mut state = locked(&self.state);
        let progress = &mut state.objects[object];
        if progress.result.wanted.is_some() {
            return;
        }
        progress.result.wanted = Some(self.now());
        let known = progress.known;
        let waits = !progress.is_promised && !progress.is_done;
        drop(state);
        if waits {
            self.enqueue(object, false);
        }
        self.known(object, known);
    }

    fn enqueue(self: &Arc<Self>, object: usize, first: bool) {
        let origin = Origin::of(&self.graph.objects[object].url);
        let lane = self.lane(&origin);
        lane.push(object, first);
        self.grow(&origin, &lane);
    }

    /// Begins as many connections as what waits can use.
    fn grow(self: &Arc<Self>, origin: &Origin, lane: &Lane) {
        for _ in 0..lane.begin(self.most()) {
            let (course, origin) = (self.clone(), origin.clone());
            match self.settings.protocol {
                Protocol::Http1(persistence) => self.spawn(crate::loader::work(course, origin, persistence)),
                Protocol::Http2(push) => self.spawn(crate::multiplexed::work(course, origin, push)),
                Protocol::Http3 => self.spawn(crate::http3::work(course, origin)),
            }
        }
    }

    /// The next objects for a connection, `count` at most, which is busy with them from now on.
    pub(crate) async fn take(&self, origin: &Origin, count: usize) -> Vec<usize> {
        self.lane(origin).take(count).await
    }

    /// A connection has nothing under way any more.
    pub(crate) fn rest(&self, origin: &Origin) {
        self.lane(origin).rest();
    }

    /// A connection is there no more; what still waits gets another.
    pub(crate) fn gone(self: &Arc<Self>, origin: &Origin) {
        let lane = self.lane(origin);
        lane.leave();
        self.grow(origin, &lane);
    }

    /// A connection broke that had been in use; what still waits gets another, and the reader is told.
    pub(crate) fn broke(self: &Arc<Self>, origin: &Origin, connection: usize, fault: &str) {
        locked(&self.state).connections[connection].result.fault = Some(fault.to_owned());
        self.gone(origin);
    }

    /// No connection came to stand, or it brought nothing: what waited first is asked for anew, or given up.
    pub(crate) fn unreachable(self: &Arc<Self>, origin: &Origin, fault: &str) {
        let lane = self.lane(origin);
        if let Some(object) = lane.leave_with_first() {
            locked(&self.state).objects[object].result.requests += 1;
            self.failed(object, fault);
        }
        self.grow(origin, &lane);
    }

    /// A connection is begun: its place in the results, and where its bytes are counted.
    pub(crate) fn dialling(&self, origin: &Origin) -> (usize, Arc<Traffic>) {
        let traffic = Arc::new(Traffic::default());
        let result =
            ConnectionResult { origin: origin.in_words(), opened: self.now(), ..ConnectionResult::default() };
        let mut state = locked(&self.state);
        state.connections.push(Made { result, traffic: traffic.clone(), facts: None });
        (state.connections.len() - 1, traffic)
    }

    pub(crate) fn ready(&self, connection: usize, facts: Option<Arc<Facts>>) {
        let now = self.now();
        let made = &mut locked(&self.state).connections[connection];
        (made.result.ready, made.facts) = (Some(now), facts);
    }

    /// The request for an object is written.
    pub(crate) fn asked(&self, object: usize, connection: usize) {
        let now = self.now();
        let result = &mut locked(&self.state).objects[object].result;
        (result.start, result.connection) = (Some(now), Some(connection));
        result.requests += 1;
    }

    /// The first byte of its answer is there.
    pub(crate) fn begun(&self, object: usize) {
        let now = self.now();
        locked(&self.state).objects[object].result.first_byte = Some(now);
    }

    /// So many bytes of its content are known: what they name is wanted, if it is wanted itself.
    pub(crate) fn known(self: &Arc<Self>, object: usize, known: u64) {
        let named: Vec<usize> = {
            let mut state = locked(&self.state);
            let progress = &mut state.objects[object];
            progress.known = progress.known.max(known);
            if progress.result.wanted.is_none() {
                return;
            }
            let names = &self.graph.objects[object].names[progress.told..];
            let named: Vec<usize> = names
                .iter()
                .take_while(|named| named.from <= progress.known)
                .map(|named| named.object)
                .collect();
            progress.told += named.len();
            named
        };
        named.into_iter().for_each(|object| self.want(object));
    }

    /// Its answer is complete.
    pub(crate) fn arrived(self: &Arc<Self>, object: usize, status: u16, body: Body) {
        let coded = body.coded;
        let about = &self.graph.objects[object];
        let verdict =
            body.finish().and_then(|content| judge(about, status, &content, self.settings.may_recode));
        if verdict.is_ok() {
            self.known(object, u64::MAX); // also what its very end names
        }
        self.close(object, coded, verdict.err());
    }

    /// It did not come: asked for once more, or given up.
    pub(crate) fn failed(self: &Arc<Self>, object: usize, fault: &str) {
        let again = {
            let mut state = locked(&self.state);
            let progress = &mut state.objects[object];
            (progress.is_promised, progress.result.pushed) = (false, false);
            if progress.result.wanted.is_none() {
                return; // a push that broke off before anyone wanted it
            }
            !progress.is_done && progress.result.requests < REQUESTS
        };
        if again {
            self.enqueue(object, true);
        } else {
            self.close(object, 0, Some(fault.to_owned()));
        }
    }

    fn close(&self, object: usize, bytes: u64, fault: Option<String>) {
        let now = self.now();
        let mut state = locked(&self.state);
        let state = &mut *state;
        let progress = &mut state.objects[object];
        if std::mem::replace(&mut progress.is_done, true) {
            return;
        }
        progress.result.bytes = bytes;
        progress.result.fault = fault;
        progress.result.end = Some(now).filter(|_| progress.result.first_byte.is_some());
        if let Some(connection) = progress.result.connection {
            state.connections[connection].result.objects += 1;
        }
        state.left -= 1;
        // What a missing object would have named is never wanted.
        if progress.result.fault.is_some() {
            state.give_up(&self.graph, object);
        }
        if state.left == 0 {
            self.finished.notify_one();
        }
    }

    /// The server promises this: the object whose answer it will be, unless nobody wants it or it was asked for already.
    pub(crate) fn promised(&self, url: &Url, connection: usize) -> Option<usize> {
        let now = self.now();
        let object = self.graph.objects.iter().position(|object| object.url == *url);
        let mut state = locked(&self.state);
        let free = object.filter(|object| {
            let progress = &state.objects[*object];
            progress.result.requests == 0
                && !progress.is_promised
                && !progress.is_done
                && progress.result.wanted.is_none()
        });
        match free {
            Some(object) => {
                let progress = &mut state.objects[object];
                progress.is_promised = true;
                progress.result.pushed = true;
                (progress.result.start, progress.result.connection) = (Some(now), Some(connection));
            }
            None => state.pushes_refused += 1,
        }
        free
    }

    /// A push was reset.
    pub(crate) fn refused(&self) {
        locked(&self.state).pushes_refused += 1;
    }

    /// Ends every task, and says what came of all.
    pub(crate) fn finish(&self) -> Loaded {
        let mut state = locked(&self.state);
        state.tasks.drain(..).for_each(|task| task.abort());
        let objects: Vec<ObjectResult> = state
            .objects
            .iter()
            .map(|progress| {
                let mut result = progress.result.clone();
                if !progress.is_done {
                    result.fault = Some("it did not come in time".into());
                }
                result
            })
            .collect();
        let connections = state.connections.iter().map(|made| {
            let resumed = made.facts.as_ref().and_then(|facts| facts.resumed.get().copied());
            ConnectionResult {
                resumed,
                early: made.facts.as_ref().is_some_and(|facts| facts.early.load(Ordering::Relaxed)),
                sent: made.traffic.sent.load(Ordering::Relaxed),
                received: made.traffic.received.load(Ordering::Relaxed),
                ..made.result.clone()
            }
        });
        let latest = |counts: &dyn Fn(usize) -> bool| {
            let ends = objects.iter().enumerate().filter(|(place, _)| counts(*place));
            ends.map(|(_, object)| object.end.filter(|_| object.fault.is_none()))
                .try_fold(Duration::ZERO, |last, end| Some(last.max(end?)))
        };
        Loaded {
            time: latest(&|_| true),
            blocking: latest(&|place| self.graph.objects[place].blocking),
            connections: connections.collect(),
            pushes_refused: state.pushes_refused,
            objects: objects.clone(),
        }
    }
}

impl State {
    /// Nothing that only this object names can be wanted any more: it counts as done.
    fn give_up(&mut self, graph: &PageGraph, object: usize) {
        let mut missing = vec![object];
        while let Some(missed) = missing.pop() {
            let told = self.objects[missed].told;
            for named in graph.objects[missed].names.iter().skip(told) {
                let progress = &mut self.objects[named.object];
                if !std::mem::replace(&mut progress.is_done, true) {
                    progress.result.fault = Some("what names it is missing".into());
                    self.left -= 1;
                    missing.push(named.object);
                }
            }
        }
    }
}
