//! What classes have and what they have done, as people read it.

use std::fmt::Write as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::bail;
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
    let hours = farhop_link::hours(&config, farhop_link::time_of_day());
    let sent = sent(&settings, &config)?;
    if arguments.json {
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
    let losing: String = sent.losing.iter().map(|class| format!("\n{class}")).collect();
    let sent = format!("\n\nSent at {}, by: {}", sent.rate.rounded(), sent.source);
    say(&(counts(&settings.interface, &leaves, None) + &sent + &losing + &told(&hours)))
}

/// What is sent at, and who says so.
struct Sent {
    rate: BitRate,
    source: String,
    losing: Vec<LossTold>,
}

/// As the running manager says; where there is none, what `apply` by itself puts into force.
fn sent(settings: &LinkManagerSettings, config: &Config) -> anyhow::Result<Sent> {
    let status = super::block_on(super::call::ask(&settings.control, "status", Value::Null)).ok();
    let status = status.and_then(|status| serde_json::from_value::<Status>(status).ok());
    if let Some(status) = status.filter(|status| status.interface == config.interface) {
        return Ok(Sent { rate: BitRate(status.shaped_bps), source: status.source, losing: status.losing });
    }
    let rate = farhop_link::plan(config, Vec::new())?.plan.shaped;
    Ok(Sent { rate, source: config.source().to_string(), losing: Vec::new() })
}

/// Classes that have hours, and what they are to have now.
pub(super) fn told(hours: &[HoursTold]) -> String {
    let mut text = String::new();
    if !hours.is_empty() {
        text.push_str("\n\nBy its hours, which `farhop link run` keeps to and `apply` by itself does not:");
        for class in hours {
            let _ = write!(text, "\n  {class}");
        }
    }
    text
}

/// How long between two looks.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn watch(interface: &str) -> anyhow::Result<()> {
    let mut before: Option<(Instant, Vec<LeafCounts>)> = None;
    loop {
        let now = (Instant::now(), in_force(interface)?);
        let past = before.as_ref().map(|(at, leaves)| (now.0.duration_since(*at), leaves.as_slice()));
        say(&counts(interface, &now.1, past))?;
        before = Some(now);
        sleep(LOOK);
    }
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

/// The class of a leaf, and what it is for: 0x70 is LE, and 0x72 the backups within.
fn name(minor: u16) -> (String, String) {
    let place = usize::from(minor >> 4).checked_sub(1);
    let Some(queue) = place.and_then(|place| Queue::ALL.get(place)) else {
        return (format!("{minor:x}"), String::new());
    };
    let kind = usize::from(minor & 0xf).checked_sub(1).and_then(|kind| Patient::BACKGROUND.get(kind));
    (queue.to_string(), kind.map_or_else(|| queue.service().to_string(), Patient::to_string))
}

fn counts(interface: &str, leaves: &[LeafCounts], past: Option<(Duration, &[LeafCounts])>) -> String {
    let mut text = format!(
        "{interface}\n{:<5}  {:<12}  {:>15}  {:>15}  {:>12}  {:>9}  {:>10}  {:>7}  {:>10}",
        "class", "for", "guaranteed", "at most", "rate now", "packets", "bytes", "dropped", "waiting"
    );
    for leaf in leaves {
        let now = past.and_then(|(time, leaves)| {
            let before = leaves.iter().find(|before| before.minor == leaf.minor)?;
            let bits = leaf.bytes.saturating_sub(before.bytes).saturating_mul(8) as f64 / time.as_secs_f64();
            Some(BitRate::kbit((bits / 1e3).round() as u64).to_string())
        });
        let (class, service) = name(leaf.minor);
        let _ = write!(
            text,
            "\n{:<5}  {:<12}  {:>15}  {:>15}  {:>12}  {:>9}  {:>10}  {:>7}  {:>10}",
            class,
            service,
            BitRate(leaf.rate).rounded().to_string(),
            BitRate(leaf.ceiling).rounded().to_string(),
            now.unwrap_or_else(|| "-".into()),
            leaf.packets,
            Bytes(leaf.bytes).to_string(),
            leaf.dropped,
            Bytes(leaf.waiting).to_string(),
        );
    }
    text
}

/// What each class would have.
pub(super) fn table(shaped: &Shaped) -> String {
    let plan = &shaped.plan;
    let mut text = format!(
        "{}: a link of {}, of which {} are sent at; voice waits {} ms at most behind a packet of others\n\n{:<5}  {:<12}  {:<8}  {:>15}  {:>15}",
        shaped.shaping.interface,
        plan.link,
        plan.shaped.rounded(),
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
            "\n{:<5}  {:<12}  {:<8}  {:>15}  {:>15}",
            queued.queue.to_string(),
            queued.queue.service().to_string(),
            queued.queue.phb().to_string(),
            queued.guaranteed.rounded().to_string(),
            queued.ceiling.rounded().to_string(),
        );
    }
    for (kind, queued) in Patient::BACKGROUND.iter().zip(&plan.kinds) {
        let (class, of) = (format!(" {}", queued.queue), kind.to_string());
        let _ = write!(
            text,
            "\n{class:<5}  {of:<12}  {:<8}  {:>15}  {:>15}",
            "",
            queued.guaranteed.rounded().to_string(),
            queued.ceiling.rounded().to_string()
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
        let text = counts("sat0", &[leaf(5_000)], Some((Duration::from_millis(500), &[leaf(2_000)])));
        assert!(text.contains("EF     voice") && text.contains("48 kbit/s"), "{text}");
        assert!(text.contains(" 301.568 kbit/s     1.178 Mbit/s "), "what it never exceeds now: {text}");
    }

    #[test]
    fn classes_that_have_hours_are_named_with_what_they_have_now() {
        use farhop_settings::parse;
        let text = "interface = 'sat0'\nprofile = 'geo-hylas2'\n[[window]]\nhours = '16:50-17:00'\noutside = '5 %'\n";
        let settings: LinkManagerSettings = parse(text, std::path::Path::new("link.toml"), &[]).unwrap();
        let config = super::super::config(&settings).unwrap();
        let at = |minutes: u64| told(&farhop_link::hours(&config, Duration::from_secs(minutes * 60)));
        let line = at(17 * 60);
        assert!(
            line.ends_with("\n  LE (background): 24.32 kbit/s at most now, outside of 16:50-17:00 UTC"),
            "{line}"
        );
        let line = at(16 * 60 + 50);
        assert!(
            line.ends_with("\n  LE (background): 486.4 kbit/s at most now, within 16:50-17:00 UTC"),
            "{line}"
        );
        assert_eq!(told(&[]), "");
    }
}
