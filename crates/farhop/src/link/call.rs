//! `farhop link call`: calls at a running manager.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use farhop_control::Client;
use farhop_diffserv::calls::{CallId, Codec, Hop, Media, rate};
use farhop_link::{CallTold, NewCall, Status};
use farhop_units::{BitRate, format_duration, parse_duration};
use serde_json::{Value, json};

use crate::output::{Usage, say};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Sets bandwidth aside for a call, or says why there is none. The same call again speaks for it.
    New(New),
    /// Speaks for a call, so that it is kept.
    Renew(Named),
    /// Gives a call's bandwidth back.
    Release(Named),
    /// Shows the calls that hold bandwidth.
    List(List),
}

#[derive(Debug, clap::Args)]
pub(super) struct New {
    #[command(flatten)]
    named: Named,
    /// Its codec: G.711, G.722, G.723.1, G.726, G.729, GSM, iLBC, Opus or Opus/24000.
    #[arg(long)]
    codec: Option<Codec>,
    /// How long the speech of a packet is, such as '20 ms'; what is usual for the codec where it is left out.
    #[arg(long, value_name = "TIME", requires = "codec", value_parser = parse_duration)]
    packet_time: Option<Duration>,
    /// What it takes in each direction, such as '24 kbit/s', in place of what follows from the codec.
    #[arg(long)]
    rate: Option<BitRate>,
    /// Where its packets go: an address with a UDP port of either end. May be given more than once.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = farhop_link::media)]
    media: Vec<Media>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// The manager's control socket, as its settings name it.
    socket: PathBuf,
    /// The call's name.
    #[arg(value_parser = farhop_link::call_id)]
    call: CallId,
}

impl New {
    /// What the manager is asked. Whether a codec or a rate has to be told the manager knows: it may have one figure for all calls.
    fn asked(&self) -> anyhow::Result<NewCall> {
        if let (Some(codec), Some(time)) = (self.codec, self.packet_time) {
            rate(codec, time, &Hop::PLAIN).map_err(|error| Usage(error.to_string()))?;
        }
        Ok(NewCall {
            call: self.named.call.to_string(),
            codec: self.codec.map(|codec| codec.to_string()),
            packet_time: self.packet_time.map(format_duration),
            rate: self.rate.map(|rate| rate.to_string()),
            media: self.media.iter().map(Media::to_string).collect(),
        })
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// The manager's control socket, as its settings name it.
    socket: PathBuf,
    /// Prints them as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::New(new) => {
            let (named, asked) = (&new.named, serde_json::to_value(new.asked()?)?);
            let answer = ask(&named.socket, "new_voice_call", asked).await?;
            // The call holds, whatever becomes of this question.
            let status = ask(&named.socket, "status", Value::Null).await.ok();
            let status = status.and_then(|status| serde_json::from_value(status).ok());
            let bits = |field: &str| BitRate(answer[field].as_u64().unwrap_or(0)).in_words();
            let held = format!("calls hold {} of {}", bits("held_bps"), bits("share_bps"));
            let lease = answer["lease_s"].as_u64().unwrap_or(0);
            let (call, rate) = (&named.call, bits("rate_bps"));
            let lacks = status.as_ref().map_or_else(String::new, not_in_force);
            say(&format!("{call}: holds {rate}; {held}; lapses in {lease} s unless renewed{lacks}"))
        }
        Command::Renew(named) => {
            let answer =
                ask(&named.socket, "voice_call_renew", json!({"call": named.call.to_string()})).await?;
            say(&format!("{}: lapses in {} s unless renewed", named.call, answer["lease_s"]))
        }
        Command::Release(named) => {
            ask(&named.socket, "voice_call_release", json!({"call": named.call.to_string()})).await?;
            say(&format!("{}: released", named.call))
        }
        Command::List(List { socket, json }) => {
            let answer = ask(socket, "calls", Value::Null).await?;
            if *json {
                return say(&serde_json::to_string_pretty(&answer)?);
            }
            let status = serde_json::from_value(ask(socket, "status", Value::Null).await?)?;
            say(&text(&status, &serde_json::from_value::<Vec<CallTold>>(answer)?))
        }
    }
}

