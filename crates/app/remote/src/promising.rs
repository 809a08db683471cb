//! What ground promises within a page, and the pushes that keep the promises.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use farhop_bundle::PromiseId;
use farhop_consent::Decision;
use farhop_events::ExchangeId;
use farhop_freshness::Part;
use farhop_htotp::RequestHead;
use farhop_htotp::frame::{Failure, Priority};
use farhop_store::Broken;
use farhop_transport::hop::{Hop, Receiver};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, StatusCode};
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;

use crate::Remote;
use crate::answers::Trouble;
use crate::arriving::{self, Early};
use crate::bodies;
use crate::collapse::{self, Leading, Outcome, Wish};
use crate::course::Course;
use crate::desk::{Known, Made, Promised, Wire};
use crate::exchange::Exchange;
use crate::held;
use crate::kept::{Kept, Place, Slot};
use crate::lookup::{Stocked, in_repository, partition_for, to_store};
use crate::parts::Coming;
use crate::stock;
use crate::uplink::Carrier;
use crate::users::User;
use crate::validating::{self, Asker};

/// A promise as it arrives.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) promise: u64,
    pub(crate) priority: Priority,
    pub(crate) head: RequestHead,
}

/// The page to which the promises of a stream belong: of its document's exchange, of a push within it, or of an exchange
/// for something that it needs.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) remote: Arc<Remote>,
    pub(crate) user: User,
    client: IpAddr,
    exchange: ExchangeId,
    /// When the request of the stream was sent, or that of the one on which it was promised: what is promised here is asked for
    /// after that.
    asked_at: SystemTime,
    hop: Hop,
    generation: u64,
}

impl Page {
    /// Of an exchange that was asked across the hop at `asked_at`.
    pub(crate) fn new(
        remote: &Arc<Remote>,
        exchange: &Exchange,
        carrier: &Carrier,
        asked_at: SystemTime,
    ) -> Self {
        Page {
            remote: Arc::clone(remote),
            user: exchange.user.clone(),
            client: exchange.client,
            exchange: remote.desk().page_of(
                exchange.id,
                &exchange.user,
                &exchange.fetch.url,
                &exchange.fetch.head.fields,
            ),
            asked_at,
            hop: carrier.hop.clone(),
            generation: carrier.generation,
        }
    }

    /// The page for which ground asks, on this carrier.
    fn of(remote: &Arc<Remote>, asker: Asker, carrier: &Carrier) -> Self {
        let Asker { user, client, page: exchange, asked_at } = asker;
        let (hop, generation) = (carrier.hop.clone(), carrier.generation);
        Page { remote: Arc::clone(remote), user, client, exchange, asked_at, hop, generation }
    }

    pub(crate) fn remote(&self) -> &Arc<Remote> {
        &self.remote
    }

    /// Who is asked for.
    pub(crate) fn asker(&self) -> Asker {
        let Page { client, exchange: page, asked_at, .. } = *self;
        Asker { user: self.user.clone(), client, page, asked_at }
    }

    /// A promise of this number on the page's carrier.
    pub(crate) fn wire(&self, promise: u64) -> Wire {
        (self.generation, promise)
    }

    /// A promise: taken down before any byte that comes after it can be read by a browser, unless the repository has a
    /// fresh answer already, or nobody will ask for it here.
    pub(crate) async fn promised(&self, offer: Offer) {
        let Offer { promise, priority, head } = offer;
        let wire = (self.generation, promise);
        let Some(url) = head.resource() else {
            self.remote.desk().refuse(wire);
            return tell_unwanted(&self.remote);
        };
        let of_no_use =
            self.passes_through(&url) || is_held(&self.remote, &self.user, &url, &head.fields).await;
        let leading = if of_no_use { None } else { self.leading(wire, &url, &head.fields) };
        let made = Made {
            wire,
            client: self.client,
            page: self.exchange,
            asked_at: self.asked_at,
            url,
            request: head.fields.into(),
            priority,
            leading,
        };
        let taken = {
            let mut desk = self.remote.desk();
            if of_no_use {
                desk.decline(&made);
                None
            } else {
                desk.promise(&self.user, made)
            }
        };
        match taken {
            Some((id, Some(receiver))) => {
                begin_keeping(&self.remote, &self.hop, self.generation, id, receiver)
            }
            Some((_, None)) => {}
            None => tell_unwanted(&self.remote),
        }
    }
}

