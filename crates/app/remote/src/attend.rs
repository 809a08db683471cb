//! What ground begins by itself on a carrier.

use std::sync::Arc;

use farhop_component::{HTTP, keep_to, offer};
use farhop_diffserv::Ceiling;
use farhop_events::{Event, ExchangeId};
use farhop_settings::CarrierCeilingSettings;
use farhop_transport::hop::Incoming;
use tokio::sync::mpsc;

use crate::components::Attended;
use crate::uplink::Carrier;
use crate::{Remote, bodies, dictionaries, mirror};

/// Takes what ground begins, for as long as the carrier lasts.
pub(crate) async fn attend(remote: Arc<Remote>, carrier: Carrier) {
    weigh(&remote, &carrier);
    let (say, said) = mpsc::unbounded_channel();
    let attended = Attended { carrier: carrier.clone(), say };
    // Where no pages are served nothing is held.
    let has_pages = remote.components().iter().any(|half| *half.component() == HTTP);
    tokio::select! {
        () = take(&remote, &attended) => {}
        never = mirror::keep(&remote, &carrier.hop, said), if has_pages => match never {},
        never = bodies::keep(&remote, &carrier.hop), if has_pages => match never {},
        never = dictionaries::keep(&remote, &carrier.hop), if has_pages => match never {},
        () = fit(&remote, &carrier) => {}
        () = keep_to(&carrier.hop, || ceilings(&remote)) => {}
    }
    remote.desk().carrier_lost(carrier.generation, remote.now());
    remote.validating().carrier_lost(carrier.generation);
}

fn ceilings(remote: &Remote) -> Vec<Ceiling> {
    remote.settings().ceiling.iter().map(CarrierCeilingSettings::ceiling).collect()
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

async fn take(remote: &Arc<Remote>, attended: &Attended) {
    let carrier = &attended.carrier;
    while let Some(incoming) = carrier.hop.accept().await {
        match offer(remote.components(), incoming, |half, incoming| half.take(remote, attended, incoming)) {
            Some(Incoming::Hello(hello)) => {
                tracing::debug!(target: "farhop", "ground {} is {}", carrier.peer, hello.agent);
            }
            Some(Incoming::Rejoined { exchange }) => {
                remote.bus().emit(Event::Rejoined { exchange: ExchangeId(exchange) });
            }
            // A ground that drains goes on with what is open; its end brings the next carrier. All else the session lets the
            // remote alone say.
            _ => {}
        }
    }
}