pub(super) async fn ask(socket: &std::path::Path, command: &str, args: Value) -> anyhow::Result<Value> {
    Ok(Client::connect(socket).await?.call(command, args).await?)
}

/// What goes after the good news where the classes are not there that the call is to go by.
pub(super) fn not_in_force(status: &Status) -> String {
    // What to do about it is nothing that belongs to a call.
    let trouble = status.trouble.as_ref().and_then(|trouble| trouble.split("; ").next());
    trouble.map_or_else(String::new, |trouble| format!("; not in force: {trouble}"))
}

fn text(status: &Status, calls: &[CallTold]) -> String {
    let (held, share) = (BitRate(status.held_bps).in_words(), BitRate(status.share_bps).in_words());
    let hold = match status.calls {
        1 => "1 call holds".to_owned(),
        calls => format!("{calls} calls hold"),
    };
    let mut lines = vec![format!("{}: {hold} {held} of {share}", status.interface)];
    if let Some(trouble) = &status.trouble {
        lines.push(format!("not in force: {trouble}"));
    }
    if let Some(trouble) = status.sip.as_ref().filter(|trouble| !trouble.is_empty()) {
        lines.push(format!("SIP is not heard: {trouble}"));
    }
    if status.sip_ignored > 0 {
        lines.push(format!("{} datagrams at the ports of SIP could not be read", status.sip_ignored));
    }
    if status.sip_unplaced > 0 {
        let calls = status.sip_unplaced;
        lines.push(format!("{calls} calls name hosts in place of addresses, and had no place in EF"));
    }
    if let Some(trouble) = status.follow.as_ref().filter(|trouble| !trouble.is_empty()) {
        lines.push(format!("the link's rate is not followed: {trouble}"));
    }
    lines.extend(status.losing.iter().map(ToString::to_string));
    if let Some(trouble) = &status.early {
        lines.push(format!("drop precedences are not acted on: {trouble}"));
    }
    lines.extend(status.hours.iter().map(ToString::to_string));
    lines.extend(table(calls));
    lines.join("\n")
}

/// Most letters of a name that are shown: `Call-ID`s of SIP are far longer.
const SHOWN: usize = 32;

/// The calls below the names of what is told of each.
fn table(calls: &[CallTold]) -> Vec<String> {
    let mut calls: Vec<&CallTold> = calls.iter().collect();
    calls.sort_by_cached_key(|call| natural(&call.call));
    let row = |[call, codec, time, rate, lapses, media]: [&str; 6]| {
        let line = format!("{call:<SHOWN$}  {codec:<10}  {time:<6}  {rate:<11}  {lapses:<9}  {media}");
        line.trim_end().to_owned()
    };
    let rows = calls.iter().map(|call| {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        let rate = BitRate(call.rate_bps).in_words();
        let (lapses, media) = (format!("{} s", call.lapses_in_s), call.media.join(" "));
        let (codec, time) = (or_none(&call.codec), or_none(&call.packet_time));
        row([
            &shortened(&call.call),
            &codec,
            &time,
            &rate,
            &lapses,
            if media.is_empty() { "-" } else { &media },
        ])
    });
    let head = row(["call", "codec", "packet", "rate", "lapses in", "media"]);
    let head = (!calls.is_empty()).then_some(head);
    head.into_iter().chain(rows).collect()
}

fn shortened(name: &str) -> String {
    let beginning = || name.chars().take(SHOWN - 1).chain(['…']).collect();
    if name.chars().count() > SHOWN { beginning() } else { name.to_owned() }
}

