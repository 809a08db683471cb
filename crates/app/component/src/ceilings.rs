//! What can wait is never sent faster than settings say, and settings may say another thing by night: what holds is told to the
//! carrier again and again. Each end does so for what it sends.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farhop_diffserv::{Ceiling, Patient};
use farhop_htotp::frame::Class;
use farhop_transport::hop::Hop;
use farhop_units::BitRate;

/// How often it is looked what holds: hours are told in minutes, and settings may be new.
const LOOK: Duration = Duration::from_secs(5);

/// The class of what can wait.
pub fn class(of: Patient) -> Class {
    match of {
        Patient::Streaming => Class::Streaming,
        Patient::Bulk => Class::Bulk,
        Patient::Updates => Class::Background,
        Patient::Backups => Class::Backups,
        Patient::PeerToPeer => Class::PeerToPeer,
    }
}

/// Has a carrier keep to what holds, for as long as this is polled.
pub async fn keep_to(hop: &Hop, ceilings: impl Fn() -> Vec<Ceiling>) {
    let mut told = Vec::new();
    loop {
        let minute =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 60 % 1440);
        let now = in_force(&ceilings(), minute as u16);
        if now != told {
            hop.set_ceilings(&now);
            told = now;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What holds at this minute of the day.
fn in_force(ceilings: &[Ceiling], minute: u16) -> Vec<(Class, BitRate)> {
    ceilings.iter().filter_map(|it| Some((class(it.of), it.at(minute)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_changes_with_the_time_of_the_day() {
        let night =
            Ceiling { of: Patient::Backups, rate: None, hours: Some((1320, 360)), outside: BitRate::kbit(8) };
        let slow =
            Ceiling { of: Patient::Bulk, rate: Some(BitRate::mbit(1)), hours: None, outside: BitRate(0) };
        assert_eq!(in_force(&[night, slow], 0), [(Class::Bulk, BitRate::mbit(1))]);
        assert_eq!(
            in_force(&[night, slow], 720),
            [(Class::Backups, BitRate::kbit(8)), (Class::Bulk, BitRate::mbit(1))]
        );
    }

    #[test]
    fn what_goes_before_what_else_goes_before_it_in_the_carrier() {
        for pair in Patient::ALL.windows(2) {
            assert!(class(pair[0]) < class(pair[1]));
        }
    }
}
