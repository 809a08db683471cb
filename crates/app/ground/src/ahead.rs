//! Connections made ahead: when a tunnel goes to a host, ground connects to those that usually follow it, so that their
//! tunnels find a connection when they come. Only TCP, and nothing is said on it before a client does; few at a time, and
//! not for long. Which hosts those are is `farhop_bundle::Companions`' to say.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_bundle::{Companions, Place};
use farhop_events::Event;
use futures_util::FutureExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::ground::Shared;

/// Kept for one remote, in visits' worth.
const VISITS: usize = 4;
/// Remotes of which something is learned.
const REMOTES: usize = 256;

/// A user, for as long as what was learned of it counts: the epoch of its remote, and its number there.
pub(crate) type Visitor = (u64, u64);

/// See the module.
#[derive(Default)]
pub(crate) struct Ahead(Mutex<HashMap<Arc<str>, Remote>>);

/// What is kept of one remote, by the name that the settings give it.
#[derive(Default)]
struct Remote {
    companions: Companions<Visitor>,
    connections: Vec<Connection>,
}

struct Connection {
    place: Place,
    until: Instant,
    connecting: JoinHandle<Option<TcpStream>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connecting.abort();
    }
}

impl Ahead {
    /// A tunnel goes to `place`: gives a connection that was made ahead for it, and has those made that usually follow, each for
    /// as long as `keep`.
    pub(crate) async fn tunnel(
        ground: &Arc<Shared>,
        remote: &Arc<str>,
        visitor: Option<Visitor>,
        place: &Place,
        keep: Duration,
    ) -> Option<TcpStream> {
        let found = ground.ahead.take(remote, place);
        Self::visited(ground, remote, place, visitor, keep, Companions::follow);
        let stream = (&mut found?.connecting).await.ok().flatten().filter(is_open);
        ground.tell(place, stream.is_some());
        stream
    }

    /// A client goes to `place` otherwise; what usually follows may be tunnels.
    pub(crate) fn lead(
        ground: &Arc<Shared>,
        remote: &Arc<str>,
        visitor: Option<Visitor>,
        place: &Place,
        keep: Duration,
    ) {
        Self::visited(ground, remote, place, visitor, keep, Companions::lead);
    }

    fn visited(
        ground: &Arc<Shared>,
        remote: &Arc<str>,
        place: &Place,
        visitor: Option<Visitor>,
        keep: Duration,
        learn: fn(&mut Companions<Visitor>, Visitor, &Place, Duration) -> Vec<Place>,
    ) {
        // Before its remote has introduced itself nobody knows whose it is.
        let Some(visitor) = visitor else { return };
        let (now, most) = (ground.up(), ground.settings().origin.ahead as usize);
        let mut remotes = ground.ahead.lock();
        if !remotes.contains_key(remote) && remotes.len() >= REMOTES {
            return;
        }
        let kept = remotes.entry(Arc::clone(remote)).or_default();
        let mut usual = learn(&mut kept.companions, visitor, place, now);
        usual.retain(|place| kept.connections.iter().all(|other| other.place != *place));
        usual.truncate(most.min((VISITS * most).saturating_sub(kept.connections.len())));
        if usual.is_empty() {
            return;
        }
        for place in usual {
            kept.connections.push(Connection::make(ground, place, keep));
        }
        drop(remotes);
        let ground = Arc::clone(ground);
        tokio::spawn(async move {
            sleep(keep).await;
            ground.ahead.lapse(&ground, Instant::now());
        });
    }

    fn take(&self, remote: &Arc<str>, place: &Place) -> Option<Connection> {
        let mut remotes = self.lock();
        let connections = &mut remotes.get_mut(remote)?.connections;
        let index = connections.iter().position(|connection| connection.place == *place)?;
        Some(connections.swap_remove(index))
    }

    fn lapse(&self, ground: &Shared, now: Instant) {
        let lapsed = |connection: &mut Connection| connection.until <= now;
        let lapsed: Vec<Connection> = self
            .lock()
            .values_mut()
            .flat_map(|remote| remote.connections.extract_if(.., lapsed).collect::<Vec<_>>())
            .collect();
        for connection in lapsed {
            ground.tell(&connection.place, false);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Remote>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn make(ground: &Arc<Shared>, place: Place, keep: Duration) -> Self {
        let (to, at) = (place.clone(), Arc::clone(ground));
        ground.bus.emit(Event::ConnectedAhead { host: place.host.clone(), port: place.port });
        let connecting = tokio::spawn(async move { at.origins.connect_ahead(&to.host, to.port).await });
        Connection { place, until: Instant::now() + keep, connecting }
    }
}

impl Shared {
    fn tell(&self, place: &Place, used: bool) {
        self.bus.emit(Event::AheadEnded { host: place.host.clone(), port: place.port, used });
    }
}

/// Whether the far side has closed it meanwhile; one that has spoken first is as good as any.
fn is_open(stream: &TcpStream) -> bool {
    !matches!(stream.peek(&mut [0]).now_or_never(), Some(Ok(0) | Err(_)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use farhop_events::Bus;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::Ground;

    const KEEP: Duration = Duration::from_secs(8);

    #[tokio::test]
    async fn a_connection_that_no_tunnel_takes_is_closed_and_counted() {
        let text = "allow = ['127.0.0.0/8']\nlink.profile = 'none'\n[[remote]]\nname = 'ship'\nkeys = ['made in the test']";
        let settings = farhop_settings::parse(text, Path::new("ground.toml"), &[]).unwrap();
        let bus = Bus::new();
        let ground = Ground::new(settings, 1, bus.clone()).unwrap().shared();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = |port| Place { host: "127.0.0.1".into(), port };
        let (leader, follower) = (place(1), place(listener.local_addr().unwrap().port()));
        let ship: Arc<str> = "ship".into();
        for user in 1..=3 {
            Ahead::lead(&ground, &ship, Some((0, user)), &leader, KEEP);
            // Taken where there is one; the last is left.
            if user < 3 {
                assert!(Ahead::tunnel(&ground, &ship, Some((0, user)), &follower, KEEP).await.is_none());
            }
        }
        let (mut connected, _) = listener.accept().await.unwrap();
        ground.ahead.lapse(&ground, Instant::now());
        assert_eq!(bus.counters().ahead_unused(), 0, "it has only begun");
        ground.ahead.lapse(&ground, Instant::now() + KEEP);
        assert_eq!(connected.read(&mut [0]).await.unwrap(), 0);
        let counted =
            (bus.counters().connected_ahead(), bus.counters().ahead_used(), bus.counters().ahead_unused());
        assert_eq!(counted, (1, 0, 1));
    }
}
