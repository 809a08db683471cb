//! What a page will need, fetched before anyone asks: promises on the stream whose bytes mention it, fetches in the
//! order of render priority, pushes, which may name more. What is worth it is decided by then (`reading`).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhop_bundle::{Decision, Unasked, Urgency, Way};
use farhop_events::{Event, ExchangeId};
use farhop_htotp::frame::{Failure, Priority};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_origin::Upload;
use farhop_page::{Confidence, Destination, Hint, Mode, Source};
use farhop_transport::hop::Sender;
use http::{Method, StatusCode, header};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::allowance::{Allowance, UsedUp};
use crate::carrier::Carrier;
use crate::delivery::Delivery;
use crate::failure;
use crate::head;
use crate::order::{Limits, Order};
use crate::origins::Asked;
use crate::owner::{Known, Owner};
use crate::page::{Page, is_document};
use crate::reading::{Decided, Reading};
use crate::tally::{HELD, NOT_PUBLIC, Tally, UNSEEN, skip_words};
use crate::treatment::{Treatment, content_length, has_body, treatment};
use crate::variant::Purpose;

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
}

/// A promise that is to be kept.
struct Job {
    wish: Wish,
    /// Rings when the remote does not want it.
    unwanted: oneshot::Receiver<()>,
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
    /// The browser has asked for it: it is no guess any more.
    wanted: Arc<AtomicBool>,
}

impl Wish {
    /// Whether its use is doubtful, so that it may take little.
    fn is_guess(&self) -> bool {
        self.hint.confidence == Confidence::Guess && !self.wanted.load(Relaxed)
    }
}

