//! Calls over a link that is full: ten of G.729 by SIPp, with the link manager at both ends of the link and without; the eleventh,
//! and a manager that is killed.

mod heard;
mod load;
mod manager;
pub(crate) mod phones;

use std::process::Command;
use std::time::{Duration, Instant};

use farhop_orbit::{Leg, Profile};
use farhop_testbed::{Place, Testbed};
use serde_json::json;

use crate::group::Context;
use crate::{MeasureError, Row};
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
const TALK: Duration = Duration::from_secs(30);
/// What was sent in the last moments may be under way still.
const TAIL: Duration = Duration::from_secs(3);

/// "Must hold" of part 7.
const MOST_LOSS: f64 = 0.01;
const MOST_WAIT: Duration = Duration::from_millis(40);
const MOST_JITTER: Duration = Duration::from_millis(20);
const MOST_REFUSAL: Duration = Duration::from_millis(50);

fn up() -> Result<(Profile, Testbed, tempfile::TempDir), MeasureError> {
    if let Some(package) = phones::lacking() {
        return Err(MeasureError::Unexpected(format!("not present: install '{package}'")));
    }
    let profile = Profile::named(LINK).map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let testbed = Testbed::up(&profile, 1)?;
    let folder = tempfile::Builder::new().prefix("farhop-calls-").tempdir();
    Ok((profile, testbed, folder.map_err(MeasureError::system("a folder"))?))
}

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut rows = Vec::new();
    for managed in [true, false] {
        let (profile, testbed, folder) = up()?;
        let start = |place| Manager::start(&testbed, place, folder.path(), LINK, &context.interrupt);
        let managers = match managed {
            true => vec![start(Place::Remote)?, start(Place::Ground)?],
            false => Vec::new(),
        };
        let _load = Load::start(&testbed, DOWNLOADS, UPLOADS)?;
        context.interrupt.sleep(WARM)?;
        let ears = (Ear::at(&testbed, Place::Client, SPEECH)?, Ear::at(&testbed, Place::Origins, SPEECH)?);
        let _phones = Phones::call(&testbed, folder.path(), CALLS)?;
        context.interrupt.sleep(RINGING)?;
        if let Some(manager) = managers.first() {
            rows.push(announced(&manager.calls()));
        }
        context.interrupt.sleep(TALK)?;
        let until = Instant::now() - TAIL;
        let (near, far) = (ears.0.end()?, ears.1.end()?);
        let client = testbed.addresses.client;
        let up = fate(&near, &far, until, |from| from.ip() == client);
        let down = fate(&far, &near, until, |from| from.ip() != client);
        rows.push(judged(managed, "return", &profile.return_, &up));
        rows.push(judged(managed, "forward", &profile.forward, &down));
    }
    Ok(rows)
}

fn announced(calls: &[String]) -> Row {
    let heard = calls.iter().filter(|call| call.starts_with("sip/")).count();
    let wanted = usize::from(CALLS);
    Row::judged(
        "calls that SIPp announces, at the return link's manager",
        format!("{heard} of {wanted} admitted"),
        format!("all {wanted}"),
        heard == wanted && calls.len() == wanted,
    )
}

fn judged(managed: bool, direction: &str, leg: &Leg, fate: &Fate) -> Row {
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
    let most = leg.delay + MOST_WAIT;
    let bound = format!("< 1 %, ≤ {:.0} ms, ≤ {:.0} ms", ms(most), ms(MOST_JITTER));
    let what = format!("{CALLS} calls, full {direction} link");
    // Each call sends fifty packets a second; where half of them were not even sent nothing was measured.
    let enough = fate.sent as f64 > f64::from(CALLS) * 25.0 * TALK.as_secs_f64();
    let pass = enough && fate.loss < MOST_LOSS && fate.p99 <= most && fate.jitter_p99 <= MOST_JITTER;
    match managed {
        true => Row::judged(format!("{what}, link manager"), measured, bound, pass),
        false => Row { what: format!("{what}, without"), measured, bound, verdict: crate::Verdict::Told },
    }
}

pub(crate) fn admission(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let (_, testbed, folder) = up()?;
    let start = || Manager::start(&testbed, Place::Remote, folder.path(), LINK, &context.interrupt);
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
    manager.kill()?;
    let classes = classes(&testbed)?;
    rows.push(Row::judged(
        "manager killed",
        format!("{classes} classes in force"),
        "8, queues go on",
        classes == 8,
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

/// Ours at the terminal's device.
fn classes(testbed: &Testbed) -> Result<usize, MeasureError> {
    let mut command = Command::new("tc");
    command.args(["class", "show", "dev", "sat0"]);
    testbed.namespace(Place::Remote).prepare(&mut command);
    let output = command.output().map_err(MeasureError::system("tc"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter(|line| line.starts_with("class htb fa40:")).count())
}
