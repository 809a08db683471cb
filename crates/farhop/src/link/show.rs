//! What classes have and what they have done, as people read it.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, stdout};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::bail;
use farhop_diffserv::classify::Rule;
use farhop_diffserv::{Patient, Queue};
use farhop_link::{Config, HoursTold, LossTold, Shaped, Status};
use farhop_netdev::{LeafCounts, shaped};
use farhop_settings::LinkManagerSettings;
use farhop_units::{BitRate, Bytes};
use serde_json::{Value, json};

use crate::output::say;
use crate::source::Source;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Prints it as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings: LinkManagerSettings = arguments.source.load()?;
    let leaves = in_force(&settings.interface)?;
    let config = super::config(&settings)?;
    let sent = sent(&settings, &config)?;
    if arguments.json {
        let hours = farhop_link::hours(&config, farhop_link::time_of_day());
        let of = |leaf: &LeafCounts| {
            let (class, service) = name(leaf.minor);
            json!({
                "class": class, "service": service, "rate_bps": leaf.rate, "ceiling_bps": leaf.ceiling, "queue": leaf.kind,
                "bytes": leaf.bytes, "packets": leaf.packets, "dropped": leaf.dropped, "waiting_bytes": leaf.waiting,
            })
        };
        let classes: Vec<_> = leaves.iter().map(of).collect();
        return say(&serde_json::to_string_pretty(&json!({
            "interface": settings.interface, "sent_bps": sent.rate.0, "source": sent.source, "losing": sent.losing,
            "classes": classes, "hours": hours,
        }))?);
    }
    say(&(counts(&settings.interface, &leaves, Since::Beginning) + &stands(&config, &sent)))
}

/// What is sent at, and who says so.
struct Sent {
    rate: BitRate,
    source: String,
    losing: Vec<LossTold>,
    kept: Kept,
}

/// Who keeps to hours.
#[derive(Clone, Copy)]
pub(super) enum Kept {
    /// The manager that runs.
    Now,
    /// One that would run.
    ByRun,
    /// There is no manager, and what is in force is what holds within them.
    ByNobody,
}

/// What is to be said besides of what is in force.
fn stands(config: &Config, sent: &Sent) -> String {
    let losing: String = sent.losing.iter().map(|class| format!("\n{class}")).collect();
    let rate = sent.rate.in_words();
    format!("\n\nSent at {rate}, by: {}{losing}{}", sent.source, told(config, sent.kept))
}

/// As the running manager says; where there is none, what `apply` by itself puts into force.
fn sent(settings: &LinkManagerSettings, config: &Config) -> anyhow::Result<Sent> {
    let status = super::block_on(super::call::ask(&settings.control, "status", Value::Null)).ok();
    let status = status.and_then(|status| serde_json::from_value::<Status>(status).ok());
    if let Some(status) = status.filter(|status| status.interface == config.interface) {
        let Status { shaped_bps, source, losing, .. } = status;
        return Ok(Sent { rate: BitRate(shaped_bps), source, losing, kept: Kept::Now });
    }
    let rate = farhop_link::plan(config, Vec::new())?.plan.shaped;
    Ok(Sent { rate, source: config.source().to_string(), losing: Vec::new(), kept: Kept::ByNobody })
}

/// Classes that have hours, and what they are to have now.
pub(super) fn told(config: &Config, kept: Kept) -> String {
    in_words(&farhop_link::hours(config, farhop_link::time_of_day()), kept)
}

fn in_words(hours: &[HoursTold], kept: Kept) -> String {
    let mut text = String::new();
    if !hours.is_empty() {
        text.push_str("\n\nBy hours");
        text.push_str(match kept {
            Kept::Now => ":",
            Kept::ByRun => ", which `farhop link run` keeps to and `apply` by itself does not:",
            Kept::ByNobody => ", not in force: no `farhop link run` keeps to these hours",
        });
        for class in hours {
            let _ = write!(text, "\n  {class}");
        }
    }
    text
}

