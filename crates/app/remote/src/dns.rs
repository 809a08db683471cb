//! The DNS component beside the users: answers what it holds, asks its ground half for the rest, and asks anew for what is
//! popular before it runs out. What messages mean is `farhop-dns`'s; what crosses is the question alone.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_component::{Component, DNS, Once, RemoteHalf, ask};
use farhop_dns::{Answer, Cache, Query, Wanted, code};
use farhop_events::Event;
use farhop_front::{Messages, Over};
use farhop_htotp::frame::Class;
use farhop_settings::remote::DnsSettings;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::Remote;
use crate::clients::Census;
use crate::components::Attended;

/// After this, a client that still waits has asked again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked what is about to run out.
const LOOK: Duration = Duration::from_secs(1);
/// Questions of one client at a time.
const MOST_OF_ONE: u32 = 128;
/// Nobody's number among users: answers are everyone's.
const EVERYONE: u64 = 0;
/// RFC 1035 §4.2.2.
const LARGEST: usize = u16::MAX as usize;

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error(
    "dns.listen: cannot listen on {address}: {error}; choose another address, or stop what listens there"
)]
pub struct DnsError {
    address: SocketAddr,
    error: io::Error,
}

/// See the module.
pub(crate) struct Dns {
    listeners: Vec<Messages>,
    desk: Arc<Desk>,
}

/// What all questions share.
struct Desk {
    cache: Mutex<Cache>,
    asked: Arc<Once<Wanted, Arc<Answer>>>,
    clients: Census,
}

impl Dns {
    /// Listens where the settings say; `None` where they name no address.
    pub(crate) fn open(settings: &DnsSettings) -> Result<Option<Dns>, DnsError> {
        let bind = |address: &SocketAddr| {
            Messages::bind(*address).map_err(|error| DnsError { address: *address, error })
        };
        let listeners: Vec<_> = settings.listen.iter().map(bind).collect::<Result<_, _>>()?;
        let cache = Mutex::new(Cache::new(usize::try_from(settings.cache.0).unwrap_or(usize::MAX)));
        let desk = Arc::new(Desk { cache, asked: Arc::default(), clients: Census::default() });
        Ok((!listeners.is_empty()).then_some(Dns { listeners, desk }))
    }
}

impl RemoteHalf<Arc<Remote>, Attended> for Dns {
    fn component(&self) -> &'static Component {
        &DNS
    }

    fn start(&self, remote: &Arc<Remote>, tasks: &mut JoinSet<()>) {
        for listener in &self.listeners {
            let (remote, desk) = (Arc::clone(remote), Arc::clone(&self.desk));
            tasks.spawn(listener.clone().serve(move |client, message, over| {
                let (remote, desk) = (Arc::clone(&remote), Arc::clone(&desk));
                async move { desk.reply(&remote, client, &message, over).await }
            }));
        }
        tasks.spawn(prefetch(Arc::clone(remote), Arc::clone(&self.desk)));
    }
}

/// Asks anew for what is popular and about to run out.
async fn prefetch(remote: Arc<Remote>, desk: Arc<Desk>) {
    let mut tick = tokio::time::interval(LOOK);
    loop {
        tick.tick().await;
        while let Some(wanted) = desk.cache().poll_due(remote.now()) {
            if remote.settings().dns.prefetch {
                // What comes of it is put into the cache.
                drop(desk.find(&remote, wanted, true));
            }
        }
    }
}

impl Desk {
    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reply to a client's message; none to what asks nothing, and to who asks too much at once.
    async fn reply(
        self: &Arc<Self>,
        remote: &Arc<Remote>,
        client: IpAddr,
        message: &[u8],
        over: Over,
    ) -> Option<Vec<u8>> {
        let started = Instant::now();
        let _counted = self.clients.enter(client, MOST_OF_ONE)?;
        let query = match Query::read(message) {
            Ok(query) => query,
            Err(refusal) => return refusal,
        };
        if !remote.settings().clients.iter().any(|range| range.contains(client)) {
            remote.bus().emit(Event::ClientRefused { address: client.to_string() });
            return Some(query.refuse(code::REFUSED));
        }
        let held = self.cache().find(remote.now(), &query.wanted);
        let is_held = held.is_some();
        let found = match held {
            Some(held) => Some(held),
            None => self.find(remote, query.wanted.clone(), false).await.map(|answer| (answer, 0)),
        };
        remote.bus().emit(Event::NameAnswered {
            user: remote.users().at(client).name.to_string(),
            name: query.wanted.name(),
            kind: query.wanted.kind,
            code: found.as_ref().map_or(code::SERVER_FAILURE, |(answer, _)| answer.code),
            held: is_held,
            total_ms: started.elapsed().as_millis() as u64,
        });
        let most = if over == Over::Connections { LARGEST } else { query.most_udp() };
        if let Some((answer, _)) = &found {
            remote.rules().tell(remote.now(), &query.wanted.name(), answer);
        }
        Some(match found {
            Some((answer, age_s)) => answer.reply(&query, age_s, most),
            None => query.refuse(code::SERVER_FAILURE),
        })
    }

    /// Asks ground, or joins who does. The answer is put into the cache whoever waits for it.
    fn find(
        self: &Arc<Self>,
        remote: &Arc<Remote>,
        wanted: Wanted,
        ahead: bool,
    ) -> impl Future<Output = Option<Arc<Answer>>> + use<> {
        let (desk, remote, asked) = (Arc::clone(self), Arc::clone(remote), wanted.clone());
        self.asked.find(wanted, async move {
            let answer = Arc::new(timeout(PATIENCE, cross(&remote, &asked, ahead)).await.ok()??);
            desk.cache().put(remote.now(), &asked, &answer);
            Some(answer)
        })
    }
}

/// Asks across the hop.
async fn cross(remote: &Remote, wanted: &Wanted, ahead: bool) -> Option<Answer> {
    let carrier = remote.uplink().carrier(Instant::now() + PATIENCE).await?;
    let exchange = remote.next_exchange();
    remote.bus().emit(Event::NameCrossed { exchange, name: wanted.name(), kind: wanted.kind, ahead });
    let tunnel = DNS.tunnel(exchange.0, EVERYONE, Class::Interactive);
    let message = ask(&carrier.hop, tunnel, wanted.to_message(0).into(), LARGEST).await?;
    Answer::read(&message, 0, wanted)
}
