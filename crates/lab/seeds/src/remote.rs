//! The remote's side of a run: asks, cancels, takes what is pushed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhop_htotp::frame::{Class, Tunnel};
use farhop_htotp::session::Ask;
use farhop_transport::hop::{Arrival, Hop, Incoming, Receiver, Sender};
use http::Method;
use tokio::sync::Notify;

use crate::log::Log;
use crate::scene::{Course, Errand, Scene};
use crate::stream::{Body, Part, head};

/// Pushes are numbered from here in the log.
const PUSHES: u64 = 1000;

/// What the remote needs for everything.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) scene: Arc<Scene>,
    pub(crate) log: Arc<Log>,
    pub(crate) hop: Hop,
    greeted: Arc<Notify>,
    pushes: Arc<Pushes>,
}

/// What was promised, and what has come of it.
#[derive(Default)]
struct Pushes {
    state: Mutex<BTreeMap<u64, Push>>,
    changed: Notify,
}

#[derive(Default)]
struct Push {
    /// Its body, and whether it is wanted, once it is announced.
    announced: Option<(Body, bool)>,
    /// What has come of it, and whether it is whole.
    heard: Vec<u8>,
    is_whole: bool,
}

impl Push {
    fn is_awaited(&self) -> bool {
        self.announced.is_some_and(|(_, is_wanted)| is_wanted) && !self.is_whole
    }

    /// What is wrong with it when all is over.
    fn fault(&self) -> Option<String> {
        let Some((body, _)) = self.announced else { return Some("was not announced".into()) };
        let mut listener = body.listener();
        let taken = listener.take(&self.heard);
        taken.and_then(|()| if self.is_whole { listener.end() } else { Ok(()) }).err()
    }
}

impl Pushes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Push>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Remote {
    pub(crate) fn new(scene: Arc<Scene>, log: Arc<Log>, hop: Hop) -> Remote {
        Remote { scene, log, hop, greeted: Arc::default(), pushes: Arc::default() }
    }

    fn body(&self, number: u64, part: Part, size: usize) -> Body {
        Body::of(self.scene.seed, number as usize, part, size)
    }

    /// Goes on one errand, at its time.
    pub(crate) async fn go(self, number: u64) {
        let errand = self.scene.errands[number as usize].clone();
        tokio::time::sleep(errand.at).await;
        self.log.opened(number);
        let outcome = match errand.course {
            Course::Tunnel => self.tunnel(number, &errand).await,
            _ => self.ask(number, &errand).await,
        };
        if let Err(fault) = outcome {
            self.log.fault(format!("errand {number}, at the remote: {fault}"));
        }
        self.log.closed(number);
    }

    async fn tunnel(&self, number: u64, errand: &Errand) -> Result<(), String> {
        let (sender, receiver) = self.hop.open_tunnel(Tunnel::to(number, 1, Class::Web, "ssh.test", 22));
        let body = self.body(number, Part::Request, errand.up);
        let hearing = async {
            let (mut receiver, mut listener) = (receiver, body.listener());
            loop {
                match receiver.next().await {
                    Arrival::TunnelOpened => self.log.arrived("tunnel", number, 0),
                    Arrival::Body(piece) => {
                        self.log.arrived("echo", number, piece.len());
                        listener.take(&piece)?;
                    }
                    Arrival::Ended => return listener.end(),
                    other => return Err(format!("{other:?} after {} bytes", listener.heard())),
                }
            }
        };
        let (said, heard) = tokio::join!(say(body, sender), hearing);
        said.and(heard)
    }

    async fn ask(&self, number: u64, errand: &Errand) -> Result<(), String> {
        let ask = Ask { exchange: number, user: 1, priority: errand.priority, ..Ask::default() };
        let (sender, receiver) = self.hop.ask(ask, &head(Method::POST, format!("/{number}")));
        let request = self.body(number, Part::Request, errand.up);
        let hearing = self.hear(number, errand, receiver);
        let (said, heard) = tokio::join!(say(request, sender), hearing);
        match errand.course {
            Course::Exchange { .. } => said.and(heard),
            // Ground need not hear the request out.
            _ => heard,
        }
    }

