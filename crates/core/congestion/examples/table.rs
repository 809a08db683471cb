//! Prints what each controller makes of a satellite link, in virtual time: seconds, and how far from the
//! limit that rate and distance set.
//!
//! `cargo run -p farhop-congestion --example table`

#[allow(dead_code)]
#[path = "../tests/long_hop/simulation/mod.rs"]
mod simulation;

use farhop_congestion::Choice;
use simulation::scenes::{LONG, Link, Outcome, after_small_pages, fresh, measured, urgent, warm};

const LINKS: [(&str, Link); 4] = [
    ("600 KB queue", Link { queue_kb: 600, loss: 0.0 }),
    ("100 KB queue", Link { queue_kb: 100, loss: 0.0 }),
    ("1 % loss", Link { queue_kb: 600, loss: 0.01 }),
    ("3 % loss", Link { queue_kb: 600, loss: 0.03 }),
];

type Scene = (&'static str, fn(Link, Choice) -> Outcome);

const SCENES: [Scene; 7] = [
    ("2 MB, fresh, path unknown", |link, choice| fresh(link, choice, None, 2_000_000)),
    ("2 MB, fresh, path saved", |link, choice| fresh(link, choice, measured(link, choice), 2_000_000)),
    ("2 MB, warm", |link, choice| warm(link, choice, 0, 2_000_000)),
    ("2 MB, after a minute's pause", |link, choice| warm(link, choice, 60, 2_000_000)),
    ("2 MB, after ten small pages", after_small_pages),
    ("20 MB, fresh, path unknown", |link, choice| fresh(link, choice, None, 20_000_000)),
    ("5 KB, urgent, during bulk", urgent),
];

fn main() {
    println!("8 Mbit/s, 600 ms; seconds, × the limit, packets dropped by the queue\n");
    for (scene, play) in SCENES {
        println!("{scene}");
        for (name, link) in LINKS {
            let cells: Vec<String> =
                Choice::ALL.into_iter().map(|choice| cell(choice, play(link, choice))).collect();
            println!("  {name:13} {}", cells.join("  "));
        }
    }
}

fn cell(choice: Choice, outcome: Outcome) -> String {
    let seconds = outcome.took.as_secs_f64();
    if outcome.took >= LONG {
        return format!("{choice:7}   longer than anyone waits");
    }
    format!("{choice:7} {seconds:6.2} s {:5.2} × {:5}", outcome.ratio(), outcome.dropped)
}
