//! A round of loads: the same in every round, in the same order, so many at a time; what takes long among what does not.

use std::io;
use std::time::Instant;

use farhop_compare::Interrupt;
use farhop_orbit::Rng;
use farhop_testkit::Manners;
use futures_util::StreamExt as _;
use tokio::time::{Duration, timeout};

use super::place::{HOST, Map, USERS};
use super::tally::Tally;
use super::{bad, media, pages, transfers};
use crate::live;
use crate::visitor::Visitor;

/// Loads that are under way at a time.
const AT_ONCE: usize = 48;
/// How long one may take: it may meet a cut and a change of carriers.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is seen that the user wants it to end.
const LOOK: Duration = Duration::from_millis(100);

/// Kinds of loads by name, and how many of each a round has.
const ROUND: [(&str, u32); 26] = [
    ("page", 6),
    ("page over TLS", 6),
    ("page over HTTP/2", 6),
    ("page left over HTTP/2", 3),
    ("download", 4),
    ("slow download", 2),
    ("cancelled download", 4),
    ("range", 4),
    ("upload", 4),
    ("cancelled upload", 2),
    ("tunnel", 10),
    ("WebSocket", 2),
    ("WebSocket over HTTP/2", 2),
    ("events", 2),
    ("long poll", 1),
    // Each of the manners once.
    ("hostile origin", Manners::ALL.len() as u32),
    ("hostile client", 8),
    ("portal", 2),
    ("caught tunnel", 10),
    ("caught page", 4),
    ("caught TLS", 3),
    ("caught and left", 3),
    ("name", 6),
    ("film", 2),
    ("picture", 4),
    ("speech", 3),
];

/// A client among others.
pub(super) struct Client<'a> {
    pub(super) map: &'a Map,
    /// What this load draws.
    pub(super) dice: Rng,
    /// Its number within the round, and among those of its kind.
    pub(super) number: u64,
    pub(super) of_kind: usize,
}

impl Client<'_> {
    /// Below `end`, which is not 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.dice.next_u64() % end
    }

    /// One of the users, as the proxy wants to be told: `Basic …`.
    pub(super) fn credentials(&self) -> String {
        let (_, _, told) = USERS[self.number as usize % USERS.len()];
        format!("Basic {told}")
    }

    /// Through the remote that asks for passwords and intercepts.
    pub(super) fn visitor(&self) -> io::Result<Visitor> {
        Ok(Visitor::through(self.map.proxy, &self.map.trusted)?.with_credentials(self.credentials()))
    }

    /// Straight to the site, and caught on the way.
    pub(super) fn caught(&self) -> io::Result<Visitor> {
        Visitor::direct(self.map.site, &self.map.lab_ca)
    }
}

/// What a round has, in its order, each with its number among those of its kind: the kinds in turn, those with many more often.
fn round() -> Vec<(&'static str, usize)> {
    let most = ROUND.iter().map(|(_, count)| *count).max().unwrap_or_default();
    let turn = |turn: u32| {
        ROUND.iter().filter_map(move |(kind, count)| {
            let before = turn * count / most;
            (before != (turn + 1) * count / most).then_some((*kind, before as usize))
        })
    };
    (0..most).flat_map(turn).collect()
}

/// Loads round after round, on this thread, until the time is over or the user wants it to end.
///
/// # Errors
/// No runtime can be made. What goes wrong with a load is counted.
pub(super) fn load(
    map: &Map,
    seed: u64,
    until: Instant,
    tally: &Tally,
    interrupt: &Interrupt,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Round follows round without a pause: a load that takes long holds up no other.
        let loads = std::iter::repeat_with(round).take_while(|_| Instant::now() < until).flat_map(|round| {
            tally.round();
            round.into_iter().zip(0..)
        });
        let loads = loads.take_while(|_| Instant::now() < until).map(|((kind, of_kind), number)| {
            let dice = Rng::new(seed.wrapping_add(number));
            one(Client { map, dice, number, of_kind }, kind, tally)
        });
        let all = futures_util::stream::iter(loads).for_each_concurrent(AT_ONCE, |load| load);
        tokio::select! {
            () = all => {}
            () = stopped(interrupt) => {}
        }
        Ok(())
    })
}

async fn stopped(interrupt: &Interrupt) {
    while interrupt.check().is_ok() {
        tokio::time::sleep(LOOK).await;
    }
}

async fn one(client: Client<'_>, kind: &'static str, tally: &Tally) {
    let (start, number) = (Instant::now(), client.number);
    let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, format!("not done after {PATIENCE:?}")));
    let outcome = timeout(PATIENCE, carry_out(client, kind)).await.unwrap_or_else(late);
    let outcome = outcome.map_err(|error| io::Error::new(error.kind(), format!("number {number}: {error}")));
    tally.note(kind, start, outcome);
}

async fn carry_out(mut client: Client<'_>, kind: &str) -> io::Result<u64> {
    match kind {
        "page" => pages::plain(&mut client).await,
        "page over TLS" => pages::secure(&mut client).await,
        "page over HTTP/2" => pages::at_once(&mut client, false).await,
        "page left over HTTP/2" => pages::at_once(&mut client, true).await,
        "download" => transfers::download(&mut client, transfers::Pace::Quick).await,
        "slow download" => transfers::download(&mut client, transfers::Pace::Slow).await,
        "cancelled download" => transfers::download(&mut client, transfers::Pace::Cancelled).await,
        "range" => transfers::range(&mut client).await,
        "upload" => transfers::upload(&mut client).await,
        "cancelled upload" => transfers::cancelled_upload(&mut client).await,
        "tunnel" => transfers::tunnel(&mut client, false).await,
        "WebSocket" => live::socket::echoed(&client.visitor()?).await,
        "WebSocket over HTTP/2" => live::socket::echoed_within_http2(&client.visitor()?).await,
        "events" => live::events::told(&client.visitor()?).await,
        "long poll" => live::events::polled(&client.visitor()?).await,
        "hostile origin" => bad::origin(&mut client).await,
        "hostile client" => bad::client(&mut client).await,
        "portal" => pages::portal(&mut client).await,
        "caught tunnel" => transfers::tunnel(&mut client, true).await,
        "caught page" => pages::caught(&mut client).await,
        "caught TLS" => pages::caught_secure(&mut client).await,
        "name" => media::name(&mut client).await,
        "film" => media::film(&mut client).await,
        "picture" => media::picture(&mut client).await,
        "speech" => media::speech(&mut client).await,
        "caught and left" => bad::caught_and_left(&mut client).await,
        other => Err(io::Error::other(format!("{other} is no load of {HOST}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_as_many_of_each_kind_as_it_says_and_mixes_them() {
        let round = round();
        for (kind, count) in ROUND {
            let numbers = round.iter().filter(|(one, _)| *one == kind).map(|(_, of_kind)| *of_kind);
            assert!(numbers.eq(0..count as usize), "{kind}");
        }
        assert!(round.windows(6).all(|near| near.iter().any(|(kind, _)| *kind != near[0].0)));
    }
}
