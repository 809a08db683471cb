//! What a page will need, fetched before anyone asks: promises on the stream whose bytes mention it, fetches in the
//! order of render priority, pushes, which may name more. What is worth it is decided by then (`reading`).

mod asking;
mod framed;
mod guessed;
mod learned;
mod together;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhop_bundle::{Decision, Skip, Unasked, Urgency, Way, sameness};
use farhop_events::{Event, ExchangeId};
use farhop_htotp::frame::{Coding, Failure, Priority};
use farhop_htotp::head::usual_version;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_origin::Upload;
use farhop_page::{Confidence, Destination, Hint, Mode, Source};
use farhop_streaming::Form;
use farhop_transport::hop::Sender;
use http::{StatusCode, header};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use url::Url;

use crate::allowance::{Allowance, UsedUp};
use crate::carrier::Carrier;
use crate::delivery::Delivery;
use crate::dictionaries::Dictionaries;
use crate::failure;
use crate::head;
use crate::mirror::Stale;
use crate::models::{Made, Namer, is_anyones};
use crate::order::{Limits, Order};
use crate::origins::Asked;
use crate::overtaken::Words;
use crate::owner::{Known, Owner};
use crate::page::{Page, is_document};
use crate::reading::{Decided, Reading};
use crate::tally::{ASKED, COMING, HELD, NOT_PUBLIC, Tally, UNSEEN, VALIDATED, skip_words};
use crate::treatment::{Treatment, content_length, has_body, media_type, treatment};
use crate::validation;
use crate::variant::{self, Purpose};
pub(crate) use asking::request_head;
use framed::may_be_asked_about;
use guessed::{Guesses, Raised};
use together::for_anyone;

/// The bundle of one load of one page, frames included. It ends with the last stream that is read for it.
pub(crate) struct Bundle {
    carrier: Arc<Carrier>,
    owner: Owner,
    known: Arc<Known>,
    page: ExchangeId,
    allowance: Allowance,
    order: Mutex<Order<Job>>,
    tally: Mutex<Tally>,
    /// Decided on when there was no stream to promise it on; the next one takes it.
    waiting: Mutex<Vec<(Arc<Reading>, Decided)>>,
    /// Promised, and not fetched before it is asked for or named.
    held_back: Mutex<HashMap<Url, Arc<Notify>>>,
    /// Promised, and only guessed.
    guessed: Guesses,
    /// The remote answers the page by itself: its browser asks already.
    is_late: bool,
}

/// A promise that is to be kept.
struct Job {
    wish: Wish,
    /// Rings when the remote does not want it.
    unwanted: oneshot::Receiver<()>,
    /// Told when the browser has asked for it meanwhile, and is answered.
    overtaken: Option<oneshot::Receiver<()>>,
}

/// What was promised.
struct Wish {
    promise: u64,
    reading: Arc<Reading>,
    /// As the page names it; `unasked` is elsewhere once it was redirected.
    hint: Hint,
    unasked: Unasked,
    head: RequestHead,
    /// Redirects that led there.
    way: Way,
    priority: Priority,
    /// The browser has asked for it, or the page names it after all: it is no guess any more.
    wanted: Arc<AtomicBool>,
    raised: Raised,
    /// What the remote holds of it: the origin is only asked whether that is still right.
    stale: Option<Stale>,
    /// In the words in which its browser may ask for it meanwhile.
    words: Option<Words>,
}

impl Wish {
    /// Whether its use is doubtful, so that it may take little.
    fn is_guess(&self) -> bool {
        self.hint.confidence == Confidence::Guess && !self.wanted.load(Relaxed)
    }
}

