//! Calls over a link that is full: ten of G.729 by SIPp, with the link manager at both ends of the link and without; over a return link
//! that is granted on demand, over slower links, and inside Farhop's carrier; the eleventh, and a manager that is killed.

mod carried;
mod heard;
mod load;
mod manager;
pub(crate) mod phones;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farhop_compare::Interrupt;
use farhop_diffserv::calls::{Codec, Hop, rate};
use farhop_orbit::{Entitlement, OnDemand, Profile, Signalling, Supply, Volume, Way};
use farhop_testbed::{Place, Testbed};
use farhop_units::{BitRate, Bytes};
use serde_json::json;

use crate::group::Context;
use crate::{MeasureError, Row};
pub(crate) use carried::rows as carried;
use heard::{Ear, Fate, fate};
use load::Load;
use manager::Manager;
use phones::{Phones, SPEECH};

const LINK: &str = "geo-hylas2";
const CALLS: u16 = 10;
const DOWNLOADS: usize = 20;
const UPLOADS: usize = 5;
/// Until downloads and uploads have filled the link.
const WARM: Duration = Duration::from_secs(15);
/// Until all calls talk, and then for how long they are measured.
const RINGING: Duration = Duration::from_secs(6);
const RINGING_LONG: Duration = Duration::from_secs(15);
const TALK: Duration = Duration::from_secs(30);
/// What was sent in the last moments may be under way still.
const TAIL: Duration = Duration::from_secs(3);

/// "Must hold" of part 7.
const MOST_LOSS: f64 = 0.01;
const MOST_WAIT: Duration = Duration::from_millis(40);
const MOST_JITTER: Duration = Duration::from_millis(20);
const MOST_REFUSAL: Duration = Duration::from_millis(50);

/// The largest packet with its frame, what the manager's bucket saves, and a packet of a call.
const LARGEST: Bytes = Bytes(1514);
const SAVED: Duration = Duration::from_millis(2);
const FRAME: Bytes = Bytes(14);
const SPOKEN: Bytes = Bytes(60 + FRAME.0);
const PACKET_TIME: Duration = Duration::from_millis(20);
/// A usual superframe; slots of which 30 are one at 512 kbit/s; what EF has there by default and a little more.
const SUPERFRAME: Duration = Duration::from_millis(45);
const SLOT: Bytes = Bytes(96);
const CRA: BitRate = BitRate::kbit(320);

/// Where calls are made.
struct Line {
    /// Of rows; empty for the link of "must hold".
    name: &'static str,
    profile: Profile,
    /// What `farhop link` is told of the rate, at the remote and at ground.
    told: [String; 2],
    /// What the return link's capacity on demand adds to a packet's way.
    superframe: Duration,
}

impl Line {
    fn named(name: &'static str, link: &str) -> Result<Line, MeasureError> {
        let profile = Profile::named(link).map_err(|error| MeasureError::Unexpected(error.to_string()))?;
        let told = [format!("profile = \"{link}\"\n"), format!("profile = \"{link}\"\n")];
        Ok(Line { name, profile, told, superframe: Duration::ZERO })
    }

    /// The return link is given out on demand, with what EF has as a constant rate (CRA) and the rest by rate (RBDC).
    fn on_demand() -> Result<Line, MeasureError> {
        let mut line = Line::named(" on demand", LINK)?;
        let rate = line.profile.return_.rate.unwrap_or(BitRate::kbit(512));
        let demand = OnDemand {
            superframe: SUPERFRAME,
            capacity: rate,
            slot: SLOT,
            header: Bytes(0),
            control_round: line.profile.rtt() + SUPERFRAME,
            entitlement: Entitlement { cra: CRA, rbdc: rate, volume: Volume::None, fca: false },
            rbdc_timeout: 8,
            signalling: Signalling { loss: 0.0, contention: None, size: Bytes(0) },
            terminals: 1,
            others: None,
        };
        line.profile.name = "geo-hylas2 on demand".into();
        line.profile.return_.supply = Supply::OnDemand(Arc::new(demand));
        line.told[0] = format!("profile = \"none\"\nrate = \"{rate}\"\n");
        line.superframe = SUPERFRAME;
        Ok(line)
    }