impl Bundle {
    /// The bundle of the page at `url`, which `page` asked for, or of what was found out about it later.
    pub(crate) fn new(
        carrier: &Arc<Carrier>,
        owner: &Owner,
        known: &Arc<Known>,
        page: ExchangeId,
        url: &str,
        allowance: Allowance,
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
            for (reading, Decided { hint, decision, way }) in waiting {
                lock(&self.tally).found(&hint);
                match decision {
                    Decision::Skip(skip) => self.skip(&hint, skip_words(skip)),
                    Decision::Fetch(unasked, _) if self.carrier.ground.origins.refuses(&unasked.url) => {
                        self.skip(&hint, NOT_PUBLIC);
                        self.keep(&reading, reading.lost(&hint));
                    }
                    Decision::Fetch(unasked, _) if !self.known.shows(&unasked.url) => {
                        self.skip(&hint, UNSEEN);
                        self.keep(&reading, reading.lost(&hint));
                    }
                    Decision::Fetch(unasked, _) if is_held(&self.carrier, &self.owner, &unasked) => {
                        self.skip(&hint, HELD);
                        // What it names is most likely held as well.
                        self.keep(&reading, reading.lost(&hint));
                    }
                    Decision::Fetch(unasked, urgency) => {
                        self.promise(reading, hint, (unasked, way), urgency, sender);
                    }
                }
            }
        }
    }

    fn skip(&self, hint: &Hint, why: &'static str) {
        lock(&self.tally).skipped(why);
        let bus = &self.carrier.ground.bus;
        bus.emit(Event::HintSkipped { page: self.page, url: bus.url(hint.url.as_str()), why: why.into() });
    }

    fn promise(
        self: &Arc<Self>,
        reading: Arc<Reading>,
        hint: Hint,
        (unasked, way): (Unasked, Way),
        urgency: Urgency,
        sender: &Sender,
    ) {
        let Some(head) = request_head(&unasked) else { return };
        let priority = Priority { urgency: urgency.level, incremental: urgency.incremental };
        // `None` once nobody reads this stream any more.
        let Some(promise) = sender.promise(&head, priority) else { return };
        lock(&self.tally).promised();
        let bus = &self.carrier.ground.bus;
        bus.emit(Event::Promised { promise, page: self.page, url: bus.url(unasked.url.as_str()) });
        let unwanted = self.carrier.promised(promise);
        let bundle = Arc::downgrade(self);
        let wanted = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&wanted);
        self.carrier.on_wanted(promise, move |priority| {
            asked.store(true, Relaxed);
            if let Some(bundle) = bundle.upgrade() {
                lock(&bundle.order).hurry(priority.urgency, |job| job.wish.promise == promise);
            }
        });
        let origin = head.origin();
        let wish = Wish { promise, reading, hint, unasked, head, way, wanted };
        // Of names in scripts the first show whether there are more: they need not wait for each other.
        let guess = wish.hint.confidence == Confidence::Guess && wish.hint.source != Source::Mention;
        let job = Job { wish, unwanted };
        match guess {
            true => lock(&self.order).add_guess(origin, job),
            false => lock(&self.order).add(urgency.level, origin, job),
        }
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
        let Job { wish, unwanted } = job;
        let kept = tokio::select! {
            biased;
            // Ends what is under way: dropping the fetch frees its connection.
            _ = unwanted => None,
            kept = self.fetch(&wish) => Some(kept),
        };
        // What was stopped midway keeps what it set aside.
        if wish.hint.confidence == Confidence::Guess
            && let Some(kept) = &kept
        {
            let spent = kept.as_ref().ok().filter(|_| wish.is_guess());
            wish.reading.spent_on_guess(&wish.hint, *spent.unwrap_or(&0));
        }
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
        let asked = Asked {
            owner: &self.owner,
            exchange: self.page,
            head: &wish.head,
            upload: Upload::empty(),
            informed: None,
        };
        let response = ground.origins.fetch(asked).await?;
        if self.known.never().note(&wish.unasked.url, &response.fields) {
            return Err(failure::withdrawn(&"the response sets a cookie"));
        }
        wish.reading.answered(&wish.unasked, response.status, &response.fields);
        let status = response.status;
        let head = head::towards_remote(status, response.fields, self.page);
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
        let Some(sender) = self.carrier.hop.push(wish.promise) else { return Ok(0) };
        self.add(&wish.reading, more, &sender);
        let purpose = Purpose {
            destination: Some(wish.hint.destination),
            integrity: wish.hint.integrity.is_some(),
            cors: wish.hint.mode != Mode::NoCors,
        };
        let rate = self.carrier.rate();
        let treatment = treatment(&wish.head, &head, purpose, ground.means(rate));
        let page = self.reader(wish, &head, &treatment);
        if page.is_none() {
            self.follow(wish, &head, &sender);
        }
        let pushed = head.clone();
        let delivery = Delivery {
            ground,
            kin: self.carrier.kin(&self.owner, &wish.head, &head, &treatment, false),
            request: &wish.head.fields,
            treatment,
            body: has_body(&wish.head.method, status).then_some(response.body),
            head,
            rate,
            resume: None,
            page,
            share: Some(share),
        };
        let delivered = delivery.run(sender).await;
        if delivered.outcome.is_ok() {
            self.carrier.pushed(&self.owner, &wish.head, &pushed);
        }
        ground.bus.emit(Event::Fetched {
            exchange: self.page,
            unasked: true,
            url: ground.bus.url(wish.unasked.url.as_str()),
            status: status.as_u16(),
            origin_bytes: delivered.origin_bytes,
            crossed_bytes: delivered.crossed_bytes,
            spared_bytes: delivered.spared_bytes,
            total_ms: started.elapsed().as_millis() as u64,
        });
        Ok(delivered.crossed_bytes)
    }

    /// Who reads along for what the response names in turn.
    fn reader(self: &Arc<Self>, wish: &Wish, head: &ResponseHead, treatment: &Treatment) -> Option<Page> {
        let decoded = matches!(treatment, Treatment::Recode(_));
        if wish.hint.destination == Destination::Frame {
            let frame = wish.reading.frame(&wish.hint, &wish.head, head).filter(|_| is_document(head))?;
            return Page::document(self, Arc::new(frame), head, decoded);
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

/// Whether the remote will answer it by itself. A reload that passes caches by is never answered so.
pub(crate) fn is_held(carrier: &Carrier, owner: &Owner, unasked: &Unasked) -> bool {
    let Unasked { url, fields } = unasked;
    let passes_by = fields.contains_key(header::CACHE_CONTROL) || fields.contains_key(header::PRAGMA);
    !passes_by && carrier.holds_fresh(owner, url, fields)
}

/// The request as a browser will ask it through the remote.
pub(crate) fn request_head(unasked: &Unasked) -> Option<RequestHead> {
    let url = &unasked.url;
    let host = url.host_str()?;
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    Some(RequestHead {
        method: Method::GET,
        scheme: url.scheme().into(),
        // `url` leaves out the port that is the scheme's own.
        authority: url.port().map_or_else(|| host.into(), |port| format!("{host}:{port}")),
        path: path.into(),
        fields: unasked.fields.clone(),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_names_the_url_as_the_browser_will_ask_for_it() {
        let head = |url: &str| {
            let unasked = Unasked { url: url::Url::parse(url).unwrap(), fields: Default::default() };
            request_head(&unasked).map(|head| (head.authority, head.path)).unwrap()
        };
        assert_eq!(head("http://site.test:80/a/../b?c=%20d#e"), ("site.test".into(), "/b?c=%20d".into()));
        assert_eq!(head("http://[2001:db8::1]:8080"), ("[2001:db8::1]:8080".into(), "/".into()));
    }
}
