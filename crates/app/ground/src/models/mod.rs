//! Page models at ground: what visits show is gathered (`visits`), learned and kept (`file`), and what the models foresee
//! is begun as soon as a document is asked for (`foresight`). What follows from a visit is `farhop_models`' to say.

mod file;
mod foresight;
mod kinds;
mod seen;
mod visits;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farhop_bundle::{Unasked, opens_frame};
use farhop_events::{Bus, Event, ExchangeId};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_models::{Foreseen, Limits, Models, Needs, Policies, ToldModel, User, Visit};
use farhop_page::{Hint, ReferrerPolicy};
use farhop_settings::ground::ModelsSettings;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use url::Url;

use crate::error::GroundError;
use crate::mirror;
use crate::owner::Owner;
pub use file::ModelsError;
use file::ModelsFile;
pub(crate) use foresight::Foresight;
use kinds::{Kind, Kinds};
pub(crate) use seen::is_anyones;
use visits::{KEPT, Visits};

/// How often what has been learned is written.
const WRITE_EVERY: Duration = Duration::from_secs(60);

/// See the module. Clones are the same.
#[derive(Clone)]
pub(crate) struct PageModels(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    /// Everyone's.
    file: Option<ModelsFile>,
    /// Of each user.
    own: Option<ModelsFile>,
    /// Held while what has changed is written: what is older must not come later.
    writes: Mutex<()>,
}

struct State {
    models: Models,
    visits: Visits,
    kinds: Kinds,
    bus: Bus,
    /// Something was learned since it was written.
    changed: bool,
}

/// What `models` is asked over the control socket.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Asked {
    site: Option<String>,
    erase: bool,
}

impl PageModels {
    /// With what the files of the settings hold, if they name any. Must be called inside a tokio runtime.
    pub(crate) fn open(settings: &ModelsSettings, bus: &Bus) -> Result<PageModels, GroundError> {
        let limits = limits(settings);
        let mut models = Models::new(limits);
        let named =
            |setting, file: &Option<PathBuf>| file.as_ref().map(|file| ModelsFile::new(setting, file));
        let (file, own) = (named("file", &settings.file), named("own_file", &settings.own_file));
        if let Some(file) = &file {
            let nothing = models.to_text();
            file.load(limits, &nothing, |text| Models::from_text(text, limits).map(|read| models = read))?;
        }
        if let Some(own) = &own {
            let nothing = models.own_to_text();
            own.load(limits, &nothing, |text| models.add_own(text))?;
        }
        let (visits, kinds) = (Visits::default(), Kinds::default());
        let state = State { models, visits, kinds, bus: bus.clone(), changed: false };
        let inner = Arc::new(Inner { state: Mutex::new(state), file, own, writes: Mutex::default() });
        if inner.file.is_some() || inner.own.is_some() {
            tokio::spawn(write_now_and_then(Arc::downgrade(&inner)));
        }
        Ok(PageModels(inner))
    }

    /// These settings are in force from now on.
    pub(crate) fn set(&self, settings: &ModelsSettings) {
        self.lock().models.limit(limits(settings));
    }

