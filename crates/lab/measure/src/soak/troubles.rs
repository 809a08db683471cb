//! What happens to the ends while they are loaded, period after period by one timetable.

use std::process::Command;
use std::time::Duration;

use farhop_testbed::Place;

use super::place::{Grounds, link};
use super::settings::CARRIER_PORT;
use crate::MeasureError;

/// How long a period is. Growth is judged by what is typical of each.
pub(super) const PERIOD: Duration = Duration::from_secs(60);

/// One of the things that happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing passes the link.
    Cut,
    /// Everything does again.
    Mended,
    /// A new CA, other settings, another user, and SIGHUP for all.
    Reload,
    /// UDP does not pass: carriers move over to TCP.
    NoUdp,
    /// It does again, and they move back.
    Udp,
    /// A long link that loses packets.
    Worse,
    /// The short one.
    Fine,
    /// Ground is killed.
    KillGround,
    /// And started again.
    StartGround,
}

/// When each happens, in seconds of a period. It takes ten seconds of silence until TCP is called too.
const TIMETABLE: [(u64, Trouble); 7] = [
    (3, Trouble::Cut),
    (5, Trouble::Mended),
    (8, Trouble::Reload),
    (10, Trouble::NoUdp),
    (35, Trouble::Udp),
    (45, Trouble::Worse),
    (55, Trouble::Fine),
];
/// And while it warms up.
const RESTART: [(u64, Trouble); 2] = [(39, Trouble::KillGround), (41, Trouble::StartGround)];

/// No carrier over UDP comes in; and everything does, whether it was so before or not.
const WITHOUT_UDP: &str = "add table ip soak; add chain ip soak without { type filter hook input priority 0; }; \
                           add rule ip soak without udp dport";
const WITH_UDP: &str = "add table ip soak; delete table ip soak";

/// What happens within `time` (from, to) of a load, ground's restarts included if `restarts`; in its order.
pub(super) fn due(from: Duration, to: Duration, restarts: bool) -> Vec<Trouble> {
    let table = TIMETABLE.iter().chain(RESTART.iter().filter(|_| restarts));
    let mut due: Vec<(Duration, Trouble)> = Vec::new();
    let first = (from.as_secs() / PERIOD.as_secs()) as u32;
    let last = (to.as_secs() / PERIOD.as_secs()) as u32;
    for period in first..=last {
        let times =
            table.clone().map(|(second, what)| (PERIOD * period + Duration::from_secs(*second), *what));
        due.extend(times.filter(|(time, _)| (from..to).contains(time)));
    }
    due.sort_by_key(|(time, _)| *time);
    due.into_iter().map(|(_, what)| what).collect()
}

/// Has it happen.
pub(super) fn happen(trouble: Trouble, grounds: &mut Grounds) -> Result<(), MeasureError> {
    let link = || grounds.scene.testbed.link();
    match trouble {
        Trouble::Cut => link().cut(),
        Trouble::Mended => link().restore(),
        Trouble::Reload => {
            grounds.rotate()?;
            grounds.reload()?;
        }
        Trouble::NoUdp => nft(grounds, &format!("{WITHOUT_UDP} {CARRIER_PORT} drop"))?,
        Trouble::Udp => nft(grounds, WITH_UDP)?,
        Trouble::Worse => link().switch(&worse()),
        Trouble::Fine => link().switch(&self::link()),
        Trouble::KillGround => grounds.ground.kill()?,
        Trouble::StartGround => grounds.ground.again(&grounds.scene.testbed)?,
    }
    Ok(())
}

/// Makes good whatever a timetable that was not gone through to its end has left.
pub(super) fn make_good(grounds: &mut Grounds) -> Result<(), MeasureError> {
    grounds.scene.testbed.link().restore();
    happen(Trouble::Fine, grounds)?;
    nft(grounds, WITH_UDP)
}

fn worse() -> farhop_orbit::Profile {
    let mut profile = link().with_loss(0.01, 0.01);
    profile.forward.delay = Duration::from_millis(150);
    profile.return_.delay = Duration::from_millis(150);
    profile
}

/// At ground's side of the link.
fn nft(grounds: &Grounds, rules: &str) -> Result<(), MeasureError> {
    let mut command = Command::new("nft");
    command.arg(rules);
    let status = grounds.scene.testbed.spawn_in(Place::Ground, command)?.wait();
    match status.map_err(MeasureError::system("nft"))?.success() {
        true => Ok(()),
        false => Err(MeasureError::Unexpected("nft, which blocks UDP, failed".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that happens when the clock is looked at every so many milliseconds.
    fn all(look: u64, periods: u32, restarts: bool) -> Vec<Trouble> {
        let end = (PERIOD * periods).as_millis() as u64;
        let looks = (0..end).step_by(look as usize).map(Duration::from_millis);
        looks.flat_map(|from| due(from, from + Duration::from_millis(look), restarts)).collect()
    }

    #[test]
    fn each_trouble_happens_once_in_each_period_however_often_the_clock_is_looked_at() {
        for restarts in [false, true] {
            let each = TIMETABLE.len() + if restarts { RESTART.len() } else { 0 };
            assert_eq!(all(250, 3, restarts).len(), 3 * each);
            assert_eq!(all(250, 3, restarts), all(7_500, 3, restarts));
        }
    }

    #[test]
    fn whatever_begins_ends_within_its_period_and_before_the_next_begins() {
        let pairs = [
            (Trouble::Cut, Trouble::Mended),
            (Trouble::NoUdp, Trouble::Udp),
            (Trouble::KillGround, Trouble::StartGround),
            (Trouble::Worse, Trouble::Fine),
        ];
        let period = all(250, 1, true);
        for (begin, end) in pairs {
            let at = |wanted| period.iter().position(|it| *it == wanted).unwrap();
            assert_eq!(at(end), at(begin) + 1, "{begin:?}");
        }
    }
}
