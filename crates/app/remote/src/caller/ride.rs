//! A carrier for as long as it lasts: from the call on, or from ground's first word, to its end or to its successor.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use farhop_events::Event;
use farhop_transport::hop::Closed;
use farhop_transport::quic::Early;

use super::leaving::Leaving;
use super::{Called, Caller};
use crate::uplink::Carrier;

impl Caller {
    /// As [`Caller::ride`], from before ground has answered.
    pub(super) async fn ride_early(
        &self,
        carrier: &Carrier,
        mut attended: Pin<Box<dyn Future<Output = ()> + Send>>,
        early: Early,
        quic_again: Duration,
        leaving: &mut Leaving,
    ) -> Option<Called> {
        let answer = tokio::select! {
            biased;
            answer = early.answered() => answer,
            // Refused; the next call tells why.
            () = &mut attended => {
                self.adrift.ended(carrier);
                return None;
            }
        };
        match answer {
            Ok(true) => {
                carrier.answered.send_replace(true);
                self.tell(carrier, true);
                self.ride(carrier, attended, quic_again, leaving).await
            }
            Ok(false) => {
                carrier.hop.forsake();
                attended.await;
                self.adrift.ended(carrier);
                let Carrier { peer, address, connection, .. } = carrier.clone();
                Some(Called { peer, address, connection, early: None })
            }
            Err(why) => {
                tracing::debug!(target: "farhop", "ground {} did not answer: {why}", carrier.peer);
                carrier.hop.replace();
                attended.await;
                self.adrift.ended(carrier);
                None
            }
        }
    }

    /// Attends to a carrier until it ends. Gives what takes its place, if that has been called already: the next user of
    /// the carrier takes that one, and what is under way on this one goes on there if it can.
    pub(super) async fn ride(
        &self,
        carrier: &Carrier,
        mut attended: Pin<Box<dyn Future<Output = ()> + Send>>,
        quic_again: Duration,
        leaving: &mut Leaving,
    ) -> Option<Called> {
        let successor = tokio::select! {
            () = &mut attended => None,
            successor = self.replace(carrier) => {
                carrier.hop.replace();
                attended.await;
                Some(successor)
            }
            (successor, why) = self.better(carrier, quic_again) => {
                leaving.leave(carrier.clone(), attended, why, Arc::clone(&self.adrift), self.bus.clone());
                return Some(successor);
            }
        };
        self.adrift.ended(carrier);
        let why = self.why_lost(carrier);
        let exchanges = carrier.hop.lost();
        self.bus.emit(Event::CarrierDown { peer: carrier.peer.clone(), why, exchanges });
        successor
    }

    /// What ended a carrier, in the words of whoever knows best.
    fn why_lost(&self, carrier: &Carrier) -> String {
        let closed = carrier.hop.closed();
        let own = self.dialers.public_key();
        match (closed, carrier.connection.close_reason(carrier.address, own)) {
            (Some(Closed::Lost(_)) | None, Some(error)) => error.to_string(),
            (Some(closed), _) => closed.to_string(),
            (None, None) => "ended".into(),
        }
    }
}
