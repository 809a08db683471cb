//! Answers of 1 KB that a proxy holds: how many a core gives in a second, and how soon. Farhop, Squid and nginx in turn, each
//! confined to one core, the same generator on another, the same connections, requests and origin; every byte is compared.

mod generator;
mod servers;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use farhop_testkit::pattern::bytes_at;
use farhop_testkit::{File, Site};

use crate::group::Context;
use crate::{MeasureError, Row, Verdict};
use generator::{Asked, closed_loop, confine_this_thread, open_loop};
use servers::{Kind, Server};

/// Things asked for, and the bytes of each.
const THINGS: u64 = 100;
const BYTES: usize = 1024;
/// Answers a second on one core, at the least.
const BOUND: f64 = 20_000.0;
/// At half load, for 99 of 100 answers.
const LATENCY: Duration = Duration::from_millis(2);
/// For how long each proxy is asked as much as it can answer, each time, and at half of that.
const FULL: Duration = Duration::from_secs(5);
const HALF: Duration = Duration::from_secs(10);
/// Rounds: the proxies take turns, and the middle of each one's figures counts.
const ROUNDS: usize = 3;
/// The cores of servers and of the generator.
const SERVERS_CORE: usize = 0;
const GENERATORS_CORE: usize = 1;

/// What one proxy did.
#[derive(Debug, Clone, Copy)]
struct Figure {
    /// Answers a second.
    rate: f64,
    /// Share of its core that the proxy computed.
    busy: f64,
}

impl Figure {
    /// The rate of half its load. Of a proxy that was held up by who asks, what it would have given with all of its core counts,
    /// as far as that can be asked for.
    fn half(self) -> f64 {
        self.rate / self.busy.clamp(0.5, 1.0) / 2.0
    }
}

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err(MeasureError::Unexpected(
            "this takes two cores: one for the server, one for who asks".into(),
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(MeasureError::system("a runtime"))?;
    let mut site = Site::new();
    for thing in 0..THINGS {
        let file = File::pattern(thing, BYTES as u64).field("cache-control", "max-age=3600");
        site = site.file(&format!("/{thing}"), file);
    }
    let origin = runtime.block_on(site.serve());
    let asked: Vec<Asked> = (0..THINGS)
        .map(|thing| Asked::new(&origin.url(&format!("/{thing}")), &bytes_at(thing, 0, BYTES)))
        .collect();

    let mut servers = Vec::new();
    let mut rows = Vec::new();
    for kind in Kind::ALL {
        match Server::start(kind, SERVERS_CORE, origin.address()) {
            Ok(server) => servers.push((server, Vec::new())),
            // Without Farhop or its opponent nothing is proved; nginx's figure is for the record.
            Err(error) => rows.push(Row::unmeasured(kind.name(), &error)),
        }
    }
    // The first answers fill what is measured afterwards; from then on the origin is asked for nothing.
    for (server, _) in &servers {
        on_own_core(|| closed_loop(server.address, &asked, Duration::from_millis(500)))?;
    }
    let before = origin.asked().len();
    for round in 1..=ROUNDS {
        for (server, figures) in &mut servers {
            context.interrupt.check()?;
            let (computed, start) = (server.cpu_seconds(), Instant::now());
            let answers = on_own_core(|| closed_loop(server.address, &asked, FULL))?;
            let seconds = start.elapsed().as_secs_f64();
            let figure =
                Figure { rate: answers as f64 / seconds, busy: (server.cpu_seconds() - computed) / seconds };
            eprintln!("{} {round}/{ROUNDS}: {figure}", server.kind.name());
            figures.push(figure);
        }
    }
    let crossed = origin.asked().len() - before;
    let figures: Vec<(Kind, Figure)> =
        servers.iter().filter_map(|(server, figures)| Some((server.kind, middle(figures)?))).collect();
    let of = |wanted| figures.iter().find(|(kind, _)| *kind == wanted).map(|(_, figure)| *figure);
    let farhop = of(Kind::Farhop).ok_or_else(|| MeasureError::Unexpected("farhop did not start".into()))?;
    rows.push(Row::judged(
        "cached answers of 1 KB on one core",
        farhop.to_string(),
        format!("≥ {BOUND:.0} a second"),
        farhop.rate >= BOUND && crossed == 0,
    ));
    if let Some(squid) = of(Kind::Squid) {
        let times = farhop.rate / squid.rate;
        let measured = format!("{times:.2} × (squid {squid})");
        rows.push(Row::judged("the same, against Squid", measured, "> 1 ×, same run", times > 1.0));
    }
    rows.extend(of(Kind::Nginx).map(|nginx| Row {
        what: "the same, nginx beside".into(),
        measured: nginx.to_string(),
        bound: "none, printed".into(),
        verdict: Verdict::Told,
    }));
    for (server, _) in &servers {
        context.interrupt.check()?;
        let Some(full) = of(server.kind) else { continue };
        let (computed, start, rate) = (server.cpu_seconds(), Instant::now(), full.half());
        let mut times = on_own_core(|| open_loop(server.address, &asked, rate, HALF))?;
        let busy = (server.cpu_seconds() - computed) / start.elapsed().as_secs_f64();
        rows.extend(latency(server.kind, Figure { rate, busy }, &mut times));
    }
    let asked_again = origin.asked().len() - before;
    rows.push(Row::judged(
        "requests that reached the origin meanwhile",
        asked_again.to_string(),
        "0: every answer is a held one",
        asked_again == 0,
    ));
    Ok(rows)
}

/// How soon a proxy answers. Of Farhop it is judged; of the others told.
fn latency(kind: Kind, half: Figure, times: &mut [Duration]) -> Option<Row> {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
    let (median, slow, slowest) = (at(0.5)?, at(0.99)?, *times.last()?);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let measured = format!(
        "p99 {:.2} ms (median {:.2}, most {:.1}; {:.0} a second, {} answers, its core {:.0} % busy)",
        ms(slow),
        ms(median),
        ms(slowest),
        half.rate,
        times.len(),
        half.busy * 100.0
    );
    let what = format!("{}, hit latency at half load", kind.name());
    let bound = format!("p99 < {} ms", LATENCY.as_millis());
    Some(match kind {
        Kind::Farhop => Row::judged(what, measured, bound, slow < LATENCY),
        _ => Row { what, measured, bound: "none, printed".into(), verdict: Verdict::Told },
    })
}

/// The figure of the middle rate.
fn middle(figures: &[Figure]) -> Option<Figure> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    sorted.get(sorted.len() / 2).copied()
}

