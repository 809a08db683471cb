//! The remote halves of the components: which there are by the settings, and what those two are that were there before the
//! trait was: pages and connections.

use std::sync::{Arc, Mutex, PoisonError};

use farhop_component::{Component, HTTP, RemoteHalf, TCP};
use farhop_front::Listener;
use farhop_settings::RemoteSettings;
use farhop_transport::hop::Incoming;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

use crate::dictionaries;
use crate::dns::{Dns, DnsError};
use crate::mirror::Said;
use crate::udp::Udp;
use crate::uplink::Carrier;
use crate::{Remote, clients, promising};

/// A carrier while it is attended to.
pub(crate) struct Attended {
    pub(crate) carrier: Carrier,
    /// To who keeps ground told of what is held.
    pub(crate) say: UnboundedSender<Said>,
}

/// Half of a component, as the remote holds it.
pub(crate) type Half = Box<dyn RemoteHalf<Arc<Remote>, Attended>>;

/// Those that these settings want.
///
/// # Errors
/// An address that one of them is to listen on.
pub(crate) fn of(settings: &RemoteSettings, listeners: Vec<Listener>) -> Result<Vec<Half>, DnsError> {
    let mut halves: Vec<Half> = Vec::new();
    if settings.role.serves_http() {
        halves.push(Box::new(Http { listeners: Mutex::new(listeners) }));
        halves.push(Box::new(dictionaries::Half));
    }
    halves.push(Box::new(Tcp));
    if settings.role.carries() && settings.udp.enabled {
        halves.push(Box::new(Udp::default()));
    }
    if let Some(dns) = Dns::open(&settings.dns)? {
        halves.push(Box::new(dns));
    }
    Ok(halves)
}

/// Pages: the files of a request's life, from `clients` on.
struct Http {
    /// Until it has started.
    listeners: Mutex<Vec<Listener>>,
}

impl RemoteHalf<Arc<Remote>, Attended> for Http {
    fn component(&self) -> &'static Component {
        &HTTP
    }

    fn start(&self, remote: &Arc<Remote>, tasks: &mut JoinSet<()>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        for listener in listeners.drain(..) {
            tasks.spawn(clients::accept(Arc::clone(remote), listener));
        }
    }

    fn take(&self, remote: &Arc<Remote>, attended: &Attended, incoming: Incoming) -> Option<Incoming> {
        match incoming {
            Incoming::Push { promise, receiver } => {
                promising::pushed(remote, &attended.carrier, promise, receiver);
            }
            // Fails only once nothing is told here any more.
            Incoming::Heard(position) => drop(attended.say.send(Said::Heard(position))),
            Incoming::Differ { of, buckets } => drop(attended.say.send(Said::Differ(of, buckets))),
            other => return Some(other),
        }
        None
    }
}

/// Connections: `tunnel` for those of a CONNECT, `transparent` for those that are caught. Both are begun by clients, of
/// whom others listen for them: the proxy's port, and the listeners of [`crate::Running::catch`].
struct Tcp;

impl RemoteHalf<Arc<Remote>, Attended> for Tcp {
    fn component(&self) -> &'static Component {
        &TCP
    }

    fn start(&self, _: &Arc<Remote>, _: &mut JoinSet<()>) {}
}
