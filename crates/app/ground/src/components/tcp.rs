//! The TCP component of ground, as carriers meet it: connections that are carried as they are. Each is `tunnel`'s. A tunnel
//! to a component that is not here ends here too, with a reason.

use std::sync::Arc;

use farhop_component::{Component, GroundHalf, TCP, is_within};
use farhop_events::ExchangeId;
use farhop_transport::hop::Incoming;

use crate::carrier::Carrier;
use crate::failure;
use crate::tunnel::Tunnel;

pub(super) struct Tcp;

impl GroundHalf<Arc<Carrier>> for Tcp {
    fn component(&self) -> &'static Component {
        &TCP
    }

    fn take(&self, carrier: &Arc<Carrier>, incoming: Incoming) -> Option<Incoming> {
        let Incoming::Tunnel { asked, sender, receiver } = incoming else { return Some(incoming) };
        if is_within(&asked) {
            sender.fail(failure::no_component(&asked.host));
            return None;
        }
        let (id, owner) = (ExchangeId(asked.tunnel), carrier.owner(asked.user));
        let ground = &carrier.ground;
        let client = ground.names.granted(&ground.settings(), &carrier.remote, asked.client);
        let tunnel =
            Tunnel { carrier: Arc::clone(carrier), id, owner, host: asked.host, port: asked.port, client };
        let counts = carrier.counted_tunnel();
        tokio::spawn(async move {
            let _counts = counts;
            tunnel.serve(sender, receiver).await;
        });
        None
    }
}
