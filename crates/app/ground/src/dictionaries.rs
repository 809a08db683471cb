//! Dictionaries that are trained on what origins send to anyone: learnt from when a body has gone, in the background, and
//! offered to a remote once they would have paid (docs/htotp.md, "Dictionaries"). What is decided is
//! `farhop-dictionaries`'; here are the threads, the processor time, and who is told.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use farhop_dictionaries::{Accounts, Dictionary, Lesson, School};
use farhop_events::Event;
use farhop_htotp::mirror::{BodyHash, Word};
use farhop_squeeze::{LARGEST_TAUGHT, Load, compress, compress_with, train};
use farhop_transport::hop::Hop;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::bases::Memory;
use crate::ground::Shared;

/// The level at which what a dictionary would have spared is reckoned, and at which it crosses itself.
const LEVEL: i32 = 9;

/// See the module.
pub(crate) struct Dictionaries {
    state: Mutex<State>,
    /// One thing at a time is learnt; what comes meanwhile teaches nothing.
    learning: Semaphore,
}

struct State {
    school: School,
    accounts: Accounts<Memory>,
}

/// A text that was sent whole.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) memory: Memory,
    /// Scheme and authority.
    pub(crate) origin: String,
    pub(crate) url: String,
    /// A shared cache may give it to anyone; else nothing is learnt from it.
    pub(crate) is_anyones: bool,
    pub(crate) body: Bytes,
}

impl Dictionaries {
    /// Keeps so many bytes.
    pub(crate) fn new(most: u64) -> Dictionaries {
        let state = State { school: School::new(size(most)), accounts: Accounts::default() };
        Dictionaries { state: Mutex::new(state), learning: Semaphore::new(1) }
    }

    /// Keeps so many from now on.
    pub(crate) fn set(&self, most: u64) {
        self.lock().school.set(size(most));
    }

    /// Whether anything is learnt at all.
    pub(crate) fn is_on(&self) -> bool {
        self.lock().school.is_on()
    }

    /// The dictionary of this origin, if the remote holds it.
    pub(crate) fn held(&self, memory: &Memory, origin: &str) -> Option<Arc<Dictionary>> {
        let mut state = self.lock();
        let dictionary = state.school.dictionary(origin)?;
        state.accounts.is_held(memory, dictionary.hash).then_some(dictionary)
    }

    /// What a remote says of what it holds.
    pub(crate) fn hear(&self, memory: &Memory, word: &Word) {
        let mut state = self.lock();
        match word {
            Word::Holds(bodies) => {
                for body in bodies.iter().filter(|body| body.user.is_none()) {
                    // All but a few are texts, which are none of them.
                    if state.school.find(body.hash).is_some() {
                        state.accounts.handle_holds(memory, body.hash);
                    }
                }
            }
            Word::Lacks(bodies) => {
                bodies.iter().for_each(|body| state.accounts.handle_lacks(memory, body.hash));
            }
            _ => {}
        }
    }

    /// A remote has come on another carrier.
    pub(crate) fn arrived(&self, memory: &Memory) {
        self.lock().accounts.handle_carrier(memory);
    }

    /// A dictionary as it crosses.
    pub(crate) fn coded(&self, hash: BodyHash) -> Option<Bytes> {
        self.lock().school.find(hash).map(|dictionary| dictionary.coded.clone())
    }

    /// For `status`.
    pub(crate) fn status(&self) -> Value {
        let state = self.lock();
        json!({ "trained": state.school.dictionaries(), "bytes": state.school.size() })
    }

    /// Learns from what was sent in so many bytes. All of it is done aside, one thing at a time, and only while there is
    /// processor time to spare: a page never waits for it.
    pub(crate) fn learn(ground: &Arc<Shared>, hop: &Hop, sent: Sent, crossed: u64) {
        let this = &ground.dictionaries;
        let has_time = || ground.means(None).load == Load::Light;
        if sent.body.len() > LARGEST_TAUGHT || !this.is_on() || !has_time() {
            return;
        }
        let (missing, lesson) = {
            let mut state = this.lock();
            if sent.is_anyones {
                state.school.handle_body(&sent.origin, number(&sent.url), &sent.body);
            }
            let dictionary = state.school.dictionary(&sent.origin);
            let missing = dictionary.filter(|it| !state.accounts.is_held(&sent.memory, it.hash));
            if missing.is_none() && !state.school.is_due() {
                return;
            }
            let Ok(permit) = this.learning.try_acquire() else { return };
            permit.forget();
            (missing, state.school.poll_lesson())
        };
        let (ground, hop) = (Arc::clone(ground), hop.clone());
        tokio::spawn(async move {
            // Given back whatever becomes of the work.
            let _turn = Turn(&ground);
            if let Some(dictionary) = missing {
                ground.dictionaries.reckon(&ground, &hop, &sent, crossed, dictionary).await;
            }
            if let Some(lesson) = lesson {
                ground.dictionaries.train(&ground, lesson).await;
            }
        });
    }

    /// Counts what the remote was not spared since it lacks the dictionary, and offers it once that is what it costs.
    async fn reckon(
        &self,
        ground: &Shared,
        hop: &Hop,
        sent: &Sent,
        crossed: u64,
        dictionary: Arc<Dictionary>,
    ) {
        let (body, with) = (sent.body.clone(), Arc::clone(&dictionary));
        let coded = aside(ground, move || compress_with(&with.bytes, &body, LEVEL).ok()).await;
        let Some(coded) = coded else { return };
        let spared = crossed.saturating_sub((coded.len() + BodyHash::LENGTH) as u64);
        let (hash, cost) = (dictionary.hash, dictionary.coded.len() as u64);
        if self.lock().accounts.handle_missed(&sent.memory, hash, spared, cost) {
            hop.offer_dictionary(hash, cost);
        }
    }

    async fn train(&self, ground: &Shared, Lesson { origin, samples, current }: Lesson) {
        let count = samples.len() as u64;
        let made = aside(ground, move || {
            let made = train(&samples, current.as_ref().map(|current| &current.bytes[..]))?;
            let coded = compress(&made, LEVEL).ok()?;
            Some(Dictionary { hash: BodyHash::of(&made), bytes: made, coded })
        });
        let Some(made) = made.await else { return };
        let (bytes, coded_bytes) = (made.bytes.len() as u64, made.coded.len() as u64);
        self.lock().school.handle_trained(&origin, made);
        let origin = ground.bus.url(&origin);
        ground.bus.emit(Event::DictionaryTrained { origin, samples: count, bytes, coded_bytes });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does work on a thread for such, and counts what it takes.
async fn aside<T: Send + 'static>(
    ground: &Shared,
    work: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    let timed = move || {
        let begun = std::time::Instant::now();
        (work(), begun.elapsed())
    };
    match spawn_blocking(timed).await {
        Ok((done, took)) => {
            ground.squeezing.charge(took);
            done
        }
        Err(panic) => {
            tracing::warn!("a dictionary could not be made or tried: {panic}");
            None
        }
    }
}

/// The turn of who learns.
struct Turn<'a>(&'a Shared);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.dictionaries.learning.add_permits(1);
    }
}

fn size(most: u64) -> usize {
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Of a URL, within this process.
fn number(url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    hasher.finish()
}
