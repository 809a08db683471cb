//! What ground promises within a page, and the pushes that keep the promises.

use std::sync::Arc;
use std::time::SystemTime;

use farhop_bundle::PromiseId;
use farhop_events::ExchangeId;
use farhop_htotp::RequestHead;
use farhop_transport::hop::{Hop, Receiver};
use http::{HeaderMap, Method};
use url::Url;

use crate::Remote;
use crate::arriving::{self, Early};
use crate::exchange::Exchange;
use crate::lookup::{Stocked, in_repository, partition_for, to_store};
use crate::uplink::Carrier;
use crate::users::User;

/// The page whose exchange carries promises.
pub(crate) struct Page {
    remote: Arc<Remote>,
    user: User,
    exchange: ExchangeId,
    hop: Hop,
    generation: u64,
}

impl Page {
    pub(crate) fn new(remote: &Arc<Remote>, exchange: &Exchange, carrier: &Carrier) -> Self {
        Page {
            remote: Arc::clone(remote),
            user: exchange.user.clone(),
            exchange: exchange.id,
            hop: carrier.hop.clone(),
            generation: carrier.generation,
        }
    }

    /// A promise: taken down before any byte that comes after it can be read by a browser, unless the repository has a
    /// fresh answer already.
    pub(crate) async fn promised(&self, promise: u64, head: RequestHead) {
        let wire = (self.generation, promise);
        let url = Url::parse(&head.url()).ok();
        let wanted = match url {
            Some(url) if !is_held(&self.remote, &self.user, &url, &head.fields).await => {
                self.remote.desk().promise(wire, &self.user, self.exchange, url, head.fields)
            }
            _ => None,
        };
        match wanted {
            Some((id, Some(receiver))) => begin_keeping(&self.remote, id, receiver),
            Some((_, None)) => {}
            None => {
                self.remote.desk().refuse(wire);
                self.hop.refuse_promise(promise);
            }
        }
    }
}

/// Whether the repository would answer the promised request without asking.
async fn is_held(remote: &Remote, user: &User, url: &Url, request: &HeaderMap) -> bool {
    let stocked = in_repository(remote, user.id, &Method::GET, url.as_str(), request).await;
    matches!(stocked, Stocked::Answer { .. })
}

/// A push has come: it keeps its promise, once that is known.
pub(crate) fn pushed(remote: &Arc<Remote>, generation: u64, promise: u64, receiver: Receiver) {
    let found = remote.desk().pushed((generation, promise), receiver);
    if let Some((id, receiver)) = found {
        begin_keeping(remote, id, receiver);
    }
}

/// Takes a promised response in, in a task of its own.
fn begin_keeping(remote: &Arc<Remote>, id: PromiseId, receiver: Receiver) {
    tokio::spawn(keep(Arc::clone(remote), id, receiver));
}

/// Takes in a promised response: its head to the desk, its body to whoever waits, and to the repository where it may
/// be kept.
async fn keep(remote: Arc<Remote>, id: PromiseId, mut receiver: Receiver) {
    let requested_at = SystemTime::now();
    let (head, coding) = loop {
        match arriving::early(&mut receiver).await {
            Early::Head { head, coding, .. } => break (Arc::new(head), coding),
            Early::Informed(_) | Early::Promised { .. } => {}
            Early::Failed(_) | Early::Lost => return remote.desk().withdraw(id),
        }
    };
    let (intake, body) = arriving::body(remote.budget(), remote.settings().repository.entry.0);
    let Some(known) = remote.desk().head(id, &head, body.clone(), remote.now()) else { return };
    let mut stored = None;
    if let Some(partition) = partition_for(known.user, &known.request, head.status, &head.fields) {
        let entry = to_store(partition, &known.request, &head, requested_at);
        stored = Some(remote.repository().store(partition, known.url.as_str(), entry, body.clone()).await);
    }
    drop(body);
    match arriving::carry(receiver, coding, intake, None).await {
        Ok(()) => remote.desk().complete(id, stored, remote.now()),
        Err(_) => remote.desk().withdraw(id),
    }
}