/// A key by which `a2` comes before `a10`: numbers by how long they are, and then as text.
fn natural(name: &str) -> Vec<(usize, String)> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    for letter in name.chars() {
        let is_digit = letter.is_ascii_digit();
        match parts.last_mut() {
            Some((digits, text)) if is_digit && *digits > 0 => {
                *digits += 1;
                text.push(letter);
            }
            _ => parts.push((usize::from(is_digit), letter.into())),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_link::HoursTold;

    #[test]
    fn the_list_says_what_is_held_and_what_is_wrong() {
        let status = Status {
            interface: "sat0".into(),
            link_bps: 512_000,
            shaped_bps: 486_400,
            source: "settings".into(),
            in_force: false,
            trouble: Some("there is no network device 'sat0' here".into()),
            share_bps: 301_000,
            held_bps: 24_000,
            calls: 1,
            sip: Some(String::new()),
            sip_ignored: 3,
            sip_unplaced: 2,
            follow: None,
            hours: vec![HoursTold {
                class: "LE".into(),
                service: "background".into(),
                hours: "22:00-06:00".into(),
                is_within: false,
                most_bps: 24_326,
            }],
            losing: Vec::new(),
            early: None,
        };
        let call = CallTold {
            call: "a1".into(),
            rate_bps: 24_000,
            codec: Some("G.729".into()),
            packet_time: Some("20 ms".into()),
            media: Vec::new(),
            lapses_in_s: 42,
        };
        assert_eq!(
            text(&status, &[call]),
            "sat0: 1 call holds 24 kbit/s of 301 kbit/s\nnot in force: there is no network device 'sat0' here\n\
             3 datagrams at the ports of SIP could not be read\n\
             2 calls name hosts in place of addresses, and had no place in EF\n\
             LE (background): 24.3 kbit/s at most now, outside of 22:00-06:00 UTC\n\
             call                              codec       packet  rate         lapses in  media\n\
             a1                                G.729       20 ms   24 kbit/s    42 s       -"
        );
        let gone = "; not in force: there is no network device 'sat0' here";
        assert_eq!(not_in_force(&status), gone);
        assert_eq!(not_in_force(&Status { trouble: None, ..status }), "");
    }

    #[test]
    fn calls_are_listed_as_people_count_with_where_their_packets_go() {
        let call = |name: &str| CallTold {
            call: name.into(),
            rate_bps: 30_000,
            codec: None,
            packet_time: None,
            media: vec!["10.0.0.5:16384".into(), "[2001:db8::5]:4000".into()],
            lapses_in_s: 300,
        };
        let long = format!("sip/{}@pbx.example", "84b4c76e".repeat(4));
        let lines = table(&["a10", "a2", "b", "a1b", &long].map(call));
        let names: Vec<_> = lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["call", "a1b", "a2", "a10", "b", "sip/84b4c76e84b4c76e84b4c76e84b…"]);
        assert!(
            lines[1].ends_with("30 kbit/s    300 s      10.0.0.5:16384 [2001:db8::5]:4000"),
            "{}",
            lines[1]
        );
        assert!(table(&[]).is_empty());
    }

    #[test]
    fn what_cannot_be_asked_for_is_a_fault_of_the_command_line() {
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(flatten)]
            new: New,
        }
        let asked = |more: &[&str]| {
            let line = ["new", "link.sock", "a1"].iter().chain(more);
            <Line as clap::Parser>::try_parse_from(line).map_err(|error| error.to_string())
        };
        for (more, word) in [
            (&["--codec", "G.7"][..], "no codec known here"),
            (&["--rate", "8"], "not a bit rate"),
            (&["--codec", "G.729", "--packet-time", "20"], "not a duration"),
            (&["--packet-time", "20 ms"], "--codec"),
            (&["--media", "10.0.0.1"], "no address with a port"),
        ] {
            let line = asked(more).unwrap_err();
            assert!(line.contains(word), "{line}");
        }
        let whole = asked(&["--codec", "G.729", "--packet-time", "25 ms"]).unwrap().new.asked().unwrap_err();
        assert!(whole.is::<Usage>() && whole.to_string().contains("whole frames"), "{whole}");
        let good = asked(&["--codec", "pcma", "--packet-time", "30 ms", "--rate", "90.5 kbit/s"]).unwrap();
        let good = serde_json::to_value(good.new.asked().unwrap()).unwrap();
        let told = json!({"call": "a1", "codec": "G.711", "packet_time": "30 ms", "rate": "90.5 kbit/s"});
        assert_eq!(good, told);
        assert!(asked(&[]).is_ok(), "the manager may have a figure for all calls");
    }
}
