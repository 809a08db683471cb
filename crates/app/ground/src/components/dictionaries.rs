//! The dictionaries component near the internet: gives the dictionary whose hash it is asked for, if it still has it.

use std::sync::Arc;

use farhop_component::{Component, DICTIONARIES, GroundHalf, answer, hear};
use farhop_events::Event;
use farhop_htotp::frame::Failure;
use farhop_htotp::mirror::BodyHash;
use farhop_transport::hop::{Incoming, Receiver};

use crate::carrier::Carrier;
use crate::failure;

/// See the module.
pub(super) struct Dictionaries;

impl GroundHalf<Arc<Carrier>> for Dictionaries {
    fn component(&self) -> &'static Component {
        &DICTIONARIES
    }

    fn take(&self, carrier: &Arc<Carrier>, incoming: Incoming) -> Option<Incoming> {
        let (sender, receiver) = match incoming {
            Incoming::Tunnel { asked, sender, receiver } if DICTIONARIES.is_asked(&asked) => {
                (sender, receiver)
            }
            other => return Some(other),
        };
        let (carrier, counts) = (Arc::clone(carrier), carrier.counted_tunnel());
        tokio::spawn(async move {
            let _counts = counts;
            answer(sender, find(&carrier, receiver)).await;
        });
        None
    }
}

async fn find(carrier: &Carrier, mut receiver: Receiver) -> Result<Vec<u8>, Failure> {
    let question = hear(&mut receiver, BodyHash::LENGTH).await.ok_or_else(failure::no_dictionary)?;
    let hash = <[u8; BodyHash::LENGTH]>::try_from(question).map_err(|_| failure::no_dictionary())?;
    let ground = &carrier.ground;
    let coded = ground.dictionaries.coded(BodyHash(hash)).ok_or_else(failure::no_dictionary)?;
    let (peer, bytes) = (carrier.remote.to_string(), coded.len() as u64);
    ground.bus.emit(Event::DictionarySent { peer, bytes });
    Ok(coded.to_vec())
}
