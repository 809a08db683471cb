//! The ground halves of the components: the list, and what is common to those that are asked for by name.

mod dictionaries;
mod dns;
mod http;
mod tcp;
mod udp;

use std::sync::Arc;

use farhop_component::{GroundHalf, offer};
use farhop_transport::hop::Incoming;

use crate::carrier::Carrier;

/// Half of a component, as ground holds it.
pub(crate) type Half = Box<dyn GroundHalf<Arc<Carrier>>>;

/// All of them. What a remote begins is its to choose.
pub(crate) fn all() -> Vec<Half> {
    vec![
        Box::new(http::Http),
        Box::new(dictionaries::Dictionaries),
        Box::new(dns::Dns::default()),
        Box::new(udp::Udp::default()),
        Box::new(tcp::Tcp),
    ]
}

/// Gives what has begun on `carrier` to the component that it is for; gives back what is the carrier's own.
pub(crate) fn take(carrier: &Arc<Carrier>, incoming: Incoming) -> Option<Incoming> {
    offer(&carrier.ground.components, incoming, |half, incoming| half.take(carrier, incoming))
}
