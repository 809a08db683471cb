//! The DNS component near the internet: asks name servers what its remote half has not got. It keeps nothing: name servers
//! do, a few milliseconds away.

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;

use farhop_component::{Component, DNS, GroundHalf, answer, hear};
use farhop_dns::{Answer, Query};
use farhop_events::{Event, ExchangeId};
use farhop_htotp::frame::Failure;
use farhop_origin::{Reply, ask_name_servers};
use farhop_transport::hop::{Incoming, Receiver};
use tokio::sync::Semaphore;

use crate::carrier::Carrier;
use crate::failure;

/// Questions at a time, each with a socket of its own.
const MOST: usize = 256;
/// A question has one name and no data.
const LARGEST_QUESTION: usize = 1024;
/// The port of name servers.
const PORT: u16 = 53;

/// See the module.
pub(super) struct Dns(Arc<Semaphore>);

impl Default for Dns {
    fn default() -> Self {
        Dns(Arc::new(Semaphore::new(MOST)))
    }
}

impl GroundHalf<Arc<Carrier>> for Dns {
    fn component(&self) -> &'static Component {
        &DNS
    }

    fn take(&self, carrier: &Arc<Carrier>, incoming: Incoming) -> Option<Incoming> {
        let (asked, sender, receiver) = match incoming {
            Incoming::Tunnel { asked, sender, receiver } if DNS.is_asked(&asked) => (asked, sender, receiver),
            other => return Some(other),
        };
        let (carrier, places, counts) = (Arc::clone(carrier), Arc::clone(&self.0), carrier.counted_tunnel());
        tokio::spawn(async move {
            let _counts = counts;
            answer(sender, find(&carrier, &places, ExchangeId(asked.tunnel), receiver)).await;
        });
        None
    }
}

/// The answer to what the stream asks, with the number of its question.
async fn find(
    carrier: &Carrier,
    places: &Semaphore,
    exchange: ExchangeId,
    mut receiver: Receiver,
) -> Result<Vec<u8>, Failure> {
    let message = hear(&mut receiver, LARGEST_QUESTION).await.ok_or_else(failure::no_question)?;
    let Query { id, wanted, .. } = Query::read(&message).map_err(|_| failure::no_question())?;
    // Never closed.
    let _place = places.acquire().await;
    // RFC 5452 §9.2: a number that nobody can guess.
    let own = RandomState::new().hash_one(()) as u16;
    let judge = |message: &[u8]| match Answer::read(message, own, &wanted) {
        Some(answer) if answer.is_truncated => Reply::Truncated,
        Some(_) => Reply::Whole,
        None => Reply::Other,
    };
    match ask_name_servers(&servers(carrier), &wanted.to_message(own), judge).await {
        Ok(mut answer) => {
            answer[..2].copy_from_slice(&id.to_be_bytes());
            Ok(answer)
        }
        Err(error) => {
            let (name, kind) = (wanted.name(), wanted.kind);
            carrier.ground.bus.emit(Event::NameFailed { exchange, name, kind, error: error.clone() });
            Err(failure::no_name_server(error))
        }
    }
}

/// Those of the settings, else those of this system.
fn servers(carrier: &Carrier) -> Vec<SocketAddr> {
    let own = carrier.ground.settings().dns.servers.clone();
    if !own.is_empty() {
        return own;
    }
    let of_system = carrier.ground.origins.name_servers();
    of_system.into_iter().map(|address| SocketAddr::new(address, PORT)).collect()
}
