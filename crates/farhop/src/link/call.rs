//! `farhop link call`: calls at a running manager.

use std::path::PathBuf;

use clap::Subcommand;
use farhop_control::Client;
use farhop_link::{CallTold, NewCall, Status};
use farhop_units::BitRate;
use serde_json::{Value, json};

use crate::output::say;

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
    codec: Option<String>,
    /// How long the speech of a packet is, such as '20 ms'; what is usual for the codec where it is left out.
    #[arg(long, value_name = "TIME")]
    packet_time: Option<String>,
    /// What it takes in each direction, such as '24 kbit/s', in place of what follows from the codec.
    #[arg(long)]
    rate: Option<String>,
    /// Where its packets go: an address with a UDP port of either end. May be given more than once.
    #[arg(long, value_name = "ADDRESS:PORT")]
    media: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// The manager's control socket, as its settings name it.
    socket: PathBuf,
    /// The call's name.
    call: String,
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
            let New { named, codec, packet_time, rate, media } = new;
            let (codec, packet_time, rate) = (codec.clone(), packet_time.clone(), rate.clone());
            let asked = NewCall { call: named.call.clone(), codec, packet_time, rate, media: media.clone() };
            let answer = ask(&named.socket, "new_voice_call", serde_json::to_value(asked)?).await?;
            let bits = |field: &str| BitRate(answer[field].as_u64().unwrap_or(0)).rounded();
            let held = format!("calls hold {} of {}", bits("held_bps"), bits("share_bps"));
            let lease = answer["lease_s"].as_u64().unwrap_or(0);
            say(&format!(
                "{}: holds {}; {held}; lapses in {lease} s unless renewed",
                named.call,
                bits("rate_bps")
            ))
        }
        Command::Renew(named) => {
            let answer = ask(&named.socket, "voice_call_renew", json!({"call": named.call})).await?;
            say(&format!("{}: lapses in {} s unless renewed", named.call, answer["lease_s"]))
        }
        Command::Release(named) => {
            ask(&named.socket, "voice_call_release", json!({"call": named.call})).await?;
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

fn text(status: &Status, calls: &[CallTold]) -> String {
    let (held, share) = (BitRate(status.held_bps).rounded(), BitRate(status.share_bps).rounded());
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
    lines.extend(calls.iter().map(|call| {
        let codec = call.codec.as_deref().unwrap_or("-");
        let time = call.packet_time.as_deref().unwrap_or("-");
        let rate = BitRate(call.rate_bps).rounded().to_string();
        format!("{:<24}  {codec:<10}  {time:<6}  {rate:<12}  lapses in {} s", call.call, call.lapses_in_s)
    }));
    lines.join("\n")
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
             LE (background): 24.32 kbit/s at most now, outside of 22:00-06:00 UTC\n\
             a1                        G.729       20 ms   24 kbit/s     lapses in 42 s"
        );
    }
}