/// How long between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Takes a terminal's cursor to its upper left corner and clears what is below.
const ANEW: &str = "\x1b[H\x1b[J";

pub(super) fn watch(settings: &LinkManagerSettings) -> anyhow::Result<()> {
    let (config, interface) = (super::config(settings)?, &settings.interface);
    let is_terminal = stdout().is_terminal();
    let mut before: Option<(Instant, Vec<LeafCounts>)> = None;
    loop {
        let now = (Instant::now(), in_force(interface)?);
        let past = before.as_ref().map(|(at, leaves)| (now.0.duration_since(*at), leaves.as_slice()));
        let text = counts(interface, &now.1, Since::Look(past)) + &stands(&config, &sent(settings, &config)?);
        let (gap, time) = (if before.is_some() { "\n" } else { "" }, clock(farhop_link::time_of_day()));
        say(&if is_terminal { format!("{ANEW}{text}") } else { format!("{gap}{time}\n{text}") })?;
        before = Some(now);
        sleep(LOOK);
    }
}

/// `06:30:05 UTC`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn in_force(interface: &str) -> anyhow::Result<Vec<LeafCounts>> {
    let Some(shaped) = shaped(interface)? else {
        bail!("{interface} has no classes of Farhop's; `farhop link apply` puts them into force");
    };
    if !shaped.has_rules {
        bail!(
            "{interface} has Farhop's classes, but somebody has taken the rules that lead to them; `farhop link apply` puts them back"
        );
    }
    Ok(shaped.leaves)
}

/// Whether a leaf is a part of a class.
fn is_within(minor: u16) -> bool {
    minor & 0xf != 0
}

/// The class of a leaf, and what it is for: 0x70 is LE, and 0x72 the backups within.
fn name(minor: u16) -> (String, String) {
    let place = usize::from(minor >> 4).checked_sub(1);
    let Some(queue) = place.and_then(|place| Queue::ALL.get(place)) else {
        return (format!("{minor:x}"), String::new());
    };
    let kind = usize::from(minor & 0xf).checked_sub(1).and_then(|kind| Patient::BACKGROUND.get(kind));
    (queue.to_string(), kind.map_or_else(|| queue.service().to_string(), Patient::to_string))
}