impl Bundle {
    /// The bundle of the page at `url`, which `page` asked for, or of what was found out about it later. `is_late`: its browser has
    /// the page by now.
    pub(crate) fn new(
        carrier: &Arc<Carrier>,
        owner: &Owner,
        known: &Arc<Known>,
        page: ExchangeId,
        url: &str,
        allowance: Allowance,
        is_late: bool,
    ) -> Arc<Bundle> {
        let ground = &carrier.ground;
        Arc::new(Bundle {
            carrier: Arc::clone(carrier),
            owner: owner.clone(),
            known: Arc::clone(known),
            page,
            allowance,
            order: Mutex::default(),
            tally: Mutex::new(Tally::new(&ground.bus, page, url)),
            waiting: Mutex::default(),
            held_back: Mutex::default(),
            guessed: Guesses::default(),
            is_late,
        })
    }

    /// Promises on `sender` what was decided to be worth it, and begins to fetch it.
    pub(crate) fn add(self: &Arc<Self>, reading: &Arc<Reading>, decided: Vec<Decided>, sender: &Sender) {
        self.keep(reading, decided);
        self.promise_waiting(sender);
    }

    /// Keeps what was decided until there is a stream to promise it on.
    pub(crate) fn keep(&self, reading: &Arc<Reading>, decided: Vec<Decided>) {
        lock(&self.waiting).extend(decided.into_iter().map(|one| (Arc::clone(reading), one)));
    }

    fn promise_waiting(self: &Arc<Self>, sender: &Sender) {
        // What is held may release more that waited for it, so until nothing waits.
        loop {
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            if waiting.is_empty() {
                return self.begin();
            }
            for (reading, Decided { hint, decision, way, until_asked }) in waiting {
                lock(&self.tally).found(&hint);
                match decision {
                    Decision::Skip(skip) => {
                        self.named(&hint);
                        if skip == Skip::Duplicate {
                            self.confirm_guess(&reading, &hint);
                        }
                        self.skip(&hint, skip_words(skip));
                    }
                    Decision::Fetch(unasked, _) if self.carrier.ground.origins.refuses(&unasked.url) => {
                        self.skip(&hint, NOT_PUBLIC);
                        self.keep(&reading, reading.lost(&hint));
                    }
                    Decision::Fetch(unasked, _) if !self.known.shows(&unasked.url) => {
                        self.skip(&hint, UNSEEN);
                        self.keep(&reading, reading.lost(&hint));
                    }
                    Decision::Fetch(unasked, _) if self.is_asked(&unasked) => {
                        self.skip(&hint, ASKED);
                        self.keep(&reading, reading.lost(&hint));
                    }
                    Decision::Fetch(unasked, urgency) if is_held(&self.carrier, &self.owner, &unasked) => {
                        self.skip(&hint, HELD);
                        self.named_and_held(&made(&reading, &hint, &unasked, urgency.level), &unasked);
                        // What it names is most likely held as well.
                        self.keep(&reading, reading.lost(&hint));
                        self.recall_held_frame(&reading, &hint, &unasked);
                    }
                    Decision::Fetch(unasked, urgency) if self.is_coming(&hint, &unasked) => {
                        self.skip(&hint, COMING);
                        self.named_and_held(&made(&reading, &hint, &unasked, urgency.level), &unasked);
                        // What it names is named to the other user.
                        self.keep(&reading, reading.lost(&hint));
                    }
                    Decision::Fetch(unasked, urgency) => {
                        let wish = (reading, hint, until_asked);
                        self.promise(wish, (unasked, way), urgency, sender);
                    }
                }
            }
        }
    }

    /// The text of `reading` has been read, as far as it will be.
    pub(crate) fn is_read(&self, reading: &Reading) {
        if !reading.is_framed() {
            let models = &self.carrier.ground.models;
            models.tells(&self.owner, self.page, reading.referrer_policy());
        }
    }

    /// Whether the browser has asked for it since the page was opened, which it has read before this began.
    pub(crate) fn is_asked(&self, unasked: &Unasked) -> bool {
        let words = || Some(Words::of(self.owner.user, &request_head(unasked)?));
        self.is_late && words().is_some_and(|words| self.carrier.overtaken.is_asked(&words))
    }

    fn skip(&self, hint: &Hint, why: &'static str) {
        lock(&self.tally).skipped(why);
        let bus = &self.carrier.ground.bus;
        bus.emit(Event::HintSkipped { page: self.page, url: bus.url(hint.url.as_str()), why: why.into() });
    }

