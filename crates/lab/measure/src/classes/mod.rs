//! The classifier on the traffic of real programs: its standard rules, which stood before any of this was captured, against what
//! each program does. What they take it for is told program by program; nothing here teaches them.

mod capture;
mod programs;

use std::collections::BTreeMap;

use farhop_diffserv::Service;
use farhop_diffserv::classify::{Flow, Protocol, classify, standard};

use crate::group::Context;
use crate::{MeasureError, Row, Verdict};
use capture::Heard;
use programs::{Case, Stage};

/// The name servers' port: what every program asks first.
const NAMES: u16 = 53;

/// How many flows of which kind were taken for which.
type Table = BTreeMap<(Service, Service), u64>;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let stage = Stage::up(context)?;
    let (mut rows, mut table) = (Vec::new(), Table::new());
    for case in Case::ALL {
        context.interrupt.check()?;
        eprintln!("{}", case.what());
        match stage.heard(case, context) {
            Ok(heard) => {
                let judged = judged(case, &heard);
                rows.push(told(case, &judged));
                for (key, count) in judged {
                    *table.entry(key).or_default() += count;
                }
            }
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => rows.push(Row::unmeasured(case.what(), &error)),
        }
    }
    rows.extend(confusion(&table));
    Ok(rows)
}

/// What the flows of a case are, and what the rules take them for.
fn judged(case: Case, heard: &Heard) -> Table {
    let rules = standard();
    let mut table = Table::new();
    for flow in heard.flows.iter().filter(|flow| flow.seen.is_some()) {
        let is_speech = |flow: &Flow| {
            flow.protocol == Protocol::Udp
                && (heard.media.contains(&flow.to) || heard.media.contains(&flow.from))
        };
        let is = match (flow.to.port(), is_speech(flow)) {
            (NAMES, _) => Service::Interactive,
            (_, true) => Service::Voice,
            _ => case.service(),
        };
        // Before all rules the link manager has the media of calls that it heard of.
        let taken_for = if is_speech(flow) { Service::Voice } else { classify(&rules, flow).service };
        *table.entry((is, taken_for)).or_default() += 1;
    }
    table
}

/// One line for a program: what it is, and what it was taken for.
fn told(case: Case, table: &Table) -> Row {
    let own: u64 = table.iter().filter(|((is, _), _)| case.is_of(*is)).map(|(_, count)| count).sum();
    let measured = words(table.iter().map(|((is, taken), count)| {
        let right = if is == taken { String::new() } else { format!(" (is {is})") };
        format!("{count} {taken}{right}")
    }));
    Row {
        what: case.what().into(),
        measured: if own == 0 { "none of its flows was seen".into() } else { measured },
        bound: format!("{}, told", case.service()),
        verdict: if own == 0 { Verdict::Miss } else { Verdict::Told },
    }
}

/// The table of all programs together: a line for each kind.
fn confusion(table: &Table) -> Vec<Row> {
    let of = |is: Service| table.iter().filter(move |((kind, _), _)| *kind == is);
    let lines = Service::ALL.into_iter().filter(|is| of(*is).next().is_some()).map(|is| {
        let all: u64 = of(is).map(|(_, count)| count).sum();
        let right = table.get(&(is, is)).copied().unwrap_or(0);
        Row {
            what: format!("confusion: {all} flows that are {is}"),
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
    use farhop_diffserv::classify::Seen;
    use farhop_units::Bytes;
    use std::time::Duration;

    fn flow(protocol: Protocol, port: u16, bytes: u64) -> Flow {
        let to = format!("10.0.0.2:{port}").parse().unwrap();
        let mut flow = Flow::new(protocol, "10.0.0.1:4000".parse().unwrap(), to);
        flow.seen = Some(Seen { packets: bytes / 1_000, bytes: Bytes(bytes), over: Duration::from_secs(9) });
        flow
    }

    #[test]
    fn the_table_has_what_is_beside_what_it_was_taken_for() {
        let flows = vec![
            flow(Protocol::Udp, 53, 1_000),
            flow(Protocol::Tcp, 443, 20_000),
            flow(Protocol::Tcp, 443, 20_000_000),
        ];
        let heard = Heard { flows, media: Vec::new() };
        let table = judged(Case::CurlPage, &heard);
        assert_eq!(table.get(&(Service::Interactive, Service::Interactive)), Some(&1));
        assert_eq!(table.get(&(Service::Web, Service::Web)), Some(&1));
        assert_eq!(table.get(&(Service::Web, Service::Bulk)), Some(&1));
        let row = told(Case::CurlPage, &table);
        assert_eq!(
            (row.measured.as_str(), row.verdict),
            ("1 interactive, 1 web, 1 bulk (is web)", Verdict::Told)
        );
        let lines: Vec<_> = confusion(&table).into_iter().map(|row| row.measured).collect();
        assert_eq!(lines, ["interactive 1", "web 1, bulk 1"]);
        assert_eq!(told(Case::CurlPage, &Table::new()).verdict, Verdict::Miss);
    }

    #[test]
    fn speech_that_sip_announced_is_voice() {
        let flows = vec![flow(Protocol::Udp, 20_000, 50_000), flow(Protocol::Udp, 5060, 1_000)];
        let heard = Heard { flows, media: vec!["10.0.0.2:20000".parse().unwrap()] };
        let table = judged(Case::Sipp, &heard);
        assert_eq!(table.get(&(Service::Voice, Service::Voice)), Some(&1));
        assert_eq!(table.get(&(Service::Interactive, Service::Interactive)), Some(&1));
    }
}