/// Does `work` on a thread that has the generator's core.
fn on_own_core<T: Send>(work: impl FnOnce() -> std::io::Result<T> + Send) -> Result<T, MeasureError> {
    let done = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            confine_this_thread(GENERATORS_CORE)?;
            work()
        });
        thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the generator panicked")))
    });
    done.map_err(MeasureError::system("the generator of load"))
}

/// A port on loopback that is free at this moment.
fn free_port() -> Result<SocketAddr, MeasureError> {
    let failed = MeasureError::system("a port");
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(&failed)?;
    listener.local_addr().map_err(failed)
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // One that is not busy was not asked for all that it can give: the figure is then the generator's.
        let idle = if self.busy < 0.9 { ", held up by who asks" } else { "" };
        write!(f, "{:.0} a second, its core {:.0} % busy{idle}", self.rate, self.busy * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_figure_counts_and_one_that_was_not_busy_says_so() {
        let figure = |rate, busy| Figure { rate, busy };
        let shown = middle(&[figure(3.0, 1.0), figure(1.0, 1.0), figure(2.0, 0.5)]).unwrap().to_string();
        assert_eq!(shown, "2 a second, its core 50 % busy, held up by who asks");
        assert!(middle(&[]).is_none());
    }

    #[test]
    fn half_of_the_load_is_half_of_what_a_whole_core_gives() {
        let half = |busy| Figure { rate: 30_000.0, busy }.half();
        assert_eq!((half(1.0), half(0.6), half(1.02)), (15_000.0, 25_000.0, 15_000.0));
        assert_eq!(half(0.1), 30_000.0, "no more than was ever asked for");
    }

    #[test]
    fn latency_is_judged_at_the_99th_of_a_hundred() {
        let times = |slow: usize| -> Vec<Duration> {
            (0..1000).map(|number| Duration::from_millis(if number < slow { 5 } else { 1 })).collect()
        };
        let half = Figure { rate: 1.0, busy: 0.5 };
        assert_eq!(latency(Kind::Farhop, half, &mut times(9)).unwrap().verdict, Verdict::Pass);
        assert_eq!(latency(Kind::Farhop, half, &mut times(11)).unwrap().verdict, Verdict::Miss);
        assert_eq!(latency(Kind::Squid, half, &mut times(11)).unwrap().verdict, Verdict::Told);
        assert!(latency(Kind::Farhop, half, &mut []).is_none());
    }
}