/// What is counted.
#[derive(Clone, Copy)]
enum Since<'a> {
    /// Packets since the classes are there.
    Beginning,
    /// The rate since a look before, so long ago, where there was one.
    Look(Option<(Duration, &'a [LeafCounts])>),
}

/// No line has more than 80 columns.
fn counts(interface: &str, leaves: &[LeafCounts], since: Since<'_>) -> String {
    let counted = if matches!(since, Since::Beginning) { "packets" } else { "rate now" };
    let mut text = format!(
        "{interface}\n{:<5} {:<12} {:>11} {:>11} {counted:>11} {:>7} {:>7} {:>7}",
        "class", "for", "guaranteed", "at most", "bytes", "dropped", "waiting"
    );
    for leaf in leaves {
        let counted = match since {
            Since::Beginning => leaf.packets.to_string(),
            Since::Look(past) => past
                .and_then(|(time, leaves)| {
                    let before = leaves.iter().find(|before| before.minor == leaf.minor)?;
                    let bits = leaf.bytes.saturating_sub(before.bytes).saturating_mul(8) as f64;
                    Some(BitRate((bits / time.as_secs_f64()).round() as u64).in_words())
                })
                .unwrap_or_else(|| "-".into()),
        };
        let (class, service) = name(leaf.minor);
        let class = if is_within(leaf.minor) { part(&class) } else { class };
        let [rate, ceiling] = [leaf.rate, leaf.ceiling].map(|rate| BitRate(rate).in_words());
        let (bytes, dropped, waiting) = (size(leaf.bytes), leaf.dropped, size(leaf.waiting));
        let _ = write!(
            text,
            "\n{class:<5} {service:<12} {rate:>11} {ceiling:>11} {counted:>11} {bytes:>7} {dropped:>7} {waiting:>7}"
        );
    }
    text
}

/// How a class is told of which this is a part, in all tables.
fn part(class: &str) -> String {
    format!(" {class}")
}

/// Bytes to three digits.
fn size(bytes: u64) -> String {
    let step = 10u64.pow(bytes.checked_ilog10().unwrap_or(0).saturating_sub(2));
    match (bytes.saturating_add(step / 2)) / step * step {
        bytes if bytes >= 1_000_000_000 => format!("{} GB", bytes as f64 / 1e9),
        bytes => Bytes(bytes).to_string(),
    }
}

/// What each class would have.
pub(super) fn table(shaped: &Shaped) -> String {
    let plan = &shaped.plan;
    let mut text = format!(
        "{}: a link of {}, of which {} are sent at;\nvoice waits {} ms at most behind a packet of others\n\n{:<5}  {:<12}  {:<8}  {:>12}  {:>12}",
        shaped.shaping.interface,
        plan.link,
        plan.shaped.in_words(),
        (plan.wait_behind_others().as_secs_f64() * 1e4).ceil() / 10.0,
        "class",
        "for",
        "marked",
        "guaranteed",
        "at most"
    );
    for queued in &plan.queues {
        let _ = write!(
            text,
            "\n{:<5}  {:<12}  {:<8}  {:>12}  {:>12}",
            queued.queue.to_string(),
            queued.queue.service().to_string(),
            queued.queue.phb().to_string(),
            queued.guaranteed.in_words(),
            queued.ceiling.in_words(),
        );
    }
    for (kind, queued) in Patient::BACKGROUND.iter().zip(&plan.kinds) {
        let (class, of) = (part(&queued.queue.to_string()), kind.to_string());
        let _ = write!(
            text,
            "\n{class:<5}  {of:<12}  {:<8}  {:>12}  {:>12}",
            "",
            queued.guaranteed.in_words(),
            queued.ceiling.in_words()
        );
    }
    if !shaped.unadmitted.is_empty() {
        text.push_str("\n\n");
        text.push_str(&unadmitted(&shaped.unadmitted));
    }
    if !shaped.left.is_empty() {
        text.push_str("\n\nThe kernel does not look into flows, and is not given these rules:");
        for left in &shaped.left {
            let _ = write!(text, "\n  {} (goes by {})", left.rule, left.why);
        }
    }
    text
}

/// A rule without conditions before others: they are never asked.
pub(super) fn for_all(rules: &[Rule]) -> Option<String> {
    let (_, before) = rules.split_last()?;
    let rule = before.iter().find(|rule| rule.conditions.is_empty())?;
    Some(format!("the rule '{}' holds for everything: none after it is reached", rule.name))
}

/// What rules do that lead to EF past the admission of calls.
pub(super) fn unadmitted(rules: &[String]) -> String {
    format!(
        "These rules lead to EF all that they hold for, admitted or not, and what is beyond EF's share waits and is lost there, admitted calls' \
         packets with it: {}. Where calls announce themselves (SIP) or are asked for, their media go to EF without a rule.",
        rules.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_bear_the_names_of_their_classes() {
        assert_eq!(
            [0x10, 0x60, 0x70, 0x72, 0x90].map(|minor| name(minor).0),
            ["EF", "DE", "LE", "LE", "90"].map(String::from)
        );
    }

    #[test]
    fn kinds_within_le_are_told_apart() {
        assert_eq!(
            [0x10, 0x70, 0x71, 0x73].map(|minor| name(minor).1),
            ["voice", "background", "updates", "peer-to-peer"].map(String::from)
        );
    }

    #[test]
    fn rules_that_lead_past_admission_are_named() {
        use farhop_settings::parse;
        let of = |service: &str| {
            let text = format!(
                "interface = 'sat0'\nprofile = 'geo-hylas2'\n[[rule]]\nname = 'pbx'\nservice = '{service}'\nports = [4000]\n\
                 [[rule]]\nname = 'by-name'\nservice = 'voice'\nhosts = ['pbx.example']\n"
            );
            let settings: LinkManagerSettings = parse(&text, std::path::Path::new("link.toml"), &[]).unwrap();
            table(&farhop_link::plan(&super::super::config(&settings).unwrap(), Vec::new()).unwrap())
        };
        let said = of("voice");
        assert!(said.contains("admitted calls' packets with it: pbx. "), "{said}");
        assert!(!of("interactive").contains("lead to EF"));
    }

    #[test]
    fn a_second_look_has_the_rate_of_the_time_between() {
        let leaf = |bytes| LeafCounts {
            minor: 0x10,
            rate: 301_568,
            ceiling: 1_178_000,
            bytes,
            ..LeafCounts::default()
        };
        let past = [leaf(2_000)];
        let since = Since::Look(Some((Duration::from_millis(500), &past)));
        let text = counts("sat0", &[leaf(5_000)], since);
        assert!(text.contains("EF    voice") && text.contains("48 kbit/s"), "{text}");
        assert!(text.contains(" 302 kbit/s 1.18 Mbit/s "), "what it never exceeds now: {text}");
    }

    #[test]
    fn what_is_in_force_fits_a_terminal_of_eighty_columns() {
        let leaf = |minor| LeafCounts {
            minor,
            rate: 18_765_432,
            ceiling: 98_765_432,
            bytes: 123_456_789_012,
            packets: 1_234_567_890,
            dropped: 1_234_567,
            waiting: 654_321,
            ..LeafCounts::default()
        };
        let text = counts("sat0", &[leaf(0x20), leaf(0x73)], Since::Beginning);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(
            text.ends_with(
                "\n LE   peer-to-peer 18.8 Mbit/s 98.8 Mbit/s  1234567890  123 GB 1234567  654 KB"
            ),
            "{text}"
        );
        assert_eq!([0, 999, 9_999, 1_234_567].map(size), ["0 B", "999 B", "10 KB", "1.23 MB"]);
        assert_eq!(clock(Duration::from_secs(6 * 3600 + 30 * 60 + 5)), "06:30:05 UTC");
    }

    #[test]
    fn a_rule_that_holds_for_everything_is_named_where_others_follow() {
        let text = "interface = 'sat0'\nrate = '1 Mbit/s'\n[[rule]]\nname = 'all'\nservice = 'web'\n";
        let of = |more: &str| {
            let text = format!("{more}{text}");
            let settings = farhop_settings::parse(&text, std::path::Path::new("link.toml"), &[]).unwrap();
            for_all(&super::super::config(&settings).unwrap().rules)
        };
        let said = "the rule 'all' holds for everything: none after it is reached";
        assert_eq!(of("").as_deref(), Some(said));
        assert_eq!(of("standard_rules = false\ncarrier.ports = []\n"), None, "it is the last");
    }

    #[test]
    fn classes_that_have_hours_are_named_with_what_they_have_now() {
        use farhop_settings::parse;
        let text = "interface = 'sat0'\nprofile = 'geo-hylas2'\n[[window]]\nhours = '16:50-17:00'\noutside = '5 %'\n";
        let settings: LinkManagerSettings = parse(text, std::path::Path::new("link.toml"), &[]).unwrap();
        let config = super::super::config(&settings).unwrap();
        let hours = |minutes: u64| farhop_link::hours(&config, Duration::from_secs(minutes * 60));
        let at = |minutes: u64| in_words(&hours(minutes), Kept::Now);
        let alone = in_words(&hours(0), Kept::ByNobody);
        let head =
            "\n\nBy hours, not in force: no `farhop link run` keeps to these hours\n  LE (background): ";
        assert!(alone.starts_with(head), "{alone}");
        let line = at(17 * 60);
        assert!(
            line.ends_with("\n  LE (background): 24.3 kbit/s at most now, outside of 16:50-17:00 UTC"),
            "{line}"
        );
        let line = at(16 * 60 + 50);
        assert!(
            line.ends_with("\n  LE (background): 486 kbit/s at most now, within 16:50-17:00 UTC"),
            "{line}"
        );
        assert_eq!(in_words(&[], Kept::Now), "");
    }
}
