//! What a page will need, fetched before anyone asks: promises on the stream of the document, fetches in the order of
//! render priority, pushes. Which hints are worth it is `farhop-bundle`'s decision.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use farhop_bundle::{Budget, Cookies, Decision, Load, NeverUnasked, Plan, Skip, Unasked, Urgency};
use farhop_events::{Event, ExchangeId};
use farhop_htotp::frame::{Failure, Priority};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_origin::Upload;
use farhop_page::Hint;
use farhop_transport::hop::Sender;
use http::Method;
use tokio::sync::oneshot;
use tokio::time::Instant;
use url::Url;

use crate::allowance::{Allowance, UsedUp};
use crate::carrier::Carrier;
use crate::delivery::Delivery;
use crate::failure;
use crate::head;
use crate::order::{Limits, Order};
use crate::origins::Asked;
use crate::owner::Owner;
use crate::treatment::{content_length, has_body, treatment};
use crate::variant::Purpose;

/// The bundle of one load of one page.
pub(crate) struct Bundle {
    plan: Plan,
    cookies: Cookies,
    never: Arc<Mutex<NeverUnasked>>,
    fetching: Arc<Fetching>,
}

/// What the fetches of a page share.
struct Fetching {
    carrier: Arc<Carrier>,
    owner: Owner,
    page: ExchangeId,
    never: Arc<Mutex<NeverUnasked>>,
    allowance: Allowance,
    order: Mutex<Order<Job>>,
}

/// A promise that is to be kept.
struct Job {
    promise: u64,
    head: RequestHead,
    url: Url,
    purpose: Purpose,
    /// Rings when the remote does not want it.
    unwanted: oneshot::Receiver<()>,
}

impl Bundle {
    /// The bundle of the page that answers `request` with `response`.
    pub(crate) fn new(
        carrier: &Arc<Carrier>,
        owner: &Owner,
        page: ExchangeId,
        request: &RequestHead,
        response: &ResponseHead,
    ) -> Option<Bundle> {
        let settings = carrier.ground.settings();
        let url = Url::parse(&request.url()).ok().filter(|_| settings.bundle.enabled)?;
        let mut cookies = Cookies::default();
        let now = SystemTime::now();
        let noted = cookies.note_request(&url, &request.fields, now);
        cookies.note_response(&noted, &url, &response.fields, now);
        let load = Load::new(url, request.fields.clone(), &response.fields, &noted);
        let budget = Budget { max_requests: settings.bundle.hints as usize, ..Budget::default() };
        let never = carrier.ground.owners.never_unasked(owner);
        let fetching = Fetching {
            carrier: Arc::clone(carrier),
            owner: owner.clone(),
            page,
            never: Arc::clone(&never),
            allowance: Allowance::new(settings.bundle.bytes.0),
            order: Mutex::default(),
        };
        let plan = Plan::new(load, budget);
        Some(Bundle { plan, cookies, never, fetching: Arc::new(fetching) })
    }

    /// Promises on `sender` what of `hints` is worth it, and begins to fetch it.
    pub(crate) fn add(&mut self, hints: Vec<Hint>, sender: &Sender) {
        for hint in hints {
            let decision = self.plan.decide(&hint, &lock(&self.never), &self.cookies, SystemTime::now());
            match decision {
                Decision::Fetch(unasked, urgency) => {
                    let purpose = Purpose { destination: Some(hint.destination), integrity: hint.integrity };
                    self.fetching.promise(unasked, urgency, purpose, sender);
                }
                Decision::Skip(skip) => {
                    let bus = &self.fetching.carrier.ground.bus;
                    let (page, url) = (self.fetching.page, bus.url(hint.url.as_str()));
                    bus.emit(Event::HintSkipped { page, url, why: skip_word(skip).into() });
                }
            }
        }
    }
}

impl Fetching {
    fn promise(self: &Arc<Self>, unasked: Unasked, urgency: Urgency, purpose: Purpose, sender: &Sender) {
        let Some(head) = request_head(&unasked) else { return };
        let priority = Priority { urgency: urgency.level, incremental: urgency.incremental };
        // `None` once nobody reads this document any more.
        let Some(promise) = sender.promise(&head, priority) else { return };
        let bus = &self.carrier.ground.bus;
        bus.emit(Event::Promised { promise, page: self.page, url: bus.url(unasked.url.as_str()) });
        let unwanted = self.carrier.promised(promise);
        let origin = head.origin();
        lock(&self.order).add(urgency.level, origin, Job { promise, head, url: unasked.url, purpose, unwanted });
        self.begin();
    }