    /// The user asks for `page` with this exchange: what the models foresee. A visit begins that will be learned, whether
    /// anything is foreseen or not.
    fn begin(
        &self,
        owner: &Owner,
        user: User,
        exchange: ExchangeId,
        page: &Url,
        now: Instant,
    ) -> (Policies, Vec<Foreseen>) {
        let mut state = self.lock();
        // The visit before this one teaches what this one needs.
        let ended = state.visits.begin(owner, user.clone(), exchange, page, now);
        state.learn(ended);
        let foreseen = state.models.foresee(&user, page, unix_seconds());
        drop(state);
        let inner = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            sleep_until(now + KEPT).await;
            if let Some(inner) = inner.upgrade() {
                let mut state = inner.lock();
                let ended = state.visits.over(Instant::now());
                state.learn(ended);
            }
        });
        foreseen
    }

    /// The page of this visit is here, with this response; `None`: it is no page, so that what was foreseen was in vain.
    pub(crate) fn answered(&self, owner: &Owner, exchange: ExchangeId, response: Option<&ResponseHead>) {
        self.lock().visits.answered(owner, exchange, response, Instant::now());
    }

    /// The page of this visit was read: this is what it lets others know of it, where it says so.
    pub(crate) fn tells(&self, owner: &Owner, exchange: ExchangeId, policy: Option<ReferrerPolicy>) {
        self.lock().visits.tells(owner, exchange, policy);
    }

    /// The page of a visit names this, which the remote has, or is about to: if the browser asks for it, this is how. It is what
    /// the remote holds under these fingerprints.
    pub(crate) fn named(
        &self,
        owner: &Owner,
        exchange: ExchangeId,
        made: &Made<'_>,
        (remote, held): (&Arc<str>, Vec<u64>),
    ) {
        let mut state = self.lock();
        state.hold(remote, held, made.url, || visits::needs(made.hint, made.urgency));
        state.visits.names(owner, exchange, made, Instant::now());
    }

    /// The remote will answer this by itself: whether it is asked for will not be seen.
    fn unseen(&self, owner: &Owner, exchange: ExchangeId, url: &Url) {
        self.lock().visits.unseen(owner, exchange, url);
    }

    /// This was promised for the page of a visit.
    pub(crate) fn promised(&self, owner: &Owner, exchange: ExchangeId, promise: u64, made: Made<'_>) {
        self.lock().visits.promised(owner, exchange, promise, &made, Instant::now());
    }

    /// What was promised is being sent; `anyones`: it may be given to anyone.
    pub(crate) fn sent(&self, owner: &Owner, promise: u64, anyones: bool) {
        self.lock().visits.sent(&owner.remote, promise, anyones);
    }

    /// Promises on the carrier of this name have answered requests.
    pub(crate) fn used(&self, carrier: &Arc<str>, promises: RangeInclusive<u64>) {
        self.lock().visits.used(carrier, promises);
    }

    /// The remote does not want these: it holds them, or their page was left.
    pub(crate) fn unwanted(&self, carrier: &Arc<str>, promises: RangeInclusive<u64>) {
        self.lock().visits.unwanted(carrier, promises);
    }

    /// The browser asked for this, which came `at` this time over a hop with this round trip, and which is answered so.
    pub(crate) fn crossed(
        &self,
        owner: &Owner,
        remote: &Arc<str>,
        (request, response): (&RequestHead, &ResponseHead),
        at: Instant,
        round_trip: Duration,
    ) {
        if opens_frame(&request.fields)
            && let Some(url) = request.resource()
        {
            return self.lock().visits.framed(owner, url, at);
        }
        let Some(seen) = seen::seen(request, response) else { return };
        let mut state = self.lock();
        let held = mirror::fingerprints_of(owner.user, &seen.url, &request.fields, &response.fields);
        let (url, mut needs) = (seen.url.clone(), seen.needs.clone());
        needs.initiator = None;
        let kind = Kind { url, needs, anyones: seen.anyones };
        state.kinds.note(remote, held, kind);
        // Of what was promised within a round trip before, the remote knew nothing when it sent this.
        let unheard = at.checked_sub(round_trip).unwrap_or(at);
        state.visits.crossed(owner, seen, at, unheard);
    }

    /// This remote holds under these fingerprints what was foreseen.
    fn held(&self, remote: &Arc<str>, fingerprints: Vec<u64>, one: &Foreseen) {
        self.lock().hold(remote, fingerprints, &one.url, || one.needs.clone());
    }

    /// This was pushed to a user of this remote, which may hold it from now on.
    pub(crate) fn pushed(
        &self,
        (remote, user): (&Arc<str>, u64),
        (hint, urgency): (&Hint, u8),
        request: &Unasked,
        response: &ResponseHead,
        anyones: bool,
    ) {
        let held = mirror::fingerprints_of(user, &request.url, &request.fields, &response.fields);
        let needs = visits::needs(hint, urgency);
        let kind = Kind { url: request.url.clone(), needs, anyones };
        self.lock().kinds.note(remote, held, kind);
    }

    /// The remote has answered by itself what the page of this exchange asked for on the carrier of this name, so long after the
    /// page, from what it holds under this fingerprint.
    pub(crate) fn answered_here(
        &self,
        (remote, carrier): (&Arc<str>, &Arc<str>),
        page: ExchangeId,
        fingerprint: u64,
        after: Duration,
    ) {
        let mut state = self.lock();
        if let Some(kind) = state.kinds.of(remote, fingerprint) {
            state.visits.answered_here(carrier, page, &kind, after);
        }
    }

    /// What `models` answers.
    pub(crate) fn command(&self, args: Value) -> Result<Value, String> {
        let mut asked: Asked = match args {
            Value::Null => Asked::default(),
            args => serde_json::from_value(args).map_err(|error| error.to_string())?,
        };
        asked.site = asked.site.as_deref().map(farhop_control::host).transpose()?;
        let mut state = self.lock();
        if asked.erase {
            state.visits.forget();
            state.kinds.forget();
            let erased = state.models.erase(asked.site.as_deref());
            state.changed = true;
            drop(state);
            self.save();
            return Ok(json!({ "erased": erased }));
        }
        match asked.site {
            Some(site) => Ok(json!({ "site": site, "models": state.models.told(&site, unix_seconds()) })),
            None => {
                let path = |file: &Option<ModelsFile>| file.as_ref().map(|file| file.path().to_owned());
                let (file, own) = (path(&self.0.file), path(&self.0.own));
                let (bytes, sites) = (state.models.bytes(), state.models.hosts());
                Ok(json!({ "bytes": bytes, "sites": sites, "file": file, "own_file": own }))
            }
        }
    }

    /// What is known of this page, and of pages like it.
    pub(crate) fn told(&self, page: &Url) -> Vec<ToldModel> {
        self.lock().models.told_of(page, unix_seconds())
    }

    /// For `status`.
    pub(crate) fn status(&self) -> Value {
        let state = self.lock();
        json!({
            "models": state.models.len(),
            "bytes": state.models.bytes(),
            "visits": state.visits.len(),
            "uses": state.visits.uses(),
            "answered": state.visits.answered_by_remotes(),
        })
    }

    /// Writes what has changed.
    pub(crate) fn save(&self) {
        self.0.save();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

/// A promise, as it teaches.
pub(crate) struct Made<'a> {
    pub(crate) hint: &'a Hint,
    pub(crate) url: &'a Url,
    pub(crate) urgency: u8,
    /// The document that names it.
    pub(crate) by: Namer,
}

