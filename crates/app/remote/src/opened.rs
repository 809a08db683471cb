//! A page that is answered from what is held: nothing of it crosses, so ground is told that it is opened, and promises and asks
//! about what it will need as if it had crossed and had not changed.

use std::sync::Arc;
use std::time::SystemTime;

use farhop_bundle::Eagerness;
use farhop_htotp::head::{HELD, HeldPage, UNASKED};
use farhop_htotp::session::Ask;
use farhop_store::Held;
use farhop_transport::hop::{Arrival, Receiver};
use http::HeaderValue;
use http::header::{self, HeaderName};

use crate::Remote;
use crate::exchange::Exchange;
use crate::priority;
use crate::promising::{Offer, Page};

/// What of a browser's request is about its own copy of the page.
const OF_CLIENT: [HeaderName; 4] =
    [header::IF_MODIFIED_SINCE, header::IF_NONE_MATCH, header::IF_RANGE, header::RANGE];

/// Tells ground that `client` is answered from `held`, if ground makes use of that and is to fetch anything for the page.
pub(crate) fn tell(remote: &Arc<Remote>, client: &Exchange, held: &Held) {
    let carrier = remote.uplink().now().filter(|carrier| carrier.hop.takes_held_pages());
    let Some(carrier) = carrier else { return };
    remote.holdouts().held(client.id);
    if client.eagerness == Eagerness::Nothing {
        return;
    }
    let mut head = client.fetch.head.clone();
    OF_CLIENT.iter().for_each(|name| drop(head.fields.remove(name)));
    if client.eagerness != Eagerness::All {
        head.fields.insert(UNASKED, HeaderValue::from_static(client.eagerness.as_str()));
    }
    let held = HeldPage { entry: held.id, dated: held.head.validators().is_none().then(|| dated(held)) };
    head.fields.insert(HELD, held.into());
    let port = if head.scheme == "https" { 443 } else { 80 };
    let ask = Ask {
        exchange: client.id.0,
        user: client.user.id,
        class: remote.rules().of_request(client.client, &head.authority, port, &head.fields),
        priority: priority::of_request(&head.fields),
        resume: None,
    };
    let asked_at = SystemTime::now();
    let (mut sender, receiver) = carrier.hop.ask(ask, &head);
    sender.finish(None);
    let page = Page::new(remote, client, &carrier, asked_at);
    tokio::spawn(async move { hear(&page, receiver).await });
}

/// When its origin made it, in seconds since 1970.
fn dated(held: &Held) -> u64 {
    held.head.date().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Takes in what ground says of what the page will need, to the end.
async fn hear(page: &Page, mut receiver: Receiver) {
    loop {
        match receiver.next().await {
            Arrival::Promised { promise, priority, head } => {
                page.promised(Offer { promise, priority, head }).await;
            }
            Arrival::Validating(validating) => page.validating(validating).await,
            Arrival::Informed(_) | Arrival::Answered { .. } | Arrival::Body(_) | Arrival::Trailers(_) => {}
            // What was not said by then will not be.
            _ => return,
        }
    }
}