    /// Begins what may begin.
    fn begin(self: &Arc<Self>) {
        let settings = self.carrier.ground.settings();
        let limits = Limits {
            total: settings.bundle.concurrent as usize,
            origin: settings.origin.connections as usize,
        };
        let begun = lock(&self.order).begin(limits);
        if let Some((origin, job)) = begun {
            let fetching = Arc::clone(self);
            self.carrier.spawn(async move {
                let promise = job.promise;
                fetching.keep(job).await;
                fetching.carrier.settled(promise);
                lock(&fetching.order).ended(&origin);
                fetching.begin();
            });
        }
    }

    async fn keep(&self, job: Job) {
        let Job { promise, head, url, purpose, mut unwanted } = job;
        tokio::select! {
            biased;
            // Ends what is under way: dropping the fetch frees its connection.
            _ = &mut unwanted => {}
            kept = self.fetch(promise, &head, &url, purpose) => {
                if let (Err(failure), Some(sender)) = (kept, self.carrier.hop.push(promise)) {
                    sender.fail(failure);
                }
            }
        }
    }

    /// Fetches and pushes; fails where the promise is not kept and its push has not begun.
    async fn fetch(
        &self,
        promise: u64,
        request: &RequestHead,
        url: &Url,
        purpose: Purpose,
    ) -> Result<(), Failure> {
        let ground = &self.carrier.ground;
        let started = Instant::now();
        if self.allowance.is_used_up() {
            return Err(failure::withdrawn(&UsedUp));
        }
        let asked = Asked {
            owner: &self.owner,
            exchange: self.page,
            head: request,
            upload: Upload::empty(),
            informed: None,
        };
        let response = ground.origins.fetch(asked).await?;
        if lock(&self.never).note(url, &response.fields) {
            return Err(failure::withdrawn(&"the response sets a cookie"));
        }
        let status = response.status;
        let head = head::towards_remote(status, response.fields, self.page);
        let share =
            self.allowance.share(content_length(&head.fields)).map_err(|error| failure::withdrawn(&error))?;
        let Some(sender) = self.carrier.hop.push(promise) else { return Ok(()) };
        let delivery = Delivery {
            ground,
            request: &request.fields,
            treatment: treatment(request, &head, purpose, ground.means()),
            body: has_body(&request.method, status).then_some(response.body),
            head,
            resume: None,
            page: None,
            share: Some(share),
        };
        let delivered = delivery.run(sender).await;
        ground.bus.emit(Event::Fetched {
            exchange: self.page,
            unasked: true,
            url: ground.bus.url(url.as_str()),
            status: status.as_u16(),
            origin_bytes: delivered.origin_bytes,
            crossed_bytes: delivered.crossed_bytes,
            total_ms: started.elapsed().as_millis() as u64,
        });
        Ok(())
    }
}

/// The request as a browser will ask it through the remote.
fn request_head(unasked: &Unasked) -> Option<RequestHead> {
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

fn skip_word(skip: Skip) -> &'static str {
    match skip {
        Skip::Duplicate => "decided before",
        Skip::OverBudget => "the page's budget of requests is used up",
        Skip::UncacheableTwice => "it was fetched before and may not be reusable",
        Skip::UnsureOfCookies => "it is not known which cookies the browser sends",
        Skip::ContentPolicy => "the document's content security policy forbids it",
        Skip::MixedContent => "a secure page may not load it over plain HTTP",
        Skip::Credentials => "the document was fetched with credentials",
        Skip::SetsCookie => "fetching it unasked has set a cookie before",
        Skip::NotThisBrowser => "this browser does not fetch it",
    }
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
            let unasked = Unasked { url: Url::parse(url).unwrap(), fields: Default::default() };
            request_head(&unasked).map(|head| (head.authority, head.path)).unwrap()
        };
        assert_eq!(head("http://site.test:80/a/../b?c=%20d#e"), ("site.test".into(), "/b?c=%20d".into()));
        assert_eq!(head("http://[2001:db8::1]:8080"), ("[2001:db8::1]:8080".into(), "/".into()));
    }
}
