//! `farhop path`: what a running end has measured of the long hop, what it decided by it, and why.

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use farhop_control::Client;
use farhop_tuning::{Decision, Figures, Told, time_in_words};
use farhop_units::BitRate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::sleep;

use crate::output::say;

/// Shows what a running end has measured of the long hop, the windows, limits and timers that it decided by it, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The end's control socket, as its settings name it.
    socket: PathBuf,
    /// Goes on, and shows it again whenever it has changed.
    #[arg(long)]
    follow: bool,
    /// Prints it as JSON, with --follow one line each time.
    #[arg(long)]
    json: bool,
}

/// How often it is asked whether something has changed.
const LOOK: Duration = Duration::from_secs(1);
/// Who is quiet for longer has not answered when asked whether he is there.
const SILENT: Duration = Duration::from_secs(20);
/// Takes a terminal's cursor to its upper left corner and clears what is there.
const ANEW: &str = "\x1b[H\x1b[2J";

/// What an end answers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Paths {
    end: String,
    carriers: Vec<Carrier>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Carrier {
    peer: String,
    address: String,
    over: String,
    up_s: u64,
    /// An end of an earlier version does not say.
    #[serde(default)]
    heard_s: u64,
    path: Told,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        let mut client = Client::connect(&arguments.socket).await?;
        let mut shown: Option<Vec<Told>> = None;
        loop {
            let answer = client.call("path", Value::Null).await?;
            let paths: Paths = serde_json::from_value(answer.clone()).context("the end's answer")?;
            let told: Vec<Told> = paths.carriers.iter().map(|carrier| carrier.path.clone()).collect();
            if shown.as_ref() != Some(&told) {
                shown = Some(told);
                say(&match (arguments.json, arguments.follow) {
                    (true, true) => answer.to_string(),
                    (true, false) => serde_json::to_string_pretty(&answer)?,
                    (false, true) if stdout().is_terminal() => format!("{ANEW}{}", text(&paths)),
                    (false, _) => text(&paths),
                })?;
            }
            if !arguments.follow {
                return Ok(());
            }
            sleep(LOOK).await;
        }
    })
}

/// The answer as people read it.
fn text(paths: &Paths) -> String {
    if paths.carriers.is_empty() {
        return format!("{}: no carrier is up, so nothing is measured", paths.end);
    }
    let carriers: Vec<String> = paths.carriers.iter().map(|carrier| one(&paths.end, carrier)).collect();
    carriers.join("\n\n")
}

fn one(end: &str, carrier: &Carrier) -> String {
    let Carrier { peer, address, over, up_s, heard_s, path } = carrier;
    let up = time_in_words(Duration::from_secs(*up_s));
    let silent = match Duration::from_secs(*heard_s) {
        silence if silence >= SILENT => format!(", silent for {}", time_in_words(silence)),
        _ => String::new(),
    };
    let mut lines =
        vec![format!("{end}: carrier with {peer} ({address}) over {over}, up {up}{silent}"), String::new()];
    lines.push(format!("{:<14}  {:<12}  measured", "", "set"));
    lines.extend(figures(&path.set, &path.measured));
    lines.extend(beyond(&path.measured));
    lines.push(format!(
        "\n{:<26}  {:<14}  {:<14}  {:<9}  changes from",
        "parameter", "fits", "in use", "follows"
    ));
    for decision in &path.decided {
        let Decision { parameter, value, in_use, from, applies, because } = decision;
        let from = format!("{from:?}").to_lowercase();
        lines.push(format!("{parameter:<26}  {value:<14}  {in_use:<14}  {from:<9}  {applies}"));
        lines.extend(wrapped(because));
    }
    lines.join("\n")
}