/// A document that names what is promised.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Namer {
    /// It stands in a frame of the page.
    pub(crate) is_framed: bool,
    /// What it lets others know of it, where it says so.
    pub(crate) referrer_policy: Option<ReferrerPolicy>,
}

impl State {
    /// This remote holds under these fingerprints what is asked for so; what was seen of it when it crossed tells more.
    fn hold(&mut self, remote: &Arc<str>, held: Vec<u64>, url: &Url, needs: impl Fn() -> Needs) {
        for fingerprint in held {
            if self.kinds.of(remote, fingerprint).is_none() {
                // Whether anyone may have it everyone's models learn from what crosses.
                let kind = Kind { url: url.clone(), needs: needs(), anyones: false };
                self.kinds.note(remote, [fingerprint].into_iter(), kind);
            }
        }
    }

    fn learn(&mut self, ended: Vec<Visit>) {
        for visit in ended {
            self.models.learn(&visit, unix_seconds());
            self.bus.emit(Event::VisitLearned {
                user: visit.user.to_string(),
                url: self.bus.url(visit.page.as_str()),
                asked: visit.asked.len() as u64,
                sent: u64::from(visit.sent),
                used: u64::from(visit.used),
            });
            self.changed = true;
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What is learned is advice: no invariant spans a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self) {
        if self.file.is_none() && self.own.is_none() {
            return;
        }
        let _writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = {
            let mut state = self.lock();
            if !std::mem::take(&mut state.changed) {
                return;
            }
            let all = self.file.as_ref().map(|file| (file, state.models.to_text()));
            (all, self.own.as_ref().map(|file| (file, state.models.own_to_text())))
        };
        for (file, text) in all.into_iter().chain(own) {
            if let Err(error) = file.save(&text) {
                tracing::warn!(target: "farhop", "{error}");
            }
        }
    }
}

async fn write_now_and_then(inner: Weak<Inner>) {
    let mut ticks = tokio::time::interval(WRITE_EVERY);
    loop {
        ticks.tick().await;
        let Some(inner) = inner.upgrade() else { return };
        // A disk may be asleep.
        let _ = tokio::task::spawn_blocking(move || inner.save()).await;
    }
}

fn limits(settings: &ModelsSettings) -> Limits {
    Limits { bytes: usize::try_from(settings.size.0).unwrap_or(usize::MAX) }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