impl Page {
    /// Lets others wait for what is promised to this user.
    fn leading(&self, wire: Wire, url: &Url, request: &HeaderMap) -> Option<Leading> {
        let course = Arc::new(Course::default());
        course.promised(wire, None);
        let patience = collapse::patience(&self.remote);
        self.remote.collapsing().lead(Wish::of(url, request)?, &course, patience)
    }

    /// Whether the browser's request for `url` cannot be seen: its connection passes through untouched.
    fn passes_through(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return true };
        url.scheme() == "https"
            && (self.remote.leaves().is_none()
                || self.remote.consent().decide(&self.user, self.client, host, port) != Decision::Intercept)
    }
}

/// Whether the repository would answer the promised request without asking. Ground does not promise what it knows to be held.
async fn is_held(remote: &Remote, user: &User, url: &Url, request: &HeaderMap) -> bool {
    match in_repository(remote, user.id, &Method::GET, url.as_str(), request).await {
        Stocked::Answer { answer, doubtful } => {
            remote.mirror().missed(answer.held.id);
            !doubtful
        }
        Stocked::Stale { held, .. } => {
            held.stale.into_iter().for_each(|stale| remote.mirror().missed(stale.held.id));
            false
        }
        Stocked::Unsatisfiable | Stocked::Nothing => false,
    }
}

/// Tells ground of the promises that nobody wants any more.
pub(crate) fn tell_unwanted(remote: &Remote) {
    let untold = remote.desk().take_untold();
    // Those of a lost carrier are lost with it.
    for (generation, promises) in untold {
        if let Some(carrier) = remote.uplink().of(generation) {
            carrier.hop.refuse_promises(promises);
        }
    }
}

/// Tells ground which of its promises have answered requests, and what of what is held.
pub(crate) fn tell_used(remote: &Remote) {
    let (used, answered) = {
        let mut desk = remote.desk();
        (desk.take_used(), desk.take_answered_here())
    };
    if let Some(carrier) = remote.uplink().now() {
        for (page, entries) in answered {
            carrier.hop.tell_answered(page.0, &entries);
        }
    }
    for (generation, promises) in used {
        if let Some(carrier) = remote.uplink().of(generation) {
            carrier.hop.tell_used(promises);
        }
    }
}

/// Tells ground what the browser waits for.
pub(crate) fn tell_wanted(remote: &Remote, wanted: Option<(Wire, Priority)>) {
    if let Some(((generation, promise), priority)) = wanted
        && let Some(carrier) = remote.uplink().of(generation)
    {
        carrier.hop.want(promise, priority);
    }
}

/// A push has come: it keeps its promise, once that is known.
pub(crate) fn pushed(remote: &Arc<Remote>, carrier: &Carrier, promise: u64, receiver: Receiver) {
    let wire = (carrier.generation, promise);
    if let Some(asker) = remote.validating().asker(wire) {
        return validating::begin(Page::of(remote, asker, carrier), promise, receiver);
    }
    let found = remote.desk().pushed(wire, receiver, remote.now());
    if let Some((id, receiver)) = found {
        return begin_keeping(remote, &carrier.hop, carrier.generation, id, receiver);
    }
    // Taken down in between: whoever did so may not have seen the push.
    if let Some(asker) = remote.validating().asker(wire) {
        let receiver = remote.desk().take_orphan(wire);
        receiver.into_iter().for_each(|receiver| {
            validating::begin(Page::of(remote, asker.clone(), carrier), promise, receiver);
        });
    }
}

/// Takes a promised response in, in a task of its own.
fn begin_keeping(remote: &Arc<Remote>, hop: &Hop, generation: u64, id: PromiseId, receiver: Receiver) {
    let Some(known) = remote.desk().known(id) else { return };
    let Known { client, page: exchange, asked_at, .. } = known;
    let (remote, user, hop) = (Arc::clone(remote), known.user.clone(), hop.clone());
    let page = Page { remote, user, client, exchange, asked_at, hop, generation };
    tokio::spawn(async move { keep(&page, id, known, receiver).await });
}