fn figures(set: &Figures, measured: &Figures) -> [String; 3] {
    let row = |name: &str, set: Option<String>, measured: Option<String>| {
        let or_not = |text: Option<String>| text.unwrap_or_else(|| "not yet".into());
        format!("{name:<14}  {:<12}  {}", set.unwrap_or_else(|| "no".into()), or_not(measured))
    };
    let rate = |bps: u64| BitRate(bps).in_words();
    let seen = measured.round_trip_ms.map(|ms| match measured.variation_ms {
        Some(more) if more >= 1.0 => format!("{}, up to {} more", time(ms), time(more)),
        _ => time(ms),
    });
    let direction = |bps: Option<u64>, lost: Option<f64>| match (bps, lost) {
        (None, None) => None,
        (bps, lost) => {
            let rate = bps.map(|bps| format!("{} seen at most", rate(bps)));
            let lost = lost.map(|lost| format!("{} % lost", (lost * 1e4).round() / 100.0));
            Some([rate, lost].into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
    };
    [
        row("round trip", set.round_trip_ms.map(time), seen),
        row(
            "forward link",
            set.forward_bps.map(rate),
            direction(measured.forward_bps, measured.forward_lost),
        ),
        row("return link", set.return_bps.map(rate), direction(measured.return_bps, measured.return_lost)),
    ]
}

/// What ground has measured of the ways to origins, or the remote of those to its clients.
fn beyond(measured: &Figures) -> Option<String> {
    let origins = measured.origin_round_trip_ms.zip(measured.origin_variation_ms);
    let browsers = measured.browser_round_trip_ms.zip(measured.browser_variation_ms);
    let (name, (trip, variation)) =
        origins.map(|way| ("to origins", way)).or(browsers.map(|way| ("to clients", way)))?;
    Some(format!("{name:<14}  {:<12}  {}, {} more or less", "", time(trip), time(variation)))
}

/// Columns of a line, and those that a reason stands behind its parameter.
const COLUMNS: usize = 100;
const INDENT: &str = "    ";

/// A reason as lines that fit.
fn wrapped(reason: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in reason.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{INDENT}{word}")),
        }
    }
    lines
}

fn time(ms: f64) -> String {
    time_in_words(Duration::from_micros((ms * 1e3) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_tuning::{Applies, Source, Value as Size};

    fn told() -> Told {
        Told {
            set: Figures { forward_bps: Some(8_000_000), ..Figures::default() },
            measured: Figures {
                round_trip_ms: Some(648.4),
                variation_ms: Some(31.0),
                forward_bps: Some(7_912_345),
                forward_lost: Some(0.0101),
                ..Figures::default()
            },
            decided: vec![Decision {
                parameter: "stream window".into(),
                value: Size::Bytes(1_296_000),
                in_use: Size::Bytes(1_300_000),
                from: Source::Measured,
                applies: Applies::NextCarrier,
                because: "8 Mbit/s (set) × 648 ms (measured) = 648 KB fill the path".into(),
            }],
        }
    }

    fn paths(carriers: Vec<Carrier>) -> Paths {
        Paths { end: "remote".into(), carriers }
    }

    #[test]
    fn the_table_says_what_is_set_measured_decided_and_why() {
        let carrier = Carrier {
            peer: "home".into(),
            address: "192.0.2.1:4433".into(),
            over: "quic".into(),
            up_s: 95,
            heard_s: 19,
            path: told(),
        };
        let expected = "\
remote: carrier with home (192.0.2.1:4433) over quic, up 95 s

                set           measured
round trip      no            648 ms, up to 31 ms more
forward link    8 Mbit/s      7.91 Mbit/s seen at most, 1.01 % lost
return link     no            not yet

parameter                   fits            in use          follows    changes from
stream window               1.3 MB          1.3 MB          measured   next carrier
    8 Mbit/s (set) × 648 ms (measured) = 648 KB fill the path";
        assert_eq!(text(&paths(vec![carrier.clone()])), expected);
        let silent = text(&paths(vec![Carrier { heard_s: 60, ..carrier }]));
        assert!(
            silent.starts_with(
                "remote: carrier with home (192.0.2.1:4433) over quic, up 95 s, silent for 60 s\n"
            ),
            "{silent}"
        );
        assert_eq!(text(&paths(Vec::new())), "remote: no carrier is up, so nothing is measured");
    }

    #[test]
    fn what_is_short_is_told_in_microseconds_and_long_reasons_in_lines_that_fit() {
        assert_eq!([0.0, 0.2504, 1.4].map(time), ["0 s", "250 µs", "1 ms"]);
        let reason = "648 KB fill the path, ".repeat(9);
        let lines = wrapped(&reason);
        assert!(lines.len() == 3 && lines.iter().all(|line| line.chars().count() <= COLUMNS), "{lines:?}");
        let joined: Vec<_> = lines.iter().map(|line| line.strip_prefix(INDENT).unwrap()).collect();
        assert_eq!(joined.join(" "), reason.trim_end());
    }

    #[test]
    fn other_programs_read_the_same_in_plain_units() {
        let json = serde_json::to_value(told()).unwrap();
        let row = &json["decided"][0];
        assert_eq!((&row["unit"], &row["value"]), (&"bytes".into(), &1_296_000.into()));
        assert_eq!((&row["from"], &row["applies"]), (&"measured".into(), &"next_carrier".into()));
        assert_eq!(json["measured"]["forward_bps"], 7_912_345);
        assert_eq!(serde_json::from_value::<Told>(json).unwrap(), told());
    }
}