    fn up(&self) -> Result<(Testbed, tempfile::TempDir), MeasureError> {
        if let Some(package) = phones::lacking() {
            return Err(MeasureError::Unexpected(format!("not present: install '{package}'")));
        }
        let testbed = Testbed::up(&self.profile, 1)?;
        let folder = tempfile::Builder::new().prefix("farhop-calls-").tempdir();
        Ok((testbed, folder.map_err(MeasureError::system("a folder"))?))
    }

    fn manager(
        &self,
        testbed: &Testbed,
        place: Place,
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<Manager, MeasureError> {
        let told = &self.told[usize::from(place == Place::Ground)];
        Manager::start(testbed, place, folder, told, interrupt)
    }

    /// What a packet of a call may wait on this way beside so many others, sent at `shaped`: one of the largest packets has just begun, the
    /// bucket has saved a little, and all calls speak at once. On the link of "must hold" that is what "must hold" has.
    fn bound(&self, way: Way, shaped: BitRate, calls: u16) -> Bound {
        let packets = Bytes(LARGEST.0 + u64::from(calls) * SPOKEN.0);
        let waits = shaped.time_for(packets) + SAVED;
        let superframe = if way == Way::Return { self.superframe } else { Duration::ZERO };
        Bound {
            one_way: self.profile.leg(way).delay + waits.max(MOST_WAIT) + 2 * superframe,
            jitter: if waits > MOST_WAIT { waits } else { MOST_JITTER } + superframe,
        }
    }
}

/// What a packet's way may take, and by how much it may differ from the one's before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bound {
    one_way: Duration,
    jitter: Duration,
}

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let line = Line::named("", LINK)?;
    let mut rows = talk(context, &line, true)?;
    rows.extend(talk(context, &line, false)?);
    Ok(rows)
}

/// Where the return link is granted on demand.
pub(crate) fn on_demand(context: &Context) -> Result<Vec<Row>, MeasureError> {
    talk(context, &Line::on_demand()?, true)
}

/// As many calls as EF has room for, with the bound that the link's packet time allows.
pub(crate) fn slower(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let lines = [(" of geo-256k", "geo-256k"), (" of geo-isti-128k", "geo-isti-128k")];
    let talks = lines.map(|(name, link)| talk(context, &Line::named(name, link)?, true));
    talks.into_iter().collect::<Result<Vec<_>, _>>().map(|rows| rows.concat())
}

fn talk(context: &Context, line: &Line, managed: bool) -> Result<Vec<Row>, MeasureError> {
    let (testbed, folder) = line.up()?;
    let start = |place| line.manager(&testbed, place, folder.path(), &context.interrupt);
    let managers = match managed {
        true => vec![start(Place::Remote)?, start(Place::Ground)?],
        false => Vec::new(),
    };
    let (calls, shaped) = room(line, &managers)?;
    let _load = Load::start(&testbed, DOWNLOADS, UPLOADS)?;
    context.interrupt.sleep(WARM)?;
    let ears = (Ear::at(&testbed, Place::Client, SPEECH)?, Ear::at(&testbed, Place::Origins, SPEECH)?);
    let _phones = Phones::call(&testbed, folder.path(), calls)?;
    context.interrupt.sleep(RINGING)?;
    let mut rows = Vec::new();
    if let Some(manager) = managers.first() {
        // Signalling of a slow link takes its time.
        let rings = Instant::now();
        while manager.calls().len() < usize::from(calls) && rings.elapsed() < RINGING_LONG {
            context.interrupt.sleep(RINGING / 10)?;
        }
        rows.push(announced(line, calls, &manager.calls()));
    }
    context.interrupt.sleep(TALK)?;
    let until = Instant::now() - TAIL;
    let (near, far) = (ears.0.end()?, ears.1.end()?);
    let client = testbed.addresses.client;
    let up = fate(&near, &far, until, |from| from.ip() == client);
    let down = fate(&far, &near, until, |from| from.ip() != client);
    for (way, direction, shaped, fate) in
        [(Way::Return, "return", shaped[0], up), (Way::Forward, "forward", shaped[1], down)]
    {
        let what = format!("{calls} calls, full {direction} link{}", line.name);
        let bound = line.bound(way, shaped, calls);
        rows.push(match managed {
            true => judged(format!("{what}, link manager"), bound, calls, &fate),
            false => {
                let row = judged(format!("{what}, without"), bound, calls, &fate);
                Row { verdict: crate::Verdict::Told, ..row }
            }
        });
    }
    Ok(rows)
}

