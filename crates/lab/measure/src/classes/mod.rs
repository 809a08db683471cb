//! The classifier on the traffic of real programs: its standard rules, which stood before any of this was captured, against what
//! each program does. Verdicts are those that count: in the carrier the remote's own, from each flow's first packet on, and at a device
//! those of the rules that the kernel is given. What flows are, ports and programs say. What they are taken for is told program by
//! program; nothing here teaches them.

mod capture;
mod programs;

use std::collections::BTreeMap;

use farhop_diffserv::Service;
use farhop_diffserv::classify::{Flow, Protocol, Rule, classify, standard};
use farhop_htotp::frame::Class;
use farhop_remote::Classifier;
use farhop_settings::LocalSettings;

use crate::calls::phones::SPEECH;
use crate::group::Context;
use crate::{MeasureError, Row, Verdict};
use capture::{Heard, Passed};
use programs::{Case, Stage};

/// The name servers' port: what every program asks first.
const NAMES: u16 = 53;

/// How many flows of which kind were taken for which.
type Table = BTreeMap<(Service, Service), u64>;

/// What takes flows for something.
struct Judges {
    carrier: Classifier,
    kernel: Vec<Rule>,
}

/// What flows are, and what they are taken for, inside the carrier and at the device.
#[derive(Default)]
struct Tables {
    carrier: Table,
    kernel: Table,
}

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let stage = Stage::up(context)?;
    let judges = Judges::new()?;
    let (mut rows, mut all) = (Vec::new(), Tables::default());
    for case in Case::ALL {
        context.interrupt.check()?;
        eprintln!("{}", case.what());
        match stage.heard(case, context) {
            Ok(heard) => {
                let judged = judges.judged(case, &heard);
                rows.push(told(case, &judged));
                all.add(judged);
            }
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => rows.push(Row::unmeasured(case.what(), &error)),
        }
    }
    rows.extend(confusion("in the carrier", &all.carrier));
    rows.extend(confusion("at the device", &all.kernel));
    Ok(rows)
}

impl Judges {
    fn new() -> Result<Judges, MeasureError> {
        let settings = farhop_settings::parse::<LocalSettings>("", "".as_ref(), &[]);
        let settings = settings.map_err(|error| MeasureError::Unexpected(error.to_string()))?;
        let (kernel, _) = farhop_link::in_kernel(&standard());
        Ok(Judges { carrier: Classifier::new(settings.remote), kernel })
    }

    /// What the flows of a case are, and what they are taken for.
    fn judged(&self, case: Case, heard: &Heard) -> Tables {
        let mut tables = Tables::default();
        for flow in heard.flows.iter().filter(|flow| !flow.course.is_empty()) {
            let (from, to) = flow.ends;
            let is = is(case, flow);
            // Before all rules both have the media of calls that they heard of.
            let is_announced =
                flow.protocol == Protocol::Udp && (heard.media.contains(&to) || heard.media.contains(&from));
            let (carrier, kernel) = match is_announced {
                true => (Service::Voice, Service::Voice),
                false => {
                    let seen = Flow::new(flow.protocol, from, to);
                    (self.carried(flow), classify(&self.kernel, &seen).service)
                }
            };
            *tables.carrier.entry((is, carrier)).or_default() += 1;
            *tables.kernel.entry((is, kernel)).or_default() += 1;
        }
        tables
    }

    /// What most of its bytes crossed as, each in the class that the flow had by then.
    fn carried(&self, flow: &Passed) -> Service {
        let begins = flow.course.first().map(|step| (step.at, step.said.as_deref().unwrap_or_default()));
        let (began, first) = begins.unwrap_or_default();
        let mut observed = self.carrier.begins(began, flow.protocol, flow.ends, first);
        let mut bytes: BTreeMap<Class, usize> = BTreeMap::new();
        for step in &flow.course {
            match &step.said {
                Some(said) => observed.said(step.at, said),
                None => observed.passed(step.at, step.bytes),
            }
            *bytes.entry(observed.class()).or_default() += step.bytes;
        }
        let most = bytes.into_iter().max_by_key(|(_, bytes)| *bytes);
        most.map_or(Service::Other, |(class, _)| service(class))
    }
}

impl Tables {
    fn add(&mut self, other: Tables) {
        let pairs = [(&mut self.carrier, other.carrier), (&mut self.kernel, other.kernel)];
        for (own, other) in pairs {
            other.into_iter().for_each(|(key, count)| *own.entry(key).or_default() += count);
        }
    }
}

/// What a flow is, by what its program does and by its ports: nothing that a classifier has said.
fn is(case: Case, flow: &Passed) -> Service {
    let (from, to) = flow.ends;
    let speaks = |port| (SPEECH.0..=SPEECH.1).contains(&port);
    match flow.protocol {
        _ if to.port() == NAMES => Service::Interactive,
        Protocol::Udp if case == Case::Sipp && (speaks(to.port()) || speaks(from.port())) => Service::Voice,
        _ => case.service(),
    }
}

/// What a class of the carrier is for.
fn service(class: Class) -> Service {
    match class {
        Class::Expedited => Service::Voice,
        Class::Interactive => Service::Interactive,
        Class::Web => Service::Web,
        Class::Streaming => Service::Streaming,
        Class::Bulk => Service::Bulk,
        Class::Background | Class::Backups | Class::PeerToPeer => Service::Background,
    }
}