    async fn hear(&self, number: u64, errand: &Errand, mut receiver: Receiver) -> Result<(), String> {
        let mut listener = self.body(number, Part::Answer, errand.down).listener();
        loop {
            if let Course::Cancelled(after) = errand.course
                && listener.heard() > after
            {
                return Ok(());
            }
            match (receiver.next().await, &errand.course) {
                (Arrival::Answered { .. }, _) => self.log.arrived("answer", number, 0),
                (Arrival::Body(piece), _) => {
                    self.log.arrived("heard", number, piece.len());
                    listener.take(&piece)?;
                }
                (Arrival::Promised { promise, head, .. }, Course::Exchange { promises, .. }) => {
                    self.log.arrived("promise", number, 0);
                    let index: usize =
                        head.path.rsplit('/').next().and_then(|index| index.parse().ok()).unwrap_or(99);
                    let announced = promises.get(index).ok_or_else(|| format!("promised {}", head.path))?;
                    let body = self.body(number, Part::Promise(index), announced.size);
                    self.announced(promise, body, announced.is_wanted);
                }
                (Arrival::Reset(_), Course::Abandoned(_)) => return Ok(()),
                (Arrival::Ended, Course::Abandoned(after)) => {
                    return Err(format!("looked whole, though abandoned after {after} bytes"));
                }
                (Arrival::Ended, _) => return listener.end(),
                (other, _) => return Err(format!("{other:?} after {} bytes", listener.heard())),
            }
        }
    }

    fn announced(&self, promise: u64, body: Body, is_wanted: bool) {
        let mut pushes = self.pushes.lock();
        let push = pushes.entry(promise).or_default();
        push.announced = Some((body, is_wanted));
        if !is_wanted {
            self.hop.refuse_promises(promise..=promise);
        } else if push.is_awaited() {
            self.log.opened(PUSHES + promise);
        }
    }

    /// Takes what ground begins, until the carrier ends.
    pub(crate) async fn accept(self) {
        while let Some(incoming) = self.hop.accept().await {
            match incoming {
                Incoming::Push { promise, receiver } => {
                    tokio::spawn(self.clone().take(promise, receiver));
                }
                Incoming::Hello(_) => self.greeted.notify_one(),
                _ => {}
            }
        }
    }

    /// Waits until ground was heard.
    pub(crate) async fn greeted(&self) {
        self.greeted.notified().await;
    }

    async fn take(self, promise: u64, mut receiver: Receiver) {
        loop {
            let arrival = receiver.next().await;
            let mut pushes = self.pushes.lock();
            let push = pushes.entry(promise).or_default();
            match arrival {
                Arrival::Answered { .. } => self.log.arrived("push", promise, 0),
                Arrival::Body(piece) => {
                    self.log.arrived("pushed", promise, piece.len());
                    push.heard.extend_from_slice(&piece);
                }
                Arrival::Ended => {
                    let was_awaited = push.is_awaited();
                    push.is_whole = true;
                    drop(pushes);
                    if was_awaited {
                        self.log.closed(PUSHES + promise);
                    }
                    return self.pushes.changed.notify_one();
                }
                // One that is refused breaks off.
                Arrival::Reset(_) if push.announced.is_none_or(|(_, is_wanted)| !is_wanted) => return,
                other => {
                    return self
                        .log
                        .fault(format!("promise {promise}: {other:?} after {} bytes", push.heard.len()));
                }
            }
        }
    }

    /// Waits until all that was promised and is wanted has come, and tells what is wrong with it.
    pub(crate) async fn settle(&self) {
        while self.pushes.lock().values().any(Push::is_awaited) && !self.log.has_faults() {
            self.pushes.changed.notified().await;
        }
        for (promise, push) in self.pushes.lock().iter() {
            if let Some(fault) = push.fault() {
                self.log.fault(format!("promise {promise}: {fault}"));
            }
        }
    }
}

async fn say(body: Body, mut sender: Sender) -> Result<(), String> {
    body.say_whole(&mut sender).await.map_err(|gone| format!("what was said: {gone}"))
}
