//! `farhop link classify`: which class a flow is of, and why.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use farhop_diffserv::classify::{Flow, Host, Protocol, Seen, Verdict, classify, standard};
use farhop_diffserv::{Codepoint, Service};
use farhop_link::{CallTold, Left, Status, in_kernel};
use farhop_remote::hear;
use farhop_settings::{LinkManagerSettings, load};
use farhop_units::{Bytes, parse_duration};
use serde_json::{Value, json};

use super::config::rules;
use super::{block_on, call};
use crate::output::{Usage, say};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// tcp or udp.
    #[arg(value_parser = protocol)]
    protocol: Protocol,
    /// Who began it: an address with a port.
    #[arg(value_parser = address)]
    from: SocketAddr,
    /// Where it leads: an address with a port.
    #[arg(value_parser = address)]
    to: SocketAddr,
    /// The settings file whose rules are asked, and whose manager for its calls; the standard rules alone where it is left out.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What its packets are marked with, such as EF or AF41.
    #[arg(long)]
    dscp: Option<Codepoint>,
    /// The name in its TLS hello.
    #[arg(long, value_name = "HOST")]
    sni: Option<String>,
    /// A protocol that its TLS hello offers. May be given more than once.
    #[arg(long)]
    alpn: Vec<String>,
    /// A name that a DNS answer had for its destination. May be given more than once.
    #[arg(long, value_name = "HOST")]
    dns: Vec<String>,
    /// The first bytes of who began it, as text.
    #[arg(long, value_name = "TEXT")]
    first_bytes: Option<String>,
    /// The same in hexadecimal; of udp its first datagrams, each by itself. The hello of TLS or QUIC is read where it is whole.
    #[arg(long, value_name = "HEX", conflicts_with = "first_bytes", value_parser = hexadecimal)]
    first_bytes_hex: Vec<FirstBytes>,
    /// Packets seen so far, in both directions.
    #[arg(long, requires_all = ["bytes", "time"])]
    packets: Option<u64>,
    /// Their bytes, such as '8 MB'.
    #[arg(long, requires_all = ["packets", "time"])]
    bytes: Option<Bytes>,
    /// The time from the first to the last of them, such as '9 s'.
    #[arg(long, requires_all = ["packets", "bytes"], value_parser = time)]
    time: Option<Duration>,
    /// Prints the verdict as JSON.
    #[arg(long)]
    json: bool,
}

/// Bytes of a packet of IP (RFC 791 §3.1).
const LONGEST: u64 = 65_535;

/// Bytes of a flow; a vector of its own would be a list of arguments.
#[derive(Debug, Clone)]
struct FirstBytes(Vec<u8>);

fn protocol(text: &str) -> Result<Protocol, String> {
    text.parse().map_err(|()| "write tcp or udp".into())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write it like 10.0.0.5:40000 or [2001:db8::5]:443".into())
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn hexadecimal(text: &str) -> Result<FirstBytes, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes =
        digits.chunks(2).map(|pair| byte(pair).filter(|_| pair.len() == 2 && pair[0] != b'+')).collect();
    Option::map(bytes, FirstBytes).ok_or_else(|| "write pairs of hexadecimal digits, such as 160301".into())
}