    fn promise(
        self: &Arc<Self>,
        (reading, hint, until_asked): (Arc<Reading>, Hint, bool),
        (unasked, way): (Unasked, Way),
        urgency: Urgency,
        sender: &Sender,
    ) {
        let Some(head) = request_head(&unasked) else { return };
        let priority = Priority { urgency: urgency.level, incremental: urgency.incremental };
        let stale = held_stale(&self.carrier, &self.owner, &unasked);
        let stale = stale.filter(|_| may_be_asked_about(&reading, &hint, &unasked));
        let promise = match &stale {
            Some(stale) => sender.validate(stale.entry, sameness(&head.fields), &head, priority),
            None => sender.promise(&head, priority),
        };
        // `None` once nobody reads this stream any more.
        let Some(promise) = promise else { return };
        let made = made(&reading, &hint, &unasked, urgency.level);
        match &stale {
            Some(_) => {
                lock(&self.tally).skipped(VALIDATED);
                self.named_and_held(&made, &unasked);
            }
            None => self.tell_promised(promise, &unasked, made),
        }
        let unwanted = self.carrier.promised(promise);
        let bundle = Arc::downgrade(self);
        let wanted = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&wanted);
        let raised = Raised::default();
        let risen = raised.clone();
        let release = Arc::new(Notify::new());
        let (released, waits) = (Arc::clone(&release), Arc::clone(&reading));
        self.carrier.on_wanted(promise, move |priority| {
            asked.store(true, Relaxed);
            risen.forget();
            released.notify_one();
            waits.guesses_changed();
            if let Some(bundle) = bundle.upgrade() {
                lock(&bundle.order).hurry(priority.urgency, |job| job.wish.promise == promise);
            }
        });
        let origin = head.origin();
        // What is held back until it is asked for is sent to nobody.
        let words = (self.is_late && !until_asked).then(|| Words::of(self.owner.user, &head));
        let overtaken = words.as_ref().and_then(|words| self.carrier.overtaken.promises(words));
        let wish =
            Wish { promise, reading, hint, unasked, head, way, priority, wanted, raised, stale, words };
        self.guess(&wish);
        // Of names in scripts the first show whether there are more: they need not wait for each other.
        let guess = wish.hint.confidence == Confidence::Guess && wish.hint.source != Source::Mention;
        let job = Job { wish, unwanted, overtaken };
        if until_asked {
            return self.hold(job, urgency.level, origin, release);
        }
        match guess {
            true => lock(&self.order).add_guess(origin, job),
            false => lock(&self.order).add(urgency.level, origin, job),
        }
    }

    /// What the remote has, or is about to: whether it answers with it is told by that alone.
    fn named_and_held(&self, made: &Made<'_>, unasked: &Unasked) {
        let held = (&self.carrier.remote, self.carrier.held_as(&self.owner, unasked));
        self.carrier.ground.models.named(&self.owner, self.page, made, held);
    }

    fn tell_promised(&self, promise: u64, unasked: &Unasked, made: Made<'_>) {
        self.carrier.ground.models.promised(&self.owner, self.page, promise, made);
        lock(&self.tally).promised();
        let bus = &self.carrier.ground.bus;
        bus.emit(Event::Promised { promise, page: self.page, url: bus.url(unasked.url.as_str()) });
    }

    /// The same with what was named before, by what has not changed.
    pub(crate) fn add_again(
        self: &Arc<Self>,
        reading: &Arc<Reading>,
        decided: Vec<Decided>,
        sender: &Sender,
    ) {
        self.keep_again(reading, decided);
        self.promise_waiting(sender);
    }

    /// Begins what may begin.
    fn begin(self: &Arc<Self>) {
        let settings = self.carrier.ground.settings();
        let limits = Limits {
            total: settings.bundle.concurrent as usize,
            origin: settings.origin.connections as usize,
        };
        loop {
            let begun = lock(&self.order).begin(limits);
            let Some((slot, job)) = begun else { return };
            let bundle = Arc::clone(self);
            self.carrier.spawn(async move {
                let promise = job.wish.promise;
                bundle.keep_promise(job).await;
                bundle.carrier.settled(promise);
                lock(&bundle.order).ended(&slot);
                bundle.begin();
            });
        }
    }

    async fn keep_promise(self: &Arc<Self>, job: Job) {
        let Job { wish, unwanted, overtaken } = job;
        // What is set aside for it, if it is a guess by now.
        let mut set_aside = false;
        let kept = tokio::select! {
            biased;
            // Ends what is under way: dropping the fetch frees its connection.
            _ = unwanted => None,
            () = is_overtaken(overtaken) => Some(Err(failure::withdrawn(&ASKED))),
            kept = self.fetch_in_turn(&wish, &mut set_aside) => Some(kept),
        };
        if let Some(words) = &wish.words {
            self.carrier.overtaken.sends(words);
        }
        wish.guess_ended(set_aside, kept.as_ref());
        let failure = match kept {
            Some(Ok(_)) => return,
            Some(Err(failure)) => Some(failure),
            None => None,
        };
        self.keep(&wish.reading, wish.reading.lost(&wish.hint));
        if let Some(failure) = failure
            && let Some(sender) = self.carrier.hop.push(wish.promise)
        {
            // What waited for it is promised on the stream that says that it fails.
            self.promise_waiting(&sender);
            sender.fail(failure);
        }
    }

    /// Fetches and pushes; gives the bytes that crossed. Fails where the promise is not kept and its push has not begun.
    async fn fetch(self: &Arc<Self>, wish: &Wish) -> Result<u64, Failure> {
        let ground = &self.carrier.ground;
        let started = Instant::now();
        if self.allowance.is_used_up() {
            return Err(failure::withdrawn(&UsedUp::Page));
        }
        self.judge_anew(wish)?;
        let pass = self.pass(wish).await?;
        let conditional = wish.stale.as_ref().map(|stale| validation::question(&wish.head, stale));
        let purpose = Purpose {
            destination: Some(wish.hint.destination),
            integrity: wish.hint.integrity.is_some(),
            cors: wish.hint.mode != Mode::NoCors,
        };
        let policy = self.carrier.policy(&self.owner, true);
        let request =
            variant::towards_origin(conditional.as_ref().unwrap_or(&wish.head), purpose, policy, None);
        let asked = Asked {
            owner: &self.owner,
            exchange: self.page,
            head: &request,
            // As the browser will ask for it.
            version: usual_version(&request.scheme),
            upload: Upload::empty(),
            informed: None,
        };
        let response = ground.origins.fetch(asked).await?;
        if self.known.never().note(&wish.unasked.url, &response.fields) {
            return Err(failure::withdrawn(&"the response sets a cookie"));
        }
        if let (Some(stale), Some(conditional)) = (&wish.stale, &conditional) {
            let confirmed = response.status == StatusCode::NOT_MODIFIED;
            let url = ground.bus.url(wish.unasked.url.as_str());
            ground.bus.emit(Event::Validated { page: self.page, url, confirmed });
            if confirmed {
                let head = validation::answer(conditional, stale, response.fields);
                return self.confirm(wish, &head);
            }
        }
        wish.reading.answered(&wish.unasked, response.status, &response.fields);
        let status = response.status;
        if wish.hint.source == Source::DefaultIcon && status.is_client_error() {
            self.known.never().bar(&wish.unasked.url, Skip::NoIcon);
        }
        let anyones = is_anyones(&wish.unasked.url, &wish.unasked.fields, status, &response.fields);
        if wish.hint.source == Source::OthersVisits && !anyones {
            return Err(failure::withdrawn(&"only others have asked for it, and it may be personal"));
        }
        let head = head::towards_remote(status, response.fields, self.page);
        if Form::of(&media_type(&head.fields), &wish.head.path).is_some() {
            return Err(failure::withdrawn(&"a manifest is limited when it is asked for"));
        }
        let (length, most) = (content_length(&head.fields), wish.reading.guess_allowance());
        if wish.is_guess() && length.is_some_and(|length| length > most) {
            return Err(failure::withdrawn(&UsedUp::Guess));
        }
        let is_mention = wish.hint.source == Source::Mention;
        let mut more = Vec::new();
        if is_mention {
            more = wish.reading.read(|document| document.mention_found(&wish.hint, status == StatusCode::OK));
        }
        if is_mention && status != StatusCode::OK {
            return Err(failure::withdrawn(&"a name in a script leads nowhere"));
        }
        let mut share = self.allowance.share(length).map_err(|error| failure::withdrawn(&error))?;
        if wish.is_guess() && length.is_none() {
            share.bind(most, Arc::clone(&wish.wanted));
        }
        wish.reading.is_answered().await;
        // The page may have come meanwhile.
        self.judge_anew(wish)?;
        let Some((promise, sender)) = self.push(wish) else { return Ok(0) };
        if let Some(priority) = wish.raised.priority(wish.priority) {
            sender.reprioritize(priority);
        }
        ground.models.sent(&self.owner, promise, anyones);
        self.add(&wish.reading, more, &sender);
        let rate = self.carrier.rate();
        let treatment = treatment(&wish.head, &head, purpose, self.carrier.means(&self.owner, true));
        let page = self.reader(wish, &head, &treatment);
        if page.is_none() {
            self.follow(wish, &head, &sender);
        }
        if let Some(pass) = &pass {
            pass.answered(for_anyone(wish, &head));
        }
        self.carrier.take_up(&wish.head, response.former).await;
        let pushed = head.clone();
        let delivery = Delivery {
            returning: ground.centre.expect(&self.carrier.remote, length),
            ground,
            to: self.carrier.outlet(&self.owner),
            kin: self.carrier.kin(&self.owner, &wish.head, &head, &treatment, false),
            request: &wish.head.fields,
            treatment,
            body: has_body(&wish.head.method, status).then_some(response.body),
            head,
            rate,
            resume: None,
            page,
            share: Some(share),
            viewing: None,
        };
        let delivered = delivery.run(sender).await;
        if let Some(sent) = delivered.sent {
            Dictionaries::learn(ground, &self.carrier.hop, sent, delivered.crossed_bytes);
        }
        if delivered.outcome.is_ok() {
            pass.into_iter().for_each(|pass| self.carrier.passed(pass));
            self.carrier.pushed(&self.owner, &wish.head, &pushed);
            let (to, made) = ((&self.carrier.remote, self.owner.user), (&wish.hint, wish.priority.urgency));
            ground.models.pushed(to, made, &wish.unasked, &pushed, anyones);
        }
        ground.bus.emit(Event::Fetched {
            exchange: self.page,
            unasked: true,
            url: ground.bus.url(wish.unasked.url.as_str()),
            status: status.as_u16(),
            origin_bytes: delivered.origin_bytes,
            crossed_bytes: delivered.crossed_bytes,
            spared_bytes: delivered.spared_bytes,
            taught: delivered.taught,
            total_ms: started.elapsed().as_millis() as u64,
        });
        Ok(delivered.crossed_bytes)
    }

    /// Fails where the page's response, which is here by now, forbids what its last one allowed.
    fn judge_anew(&self, wish: &Wish) -> Result<(), Failure> {
        if wish.reading.still_allows(&wish.hint, &wish.unasked.url, &wish.way) {
            return Ok(());
        }
        let why = skip_words(Skip::ContentPolicy);
        self.skip(&wish.hint, why);
        Err(failure::withdrawn(&why))
    }

    /// The origin has confirmed what the remote holds.
    fn confirm(self: &Arc<Self>, wish: &Wish, head: &ResponseHead) -> Result<u64, Failure> {
        let Some(mut sender) = self.push_word(wish) else { return Ok(0) };
        self.keep_again(&wish.reading, wish.reading.confirmed(&wish.hint));
        if let Some(stale) = &wish.stale {
            self.recall_frame(&wish.reading, &wish.hint, &wish.unasked, stale, &head.fields);
        }
        self.promise_waiting(&sender);
        sender.answer(head, Coding::Identity, None);
        sender.finish(None);
        Ok(0)
    }

    /// The stream on which a whole response is pushed, and its promise; `None` where nobody wants it. Where only a word was
    /// announced on what the remote holds, it is promised in that word's place.
    fn push(&self, wish: &Wish) -> Option<(u64, Sender)> {
        let word = self.push_word(wish)?;
        if wish.stale.is_none() {
            return Some((wish.promise, word));
        }
        let promise = word.promise(&wish.head, wish.priority)?;
        let made = made(&wish.reading, &wish.hint, &wish.unasked, wish.priority.urgency);
        self.tell_promised(promise, &wish.unasked, made);
        word.fail(failure::withdrawn(&"what is held has changed"));
        Some((promise, self.carrier.hop.push(promise)?))
    }

    /// The stream of the promise's own number.
    fn push_word(&self, wish: &Wish) -> Option<Sender> {
        if let Some(words) = &wish.words {
            self.carrier.overtaken.sends(words);
        }
        self.carrier.hop.push(wish.promise)
    }

    /// Who reads along for what the response names in turn.
    fn reader(self: &Arc<Self>, wish: &Wish, head: &ResponseHead, treatment: &Treatment) -> Option<Page> {
        let decoded = matches!(treatment, Treatment::Recode(_));
        if wish.hint.destination == Destination::Frame {
            let frame = wish.reading.frame(&wish.hint.url, &wish.head, head).filter(|_| is_document(head))?;
            let frame = Arc::new(frame);
            self.remember_frame(&frame, &wish.unasked.url);
            return Page::document(self, frame, head, decoded);
        }
        if head.status != StatusCode::OK {
            return None;
        }
        let part = wish.reading.begin(&wish.hint, &wish.unasked.url, head)?;
        Page::part(self, Arc::clone(&wish.reading), part, head, decoded)
    }

    /// A response that is not read: where it leads elsewhere, the browser will go; else what waited for it goes on.
    fn follow(self: &Arc<Self>, wish: &Wish, head: &ResponseHead, sender: &Sender) {
        self.keep(&wish.reading, wish.reading.redirected(&wish.hint, &wish.way, &wish.unasked, head));
        self.promise_waiting(sender);
    }
}