/// One line for a program: what it is, and what it was taken for.
fn told(case: Case, tables: &Tables) -> Row {
    let own: u64 = tables.carrier.iter().filter(|((is, _), _)| case.is_of(*is)).map(|(_, count)| count).sum();
    let of = |table: &Table| {
        words(table.iter().map(|((is, taken), count)| {
            let right = if is == taken { String::new() } else { format!(" (is {is})") };
            format!("{count} {taken}{right}")
        }))
    };
    let measured = format!("carrier: {}; device: {}", of(&tables.carrier), of(&tables.kernel));
    Row {
        what: case.what().into(),
        measured: if own == 0 { "none of its flows was seen".into() } else { measured },
        bound: format!("{}, told", case.service()),
        verdict: if own == 0 { Verdict::Miss } else { Verdict::Told },
    }
}

/// The table of all programs together: a line for each kind.
fn confusion(place: &str, table: &Table) -> Vec<Row> {
    let of = |is: Service| table.iter().filter(move |((kind, _), _)| *kind == is);
    let lines = Service::ALL.into_iter().filter(|is| of(*is).next().is_some()).map(|is| {
        let all: u64 = of(is).map(|(_, count)| count).sum();
        let right = table.get(&(is, is)).copied().unwrap_or(0);
        Row {
            what: format!("confusion {place}: {all} flows that are {is}"),
            measured: words(of(is).map(|((_, taken), count)| format!("{taken} {count}"))),
            bound: format!("{right} of {all} right, told"),
            verdict: Verdict::Told,
        }
    });
    lines.collect()
}

fn words(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::Step;
    use std::time::Duration;

    /// A flow whose client says this, and whose server so many packets of so many bytes, 2 ms apart.
    fn flow(protocol: Protocol, port: u16, said: &[u8], packets: u64, bytes: usize) -> Passed {
        let ends = ("10.0.0.1:4000".parse().unwrap(), format!("10.0.0.2:{port}").parse().unwrap());
        let first = Step { at: Duration::ZERO, bytes: said.len(), said: Some(said.to_vec()) };
        let answers = (0..packets).map(|at| Step { at: Duration::from_millis(2 * at), bytes, said: None });
        Passed::of(protocol, ends, std::iter::once(first).chain(answers).collect())
    }

    fn judged(case: Case, flows: Vec<Passed>, media: &[&str]) -> Tables {
        let media = media.iter().map(|at| at.parse().unwrap()).collect();
        Judges::new().unwrap().judged(case, &Heard { flows, media })
    }

    #[test]
    fn the_tables_have_what_is_beside_what_it_was_taken_for_here_and_there() {
        let flows = vec![
            flow(Protocol::Udp, 53, b"?", 1, 100),
            flow(Protocol::Tcp, 80, b"GET / HTTP/1.1\r\n", 15, 1_448),
            flow(Protocol::Tcp, 80, b"GET / HTTP/1.1\r\n", 20_000, 1_448),
            flow(Protocol::Tcp, 51_413, b"\x13BitTorrent protocol\0\0", 100, 1_448),
        ];
        let tables = judged(Case::CurlPage, flows, &[]);
        use Service::{Background, Bulk, Interactive, Other, Web};
        let carrier =
            [((Interactive, Interactive), 1), ((Web, Web), 1), ((Web, Bulk), 1), ((Web, Background), 1)];
        assert_eq!(tables.carrier, Table::from(carrier));
        // Which looks at ports alone.
        let kernel = [((Interactive, Interactive), 1), ((Web, Web), 2), ((Web, Other), 1)];
        assert_eq!(tables.kernel, Table::from(kernel));
        let row = told(Case::CurlPage, &tables);
        assert_eq!(
            (row.measured.as_str(), row.verdict),
            (
                "carrier: 1 interactive, 1 web, 1 bulk (is web), 1 background (is web); device: 1 interactive, 2 web, 1 other (is web)",
                Verdict::Told
            )
        );
        let lines: Vec<_> = confusion("here", &tables.kernel).into_iter().map(|row| row.measured).collect();
        assert_eq!(lines, ["interactive 1", "web 2, other 1"]);
        assert_eq!(told(Case::CurlPage, &Tables::default()).verdict, Verdict::Miss);
    }

    #[test]
    fn speech_is_known_by_its_port_and_is_voice_where_sip_has_announced_it() {
        let speech =
            |port| flow(Protocol::Udp, port, &[0x80, 18, 0, 1, 0, 0, 0, 160, 1, 2, 3, 4, 7, 7], 100, 32);
        let flows = vec![
            speech(20_000),
            speech(20_002),
            flow(Protocol::Udp, 5060, b"INVITE sip:b@c SIP/2.0", 1, 400),
        ];
        let tables = judged(Case::Sipp, flows, &["10.0.0.2:20000"]);
        use Service::{Interactive, Other, Streaming, Voice};
        // A stream that nobody announced is speech all the same, and missed.
        assert_eq!(
            tables.carrier,
            Table::from([((Voice, Voice), 1), ((Voice, Streaming), 1), ((Interactive, Interactive), 1)])
        );
        assert_eq!(
            tables.kernel,
            Table::from([((Voice, Voice), 1), ((Voice, Other), 1), ((Interactive, Interactive), 1)])
        );
    }
}
