//! A wireless LAN as the access hop between users and terminal: each packet contends for the air, may have to be sent again, and takes
//! its time (IEEE 802.11-2020 §10.3, DCF). The other way shares no air with it: what acknowledgements of the transport take is set
//! as contention.

use farhop_units::{BitRate, Bytes};
use std::collections::VecDeque;
use std::time::Duration;

use crate::Rng;
use crate::direction::DropReason;

/// A wireless LAN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wifi {
    /// What data is sent at.
    pub rate: BitRate,
    /// The probability that a transmission is not acknowledged, `0.0..=1.0`.
    pub loss: f64,
    /// How often a packet is sent again before it is given up.
    pub retries: u32,
    /// Most time that other stations take before each transmission, uniform from zero.
    pub contention: Duration,
    /// What may wait for the air, the packet being sent included.
    pub queue: Bytes,
}

// IEEE 802.11-2020, table 17-21 (OFDM, 20 MHz): aSlotTime, aCWmin, aCWmax; SIFS 16 µs, DIFS = SIFS + 2 slots.
const SLOT: Duration = Duration::from_micros(9);
const DIFS: Duration = Duration::from_micros(34);
const WINDOW_LEAST: u32 = 15;
const WINDOW_MOST: u32 = 1023;
/// Preamble and signal, 20 µs; SIFS; an acknowledgement at 24 Mbit/s, 28 µs.
const AROUND: Duration = Duration::from_micros(64);
/// MAC header of a QoS data frame, LLC and FCS.
const HEADERS: Bytes = Bytes(26 + 8 + 4);

/// A [`Wifi`] in use.
#[derive(Debug)]
pub(crate) struct Station {
    rng: Rng,
    /// When the packets before are done with.
    busy: Duration,
    /// When each of those that wait or are being sent is over, and its size.
    waiting: VecDeque<(Duration, Bytes)>,
}

impl Station {
    pub(crate) fn new(rng: Rng) -> Self {
        Station { rng, busy: Duration::ZERO, waiting: VecDeque::new() }
    }

    /// When a packet is over that is handed over at `at`, or why it never is.
    pub(crate) fn cross(&mut self, wifi: &Wifi, at: Duration, size: Bytes) -> Result<Duration, DropReason> {
        while self.waiting.pop_front_if(|first| first.0 <= at).is_some() {}
        if self.waiting.iter().map(|(_, size)| size.0).sum::<u64>() + size.0 > wifi.queue.0 {
            return Err(DropReason::Queue);
        }
        let start = self.busy.max(at);
        let (airtime, mut now, mut window) = (wifi.rate.time_for(size + HEADERS), start, WINDOW_LEAST);
        for _ in 0..=wifi.retries {
            let slots = (self.rng.next_u64() % u64::from(window + 1)) as u32;
            now += self.rng.up_to(wifi.contention) + DIFS + slots * SLOT + airtime + AROUND;
            self.busy = now;
            if !self.rng.chance(wifi.loss) {
                self.waiting.push_back((now, size));
                return Ok(now);
            }
            window = (2 * window + 1).min(WINDOW_MOST);
        }
        self.waiting.push_back((now, size));
        Err(DropReason::Loss)
    }

    /// Lets go of what waits, as after a change.
    pub(crate) fn forget(&mut self) {
        self.busy = Duration::ZERO;
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Wifi = Wifi {
        rate: BitRate::mbit(54),
        loss: 0.0,
        retries: 7,
        contention: Duration::ZERO,
        queue: Bytes(300_000),
    };

    #[test]
    fn an_idle_lan_takes_a_backoff_and_the_airtime() {
        let mut station = Station::new(Rng::new(1));
        // 1,538 bytes at 54 Mbit/s: 227.85 µs.
        let (least, most) = (DIFS + AROUND + Duration::from_nanos(227_851), 15 * SLOT);
        let mut mean = Duration::ZERO;
        for number in 0..1000 {
            let at = number * Duration::from_millis(10);
            let took = station.cross(&QUIET, at, Bytes(1500)).unwrap() - at;
            assert!((least..=least + most).contains(&took), "{took:?}");
            mean += took / 1000;
        }
        // Half the window of 15 slots.
        assert!(mean.abs_diff(least + 15 * SLOT / 2) < Duration::from_micros(4), "{mean:?}");
    }

    #[test]
    fn a_busy_lan_carries_what_dcf_lets_through() {
        let (mut station, mut last) = (Station::new(Rng::new(2)), Duration::ZERO);
        for _ in 0..1000 {
            let endless = Wifi { queue: Bytes(1 << 40), ..QUIET };
            last = station.cross(&endless, Duration::ZERO, Bytes(1500)).unwrap();
        }
        // 1500 × 8 bits in 34 + 67.5 + 227.9 + 64 µs: 30.5 Mbit/s, the figure of 802.11a and g.
        let rate = 1000.0 * 1500.0 * 8.0 / last.as_secs_f64() / 1e6;
        assert!((30.0..31.0).contains(&rate), "{rate} Mbit/s");
    }

    #[test]
    fn what_is_lost_is_sent_again_and_given_up_in_the_end() {
        let lossy = Wifi { loss: 0.5, retries: 3, ..QUIET };
        let mut station = Station::new(Rng::new(3));
        let (mut lost, mut time) = (0, Duration::ZERO);
        for number in 0..20_000 {
            let at = number * Duration::from_millis(20);
            match station.cross(&lossy, at, Bytes(1500)) {
                Ok(over) => time += over - at,
                Err(reason) => {
                    assert_eq!(reason, DropReason::Loss);
                    lost += 1;
                }
            }
        }
        // 0.5⁴ = 6.25 %, and those that came took 1.73 attempts on average, with wider windows.
        assert!((f64::from(lost) / 20_000.0 - 0.0625).abs() < 0.005, "{lost}");
        let mean = time / (20_000 - lost);
        assert!((Duration::from_micros(700)..Duration::from_micros(850)).contains(&mean), "{mean:?}");
    }

    #[test]
    fn others_add_their_time_and_a_full_queue_drops() {
        let shared = Wifi { contention: Duration::from_millis(8), queue: Bytes(15_000), ..QUIET };
        let mut station = Station::new(Rng::new(4));
        let fates: Vec<_> = (0..200).map(|_| station.cross(&shared, Duration::ZERO, Bytes(1500))).collect();
        // Ten packets fill the queue; those that were given up count, too.
        assert_eq!(fates.iter().filter(|fate| **fate == Err(DropReason::Queue)).count(), 190);
        let over = fates.iter().flatten().max().unwrap();
        assert!(*over > Duration::from_millis(2), "{over:?}");
        assert!(station.cross(&shared, Duration::from_secs(9), Bytes(1500)).is_ok(), "it empties");
    }
}
