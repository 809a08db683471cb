//! What ground begins by itself on a carrier.

use std::sync::Arc;

use farhop_events::{Event, ExchangeId};
use farhop_transport::hop::Incoming;
use tokio::sync::mpsc::{self, UnboundedSender};

use crate::mirror::Said;
use crate::uplink::Carrier;
use crate::{Remote, bodies, mirror, promising};

/// Takes what ground begins, for as long as the carrier lasts.
pub(crate) async fn attend(remote: Arc<Remote>, carrier: Carrier) {
    weigh(&remote, &carrier);
    let (say, said) = mpsc::unbounded_channel();
    tokio::select! {
        () = take(&remote, &carrier, &say) => {}
        never = mirror::keep(&remote, &carrier.hop, said) => match never {},
        never = bodies::keep(&remote, &carrier.hop) => match never {},
        () = fit(&remote, &carrier) => {}
    }
    remote.desk().carrier_lost(carrier.generation, remote.now());
    remote.validating().carrier_lost(carrier.generation);
}

/// Tells ground whose share is not everyone's.
fn weigh(remote: &Remote, carrier: &Carrier) {
    for weight in &remote.settings().weights {
        let user = match weight.user.parse() {
            Ok(address) => remote.users().at(address),
            Err(_) => remote.users().named(&weight.user.as_str().into()),
        };
        carrier.hop.weigh(user.id, weight.hundredths);
    }
}

/// Keeps to what fits the path, for as long as what is new goes by this carrier.
async fn fit(remote: &Remote, carrier: &Carrier) {
    let mut sizes = carrier.hop.sizes();
    loop {
        let fits = *sizes.borrow_and_update();
        if remote.uplink().is_by(carrier) {
            remote.fit(&fits);
        }
        if sizes.changed().await.is_err() {
            // Only once the hop is gone, which the carrier holds.
            return;
        }
    }
}

async fn take(remote: &Arc<Remote>, carrier: &Carrier, say: &UnboundedSender<Said>) {
    while let Some(incoming) = carrier.hop.accept().await {
        match incoming {
            Incoming::Push { promise, receiver } => promising::pushed(remote, carrier, promise, receiver),
            Incoming::Hello(hello) => {
                tracing::debug!(target: "farhop", "ground {} is {}", carrier.peer, hello.agent);
            }
            // A ground that drains goes on with what is open; its end brings the next carrier.
            Incoming::Drain | Incoming::Unwanted { .. } | Incoming::Wanted { .. } => {}
            Incoming::Rejoined { exchange } => {
                remote.bus().emit(Event::Rejoined { exchange: ExchangeId(exchange) });
            }
            // Fails only once nothing is told here any more.
            Incoming::Heard(position) => drop(say.send(Said::Heard(position))),
            Incoming::Differ { of, buckets } => drop(say.send(Said::Differ(of, buckets))),
            Incoming::Rejoin { .. }
            | Incoming::Exchange { .. }
            | Incoming::Tunnel { .. }
            | Incoming::Prepare { .. }
            | Incoming::Left { .. }
            | Incoming::Used { .. }
            | Incoming::AnsweredHere { .. }
            | Incoming::Mirror(_) => {}
        }
    }
}