/// Completes when the browser has asked for what was promised before any of it was sent.
async fn is_overtaken(overtaken: Option<oneshot::Receiver<()>>) {
    let told = match overtaken {
        Some(overtaken) => overtaken.await.is_ok(),
        None => false,
    };
    if !told {
        std::future::pending().await
    }
}

/// Whether the remote will answer it by itself. A reload that passes caches by is never answered so.
pub(crate) fn is_held(carrier: &Carrier, owner: &Owner, unasked: &Unasked) -> bool {
    let Unasked { url, fields } = unasked;
    let passes_by = fields.contains_key(header::CACHE_CONTROL) || fields.contains_key(header::PRAGMA);
    !passes_by && carrier.holds_fresh(owner, url, fields)
}

/// What the remote holds of it and has to have validated; nothing for a reload that passes caches by.
pub(crate) fn held_stale(carrier: &Carrier, owner: &Owner, unasked: &Unasked) -> Option<Stale> {
    let Unasked { url, fields } = unasked;
    let passes_by = fields.contains_key(header::CACHE_CONTROL) || fields.contains_key(header::PRAGMA);
    carrier.holds_stale(owner, url, fields).filter(|_| !passes_by)
}

/// What is made of a hint of `reading`, as it teaches.
fn made<'a>(reading: &Reading, hint: &'a Hint, unasked: &'a Unasked, urgency: u8) -> Made<'a> {
    let by = Namer { is_framed: reading.is_framed(), referrer_policy: reading.referrer_policy() };
    Made { hint, url: &unasked.url, urgency, by }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