impl Arguments {
    fn flow(&self) -> anyhow::Result<Flow> {
        let (from, to) = (self.from, self.to);
        if from.is_ipv4() != to.is_ipv4() {
            bail!(Usage(format!("a flow is of IPv4 or of IPv6, and {from} and {to} are of both")));
        }
        let host =
            |text: &String| text.parse::<Host>().map_err(|error| anyhow::anyhow!("'{text}' is {error}"));
        let text = self.first_bytes.iter().map(|text| text.clone().into_bytes());
        let words: Vec<_> = text.chain(self.first_bytes_hex.iter().map(|bytes| bytes.0.clone())).collect();
        let mut flow = hear(Flow::new(self.protocol, from, to), &words);
        flow.dscp = self.dscp;
        if let Some(name) = &self.sni {
            flow.sni = Some(host(name)?);
        }
        if !self.alpn.is_empty() {
            flow.alpn.clone_from(&self.alpn);
        }
        flow.names = self.dns.iter().map(host).collect::<Result<_, _>>()?;
        flow.seen = None;
        if let (Some(packets), Some(bytes), Some(over)) = (self.packets, self.bytes, self.time) {
            if bytes.0.div_ceil(LONGEST) > packets {
                bail!(Usage(format!(
                    "{packets} packets cannot carry {bytes}: one of IP has 65,535 bytes at the most"
                )));
            }
            flow.seen = Some(Seen { packets, bytes, over });
        }
        Ok(flow)
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings = arguments.config.as_ref().map(|file| load::<LinkManagerSettings>(Some(file), &[]));
    let settings = settings.transpose()?;
    let rules = settings.as_ref().map_or_else(standard, rules);
    let flow = arguments.flow()?;
    let held = Held::of(&flow, settings.as_ref());
    let verdict = classify(&rules, &flow);
    let (given, left) = in_kernel(&rules);
    let at_device = classify(&given, &flow);
    let by_call = if let Held::By { call, .. } = &held { Some(call) } else { None };
    if arguments.json {
        let queue = verdict.service.queue();
        let service = by_call.map_or(at_device.service, |_| Service::Voice);
        let passed: Vec<_> =
            verdict.passed.iter().map(|(rule, why)| json!({"rule": rule, "why_not": why})).collect();
        return say(&serde_json::to_string_pretty(&json!({
            "service": verdict.service.as_str(), "class": queue.to_string(), "dscp": verdict.phb.codepoint().number(),
            "rule": verdict.by.as_ref().map(|(_, name)| name), "because": verdict.because, "passed": passed,
            "at_device": {
                "service": service.as_str(), "class": service.queue().to_string(), "call": by_call,
                "calls_known": !matches!(held, Held::NotKnown(_)),
                "rule": at_device.by.as_ref().map(|(_, name)| name).filter(|_| by_call.is_none()),
            },
        }))?);
    }
    say(&held.before(&format!("{}\n{}", text(&verdict), enforced(&verdict, &at_device, &left))))
}

/// Whether the media of a call have the flow, which go before all rules.
#[derive(Debug, PartialEq, Eq)]
enum Held {
    /// This call has one of its addresses.
    By {
        /// Its name.
        call: String,
        /// What goes after it where the classes are not in force.
        lacks: String,
    },
    /// None has.
    ByNone,
    /// Nobody has said so: this is why.
    NotKnown(String),
}

impl Held {
    /// As the manager of these settings says. Media are of UDP.
    fn of(flow: &Flow, settings: Option<&LinkManagerSettings>) -> Held {
        if flow.protocol != Protocol::Udp {
            return Held::ByNone;
        }
        let Some(settings) = settings else {
            return Held::NotKnown("--config names the settings whose manager is asked".into());
        };
        match block_on(calls(settings)) {
            Ok((status, calls)) if status.interface == settings.interface => {
                Held::among(flow, &calls, &call::not_in_force(&status))
            }
            Ok((status, _)) => Held::NotKnown(format!("the manager that answers has {}", status.interface)),
            Err(_) => Held::NotKnown(format!("no manager answers at {}", settings.control.display())),
        }
    }

    fn among(flow: &Flow, calls: &[CallTold], lacks: &str) -> Held {
        let is_its = |media: &String| {
            media.parse::<SocketAddr>().is_ok_and(|media| media == flow.from || media == flow.to)
        };
        let call = calls.iter().find(|call| call.media.iter().any(is_its));
        call.map_or(Held::ByNone, |call| Held::By { call: call.call.clone(), lacks: lacks.into() })
    }