/// Completes when nobody wants a promise any more. One that the desk has merely forgotten still comes.
async fn gone(mut state: watch::Receiver<Promised>) {
    if state.wait_for(|state| matches!(state, Promised::Gone)).await.is_err() {
        std::future::pending().await
    }
}

/// Remembers that ground could not connect, so that who asks for what was promised is told at once.
fn note_unreachable(page: &Page, known: &Known, failure: &Failure) {
    const LONGEST: usize = 2048;
    const NOT_REACHED: [&str; 4] =
        ["dns_error", "connection_refused", "connection_timeout", "destination_ip_unroutable"];
    if NOT_REACHED.contains(&&*failure.token) && known.url.as_str().len() <= LONGEST {
        let trouble = Trouble::from_ground(failure);
        let unreachable = page.remote.unreachable();
        unreachable.note_promised(page.generation, &known.user, &known.url, trouble, Instant::now());
    }
}

/// Takes in a promised response: its head to the desk, its body to whoever waits, and to the repository where it may
/// be kept. What it promises in turn belongs to the same page.
async fn keep(page: &Page, id: PromiseId, known: Known, mut receiver: Receiver) {
    let remote = &page.remote;
    // RFC 9111 §4.2.3: ground has asked for it meanwhile, and it may have waited there for its turn on the hop.
    let requested_at = known.asked_at;
    let (head, coding) = loop {
        let early = tokio::select! {
            early = arriving::early(&mut receiver) => early,
            // Dropping the receiver stops the push.
            () = gone(known.state.clone()) => return,
        };
        match early {
            Early::Head { head, coding, .. } => break (Arc::new(head), coding),
            Early::Promised(offer) => page.promised(offer).await,
            Early::Validating(validating) => page.validating(validating).await,
            Early::Informed(_) => {}
            Early::Failed(failure) => {
                note_unreachable(page, &known, &failure);
                return remote.desk().withdraw(id, remote.now());
            }
            Early::Lost => return remote.desk().withdraw(id, remote.now()),
        }
    };
    // It can be reached after all.
    let _ = remote.unreachable().take_promised(page.generation, &known.user, &known.url, Instant::now());
    // Without its base it is of no use; whoever asks for it then is answered in the ordinary way.
    let Some(decoding) = bodies::decoding(remote, &page.hop, known.user.id, coding).await else {
        return remote.desk().withdraw(id, remote.now());
    };
    let (intake, body) = arriving::body(remote.budget(), remote.settings().repository.entry.0);
    if !remote.desk().head(id, &head, body.clone(), remote.now()) {
        return;
    }
    let asked = (&known.url, &*known.request);
    held::heard(remote, known.user.id, asked, &head, requested_at).await;
    let (mut place, mut coming) = (Place::Nowhere, None);
    let mut outcome = Outcome::of(head.status, &known.request, None);
    if let Some(partition) =
        partition_for(known.user.id, &known.url, &known.request, head.status, &head.fields)
    {
        let entry = to_store(partition, &known.request, &head, requested_at);
        let url = known.url.as_str();
        outcome = Outcome::of(head.status, &known.request, Some((partition, &entry)));
        let length = head.fields.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let whole = length.filter(|_| head.status == StatusCode::OK);
        let whole = whole.map(|complete| Part { range: 0..complete, complete });
        coming = whole.and_then(|whole| Coming::new(partition, url, &entry, whole));
        place = Place::Held(remote.repository().store(partition, url, entry, body.clone()).await);
        remote.parts().forget(url);
    }
    remote.desk().found_a_place(id, outcome);
    drop(body);
    let abandon = intake.abandon();
    let kept = Kept::at(place, Slot::default(), 0);
    let carried = tokio::select! {
        carried = arriving::carry(receiver, decoding, intake, kept, page) => carried,
        // Whoever has found it in the repository meanwhile gets all of it.
        () = async { gone(known.state.clone()).await; abandon.when_unread().await } => Err(Broken::GivenUp),
    };
    match carried {
        Ok(stored) => {
            remote.desk().complete(id, stored, remote.now());
            if let Some(stored) = stored {
                stock::tell_stored(remote, stored).await;
            }
        }
        Err(_) => {
            remote.desk().withdraw(id, remote.now());
            // What has come of it need not come again.
            if let Some(coming) = coming {
                coming.keep(remote, abandon.body()).await;
            }
        }
    }
}
