//! The HTTP component of ground, as carriers meet it: exchanges, and what remotes say of promises, of what they hold and
//! of what their clients are about to do. Each exchange is `exchange`'s.

use std::sync::Arc;

use farhop_bundle::{Eagerness, Place};
use farhop_component::{Component, GroundHalf, HTTP};
use farhop_events::ExchangeId;
use farhop_htotp::head::{HELD, HeldPage, RECEIVED, UNASKED, usual_version, version_named};
use farhop_htotp::mirror::Word;
use farhop_transport::hop::Incoming;

use crate::ahead::Ahead;
use crate::carrier::Carrier;
use crate::exchange::Exchange;

pub(super) struct Http;

impl GroundHalf<Arc<Carrier>> for Http {
    fn component(&self) -> &'static Component {
        &HTTP
    }

    fn take(&self, carrier: &Arc<Carrier>, incoming: Incoming) -> Option<Incoming> {
        let ground = &carrier.ground;
        match incoming {
            Incoming::Exchange { exchange, user, resume, head: mut request, sender, receiver, .. } => {
                let (id, owner) = (ExchangeId(exchange), carrier.owner(user));
                let said = request.fields.remove(UNASKED);
                let said = said.as_ref().and_then(|word| word.to_str().ok()).map(Eagerness::named);
                let eagerness = said.unwrap_or_default();
                let held = request.fields.remove(HELD);
                let held = held.as_ref().and_then(HeldPage::read);
                let named = request.fields.remove(RECEIVED);
                let named = named.and_then(|name| version_named(name.as_bytes()));
                let version = named.unwrap_or_else(|| usual_version(&request.scheme));
                let carrier = Arc::clone(carrier);
                let counts = carrier.counted_exchange();
                let exchange = Exchange { carrier, id, owner, resume, request, eagerness, version, held };
                tokio::spawn(async move {
                    let _counts = counts;
                    exchange.serve(sender, receiver).await;
                });
            }
            Incoming::Unwanted { promises } => carrier.unwanted(promises),
            Incoming::Wanted { promise, priority } => carrier.wanted(promise, priority),
            Incoming::Used { promises } => carrier.used(promises),
            Incoming::AnsweredHere { page, entries } => carrier.answered_here(ExchangeId(page), entries),
            Incoming::Prepare { user, scheme, host, port } => {
                let (ground, owner) = (Arc::clone(ground), carrier.owner(user));
                let place = Place { host: host.to_ascii_lowercase(), port };
                Ahead::lead(&ground, &carrier.remote, carrier.visitor(user), &place, carrier.ahead());
                carrier
                    .spawn(async move { ground.origins.prepare(&owner, &scheme, &place.host, port).await });
            }
            Incoming::Left { user, connection } => ground.origins.leave(&carrier.owner(user), &connection),
            Incoming::Mirror(word @ (Word::Holds(_) | Word::Lacks(_))) => {
                if let Some(memory) = carrier.memory() {
                    ground.bases.hear(&memory, &word);
                    ground.dictionaries.hear(&memory, &word);
                }
            }
            Incoming::Mirror(word) => carrier.hear_mirror(word),
            other => return Some(other),
        }
        None
    }
}