/// How many calls both ways have room for, ten at the most, and what is sent at; without managers that is the link.
fn room(line: &Line, managers: &[Manager]) -> Result<(u16, [BitRate; 2]), MeasureError> {
    let mut calls = CALLS;
    let mut shaped = [Way::Return, Way::Forward].map(|way| line.profile.leg(way).rate.unwrap_or_default());
    let hop = Hop { overhead: FRAME, ..Hop::PLAIN };
    let of_one = rate(Codec::G729, PACKET_TIME, &hop);
    let of_one = of_one.map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    for (manager, shaped) in managers.iter().zip(&mut shaped) {
        let status = manager.ask("status", serde_json::Value::Null).map_err(MeasureError::Unexpected)?;
        let bits = |name: &str| status[name].as_u64().unwrap_or(0);
        *shaped = BitRate(bits("shaped_bps"));
        calls = calls.min(u16::try_from(bits("share_bps") / of_one.0.max(1)).unwrap_or(CALLS));
    }
    Ok((calls, shaped))
}

fn announced(line: &Line, wanted: u16, calls: &[String]) -> Row {
    let heard = calls.iter().filter(|call| call.starts_with("sip/")).count();
    let wanted = usize::from(wanted);
    Row::judged(
        format!("calls that SIPp announces, at the return link's manager{}", line.name),
        format!("{heard} of {wanted} admitted"),
        format!("all {wanted}"),
        heard == wanted && calls.len() == wanted,
    )
}

fn judged(what: String, bound: Bound, calls: u16, fate: &Fate) -> Row {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let measured = format!(
        "loss {:.2} % of {}, one way {:.0} ms, p99 {:.0} ms, jitter p99 {:.1} ms, MOS {:.2}",
        fate.loss * 100.0,
        fate.sent,
        ms(fate.middle),
        ms(fate.p99),
        ms(fate.jitter_p99),
        fate.mos
    );
    let told = format!("< 1 %, ≤ {:.0} ms, ≤ {:.0} ms", ms(bound.one_way), ms(bound.jitter));
    // Each call sends fifty packets a second; where a fifth of them was not even sent nothing was measured.
    let enough = calls > 0 && fate.sent as f64 > f64::from(calls) * 40.0 * TALK.as_secs_f64();
    let holds = fate.loss < MOST_LOSS && fate.p99 <= bound.one_way && fate.jitter_p99 <= bound.jitter;
    Row::judged(what, measured, told, enough && holds)
}

