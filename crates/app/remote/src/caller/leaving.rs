//! Carriers that others have taken the place of: each lasts until all that is under way or promised on it has ended.

use std::pin::Pin;
use std::sync::Arc;

use farhop_events::{Bus, Event};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::LOOK;
use crate::adrift::Adrift;
use crate::uplink::{Carrier, Left};

/// See the module.
pub(super) struct Leaving {
    tasks: JoinSet<()>,
    left: Left,
}

impl Leaving {
    /// None so far; those that come are found in `left`.
    pub(super) fn new(left: Left) -> Self {
        Leaving { tasks: JoinSet::new(), left }
    }

    /// Attends to a carrier that is left for this reason until its end.
    pub(super) fn leave(
        &mut self,
        carrier: Carrier,
        attended: Pin<Box<dyn Future<Output = ()> + Send>>,
        why: &'static str,
        adrift: Arc<Adrift>,
        bus: Bus,
    ) {
        while self.tasks.try_join_next().is_some() {}
        let left = self.left.clone();
        left.add(carrier.clone());
        self.tasks.spawn(async move {
            until_idle(&carrier, attended).await;
            left.remove(carrier.generation);
            adrift.ended(&carrier);
            let exchanges = carrier.hop.lost();
            bus.emit(Event::CarrierDown { peer: carrier.peer, why: why.into(), exchanges });
        });
    }
}

async fn until_idle(carrier: &Carrier, mut attended: Pin<Box<dyn Future<Output = ()> + Send>>) {
    let idle = async {
        while carrier.hop.is_active() || carrier.hop.is_owed() {
            sleep(LOOK).await;
        }
    };
    tokio::select! {
        () = &mut attended => {}
        () = idle => {
            carrier.hop.close();
            attended.await;
        }
    }
}