    /// The answer, where it is this by the rules.
    fn before(&self, rules: &str) -> String {
        match self {
            Held::By { call, lacks } => {
                format!(
                    "voice: EF, by call '{call}', which goes before all rules{lacks}\n\nwithout the call it would be\n{rules}"
                )
            }
            Held::ByNone => rules.into(),
            Held::NotKnown(why) => {
                format!("{rules}\n  but a call may hold one of its addresses, and then it is voice: {why}")
            }
        }
    }
}

async fn calls(settings: &LinkManagerSettings) -> anyhow::Result<(Status, Vec<CallTold>)> {
    let status = call::ask(&settings.control, "status", Value::Null).await?;
    let calls = call::ask(&settings.control, "calls", Value::Null).await?;
    Ok((serde_json::from_value(status)?, serde_json::from_value(calls)?))
}

fn text(verdict: &Verdict) -> String {
    let queue = verdict.service.queue();
    let mut lines = vec![format!("{}: {queue}, marked {}", verdict.service, verdict.phb)];
    match &verdict.by {
        Some((place, name)) => {
            let because = if verdict.because.is_empty() {
                "it holds for all".into()
            } else {
                verdict.because.join("; ")
            };
            lines.push(format!("by rule {} '{name}': {because}", place + 1));
        }
        None => lines.push("since no rule holds".into()),
    }
    lines.extend(verdict.passed.iter().map(|(rule, why)| format!("  not '{rule}': {why}")));
    lines.join("\n")
}

/// Where the verdict holds, and what holds where it does not.
fn enforced(verdict: &Verdict, at_device: &Verdict, left: &[Left]) -> String {
    let name = |verdict: &Verdict| verdict.by.as_ref().map(|(_, name)| name.clone());
    let by = name(verdict);
    let Some(left) = left.iter().find(|left| Some(&left.rule) == by.as_ref()) else {
        return "at the device: so it is".into();
    };
    let queue = at_device.service.queue();
    let instead =
        name(at_device).map_or("since no rule holds there".into(), |rule| format!("by rule '{rule}'"));
    format!(
        "at the device: {}, {queue}, {instead}; the kernel is not given '{}', which goes by {}",
        at_device.service, left.rule, left.why
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_the_kernel_is_not_given_is_said_not_to_hold_at_the_device() {
        let mut flow =
            Flow::new(Protocol::Tcp, "10.0.0.2:40000".parse().unwrap(), "192.0.2.1:443".parse().unwrap());
        let said = |flow: &Flow| {
            let (given, left) = in_kernel(&standard());
            enforced(&classify(&standard(), flow), &classify(&given, flow), &left)
        };
        assert_eq!(said(&flow), "at the device: so it is");
        flow.first_bytes = b"\x13BitTorrent protocol".to_vec();
        let expected = "at the device: web, AF3, by rule 'pages'; the kernel is not given 'peer to peer', which goes by first bytes";
        assert_eq!(said(&flow), expected);
        flow.to.set_port(4711);
        assert!(
            said(&flow).starts_with("at the device: other, DE, since no rule holds there; "),
            "{}",
            said(&flow)
        );
    }

    #[test]
    fn what_is_said_of_the_device_is_true_of_rules_with_names_of_standard_ones() {
        // The kernel is given this one, and not the standard one of its name.
        let text = "interface = 'sat0'\nrate = '1 Mbit/s'\n[[rule]]\nname = 'updates'\nservice = 'bulk'\nports = [443]\n";
        let settings: LinkManagerSettings =
            farhop_settings::parse(text, std::path::Path::new("link.toml"), &[]).unwrap();
        let rules = rules(&settings);
        let (given, left) = in_kernel(&rules);
        let flow =
            Flow::new(Protocol::Tcp, "10.0.0.2:40000".parse().unwrap(), "192.0.2.1:443".parse().unwrap());
        let verdict = classify(&rules, &flow);
        assert_eq!(verdict.by, Some((0, "updates".into())));
        assert_eq!(enforced(&verdict, &classify(&given, &flow), &left), "at the device: so it is");
    }

    #[test]
    fn a_verdict_names_the_rule_what_held_and_what_did_not() {
        let flow =
            Flow::new(Protocol::Udp, "10.0.0.2:40000".parse().unwrap(), "192.0.2.1:53".parse().unwrap());
        let said = text(&classify(&standard(), &flow));
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines[0], "interactive: AF4, marked AF41");
        assert_eq!(lines[1], "by rule 9 'names and time': port 53 is in 53");
        assert!(lines.contains(&"  not 'updates': no name of its destination is known"), "{said}");
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn media_of_a_call_are_voice_whatever_the_rules_say() {
        let flow =
            Flow::new(Protocol::Udp, "192.0.2.1:5004".parse().unwrap(), "10.0.0.5:16384".parse().unwrap());
        let call = |media: &str| CallTold {
            call: "c1".into(),
            rate_bps: 24_000,
            codec: None,
            packet_time: None,
            media: vec![media.into()],
            lapses_in_s: 9,
        };
        let held = Held::among(&flow, &[call("10.0.0.9:9"), call("10.0.0.5:16384")], "");
        let said = held.before("web: AF3");
        assert_eq!(said.lines().next(), Some("voice: EF, by call 'c1', which goes before all rules"));
        assert!(said.ends_with("\nwithout the call it would be\nweb: AF3"), "{said}");
        assert_eq!(Held::among(&flow, &[call("10.0.0.5:16386")], "").before("rules"), "rules");
        let said = Held::of(&flow, None).before("at the device: so it is");
        assert!(said.starts_with("at the device: so it is\n  but a call may hold one of its"), "{said}");
        let text = "interface = 'sat0'\nrate = '1 Mbit/s'\ncontrol = '/nowhere/link.sock'\n";
        let settings = farhop_settings::parse(text, std::path::Path::new("link.toml"), &[]).unwrap();
        let nobody = Held::NotKnown("no manager answers at /nowhere/link.sock".into());
        assert_eq!(Held::of(&flow, Some(&settings)), nobody);
        let pages = Flow { protocol: Protocol::Tcp, ..flow };
        assert_eq!(Held::of(&pages, None), Held::ByNone, "media are of UDP");
    }

    #[test]
    fn what_is_no_flow_is_refused() {
        let of = |line: &[&str]| <Line as clap::Parser>::try_parse_from(["classify"].iter().chain(line));
        let line = of(&["tcp", "10.0.0.5", "1.1.1.1:443"]).err().unwrap().to_string();
        assert!(line.contains("write it like 10.0.0.5:40000 or [2001:db8::5]:443"), "{line}");
        let two = of(&["tcp", "10.0.0.5:4000", "[2001:db8::5]:443"]).unwrap().arguments.flow().unwrap_err();
        assert!(two.is::<Usage>() && two.to_string().contains("are of both"), "{two}");
        let seen = |packets: &str| {
            let ends = ["tcp", "10.0.0.5:4000", "1.1.1.1:443", "--time", "9 s", "--bytes", "12 MB"];
            of(&[&ends[..], &["--packets", packets]].concat()).unwrap().arguments.flow()
        };
        assert!(seen("4000").is_ok() && seen("184").is_ok());
        for packets in ["183", "0"] {
            let line = seen(packets).unwrap_err().to_string();
            assert_eq!(
                line,
                format!("{packets} packets cannot carry 12 MB: one of IP has 65,535 bytes at the most")
            );
        }
    }

    #[test]
    fn the_hello_in_what_is_given_is_read() {
        let flow = |more: &[&str]| {
            let line = ["classify", "udp", "10.0.0.2:40000", "192.0.2.1:443"].iter().chain(more);
            <Line as clap::Parser>::parse_from(line).arguments.flow().unwrap()
        };
        // Two datagrams with halves of a hello for example.com, each after its length.
        let corpus = include_bytes!("../../../../fuzz/corpus/front_initials/two-datagrams");
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let datagrams = [hex(&corpus[2..1202]), hex(&corpus[1204..])];
        let given = ["--first-bytes-hex", datagrams[0].as_str(), "--first-bytes-hex", datagrams[1].as_str()];
        let shows = |flow: Flow| (flow.sni.map(|it| it.to_string()), flow.alpn);
        assert_eq!(shows(flow(&given)), (Some("example.com".into()), vec!["alpn".into()]));
        assert_eq!(shows(flow(&given[..2])), (None, vec![]), "it is not whole");
        let told = [&given[..], &["--sni", "a.example"]].concat();
        assert_eq!(flow(&told).sni.unwrap().to_string(), "a.example", "what is told goes before");
    }

    #[test]
    fn first_bytes_are_pairs_of_digits() {
        assert_eq!(hexadecimal("16 0301").unwrap().0, [22, 3, 1]);
        for text in ["1", "+1", "zz", "160"] {
            assert!(hexadecimal(text).is_err(), "{text}");
        }
    }
}