pub(crate) fn admission(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let line = Line::named("", LINK)?;
    let (testbed, folder) = line.up()?;
    let start = || line.manager(&testbed, Place::Remote, folder.path(), &context.interrupt);
    let manager = start()?;
    let call = |name: &str| json!({"call": name, "codec": "G.729", "packet_time": "20 ms"});
    let names: Vec<String> = (0..CALLS).map(|number| format!("call-{number}")).collect();
    for name in &names {
        manager.ask("new_voice_call", call(name)).map_err(MeasureError::Unexpected)?;
    }
    let begin = Instant::now();
    let refused = manager.ask("new_voice_call", call("call-x"));
    let took = begin.elapsed();
    let reason = refused.as_ref().err().cloned().unwrap_or_else(|| "admitted".into());
    let untouched = manager.calls() == names;
    let mut rows = vec![Row::judged(
        "call 11 of a share for 10",
        format!(
            "{:.1} ms: {reason}{}",
            took.as_secs_f64() * 1e3,
            if untouched { "" } else { "; the others were touched" }
        ),
        format!("refused within {} ms, the 10 untouched", MOST_REFUSAL.as_millis()),
        reason.starts_with("no room for it") && took <= MOST_REFUSAL && untouched,
    )];
    let before = classes(&testbed)?;
    manager.kill()?;
    let after = classes(&testbed)?;
    rows.push(Row::judged(
        "manager killed",
        format!("{} classes in force{}", after.len(), if after == before { "" } else { ", not as before" }),
        format!("the {} of before, each with its rate and its queue", before.len()),
        !before.is_empty() && after == before,
    ));
    let taken_up = start()?.calls();
    rows.push(Row::judged(
        "manager started again",
        format!("{} calls taken up", taken_up.len()),
        format!("all {CALLS}"),
        taken_up == names,
    ));
    Ok(rows)
}

/// Ours at the terminal's device: what is said of each but what has passed.
fn classes(testbed: &Testbed) -> Result<Vec<String>, MeasureError> {
    let mut command = Command::new("tc");
    command.args(["class", "show", "dev", "sat0"]);
    testbed.namespace(Place::Remote).prepare(&mut command);
    let output = command.output().map_err(MeasureError::system("tc"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter(|line| line.starts_with("class htb fa40:")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_bound_is_that_of_must_hold_and_more_where_a_packet_takes_longer() {
        let hylas = Line::named("", LINK).unwrap();
        let shaped = BitRate(486_400);
        for way in [Way::Return, Way::Forward] {
            assert_eq!(hylas.bound(way, shaped, 10), Bound { one_way: ms(365), jitter: ms(20) });
        }
        let demand = Line::on_demand().unwrap();
        assert_eq!(demand.bound(Way::Return, shaped, 10), Bound { one_way: ms(455), jitter: ms(65) });
        assert_eq!(demand.bound(Way::Forward, shaped, 10), Bound { one_way: ms(365), jitter: ms(20) });
        // 1,514 bytes and five packets of speech at 243.2 kbit/s take 62 ms.
        let slow = Line::named("", "geo-256k").unwrap().bound(Way::Return, BitRate(243_200), 5);
        assert!(
            (ms(363)..ms(365)).contains(&slow.one_way) && slow.jitter == slow.one_way - ms(300),
            "{slow:?}"
        );
    }

    #[test]
    fn what_ef_has_there_is_a_constant_rate() {
        let line = Line::on_demand().unwrap();
        let Supply::OnDemand(demand) = &line.profile.return_.supply else { panic!("it is on demand") };
        demand.check().unwrap();
        let slots = (CRA.bytes_in(SUPERFRAME).0 / SLOT.0) as f64 * (SLOT.0 * 8) as f64;
        // 62 % of what is sent at.
        assert!(slots / SUPERFRAME.as_secs_f64() >= 0.62 * 486_400.0);
    }

    #[test]
    fn calls_that_hardly_spoke_prove_nothing() {
        let bound = Bound { one_way: ms(365), jitter: ms(20) };
        let good =
            Fate { sent: 15_000, loss: 0.0, middle: ms(330), p99: ms(360), jitter_p99: ms(9), mos: 3.5 };
        let verdict = |calls, fate: Fate| judged(String::new(), bound, calls, &fate).verdict;
        assert_eq!(verdict(10, good.clone()), Verdict::Pass);
        for (calls, fate) in [
            (10, Fate { sent: 7_000, ..good.clone() }),
            (0, good.clone()),
            (10, Fate { loss: 0.011, ..good.clone() }),
            (10, Fate { p99: ms(366), ..good.clone() }),
            (10, Fate { jitter_p99: ms(21), ..good.clone() }),
        ] {
            assert_eq!(verdict(calls, fate.clone()), Verdict::Miss, "{fate:?}");
        }
    }
}
