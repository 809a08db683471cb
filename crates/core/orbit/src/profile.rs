//! The satellite services that Farhop names, as numbers. No behaviour: `direction` acts on these.

use farhop_units::{BitRate, Bytes};
use std::time::Duration;

use crate::{Leg, Loss, Way};

/// A named link: both directions and what follows from them.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The name that settings and the command line use.
    pub name: String,
    /// Gateway → terminal, the way of downloads.
    pub forward: Leg,
    /// Terminal → gateway, the way of requests.
    pub return_: Leg,
}

/// A profile name that nothing is known by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no link profile is called '{name}', known are {}", Profile::NAMES.join(", "))]
pub struct UnknownProfile {
    /// What was asked for.
    pub name: String,
}

impl Profile {
    /// Every name that [`Profile::named`] knows.
    pub const NAMES: [&str; 12] = [
        "leo-100m",
        "meo-50m",
        "geo-256k",
        "geo-500k",
        "geo-2m",
        "geo-isti-128k",
        "geo-isti-1m",
        "geo-hylas2",
        "geo-hylas2-4m",
        "geo-20m",
        "lunar-10m",
        "none",
    ];

    /// No direction has less queue than this: below it a single initial window would be dropped.
    pub const SMALLEST_QUEUE: Bytes = Bytes(64_000);

    /// The profile of that name.
    ///
    /// `geo-256k`, `geo-500k` and `geo-2m` are HTTPEP's testbed (300 ms each way), `geo-isti-128k` and `geo-isti-1m`
    /// the emulated links of the study of web protocols over GEO (260 and 360 ms each way), `geo-hylas2` a Hylas 2
    /// broadband service (325 ms each way), `geo-hylas2-4m` the same with a return link of 4 Mbit/s (the study
    /// of HTTP/2 over it prints "512 KB/s"), `geo-20m` a current service, `none` a link without effect. `leo-100m`,
    /// `meo-50m` and `lunar-10m` are files ([`Profile::from_toml`]) in this crate's folder `presets`.
    ///
    /// # Errors
    /// The name is none of [`Profile::NAMES`].
    pub fn named(name: &str) -> Result<Profile, UnknownProfile> {
        let (forward, return_, delay) = match name {
            "geo-256k" => (BitRate::kbit(256), BitRate::kbit(256), 300),
            "geo-500k" => (BitRate::kbit(500), BitRate::kbit(500), 300),
            "geo-2m" => (BitRate::mbit(2), BitRate::mbit(2), 300),
            "geo-isti-128k" => (BitRate::kbit(128), BitRate::kbit(128), 260),
            "geo-isti-1m" => (BitRate::mbit(1), BitRate::mbit(1), 360),
            "geo-hylas2" => (BitRate::mbit(8), BitRate::kbit(512), 325),
            "geo-hylas2-4m" => (BitRate::mbit(8), BitRate::mbit(4), 325),
            "geo-20m" => (BitRate::mbit(20), BitRate::mbit(5), 300),
            "none" => {
                let (forward, return_) = (Leg::transparent(), Leg::transparent());
                return Ok(Profile { name: name.into(), forward, return_ });
            }
            _ => return Profile::written(name).ok_or_else(|| UnknownProfile { name: name.into() }),
        };
        let mut profile = Profile::symmetric_delay(name, forward, return_, Duration::from_millis(delay));
        if name.starts_with("geo-hylas2") {
            profile.forward.queue = Bytes(600_000); // as in the measurements that this profile repeats
        }
        Ok(profile)
    }

    /// The profile of that name among those that are files.
    fn written(name: &str) -> Option<Profile> {
        let text = match name {
            "leo-100m" => include_str!("../presets/leo-100m.toml"),
            "meo-50m" => include_str!("../presets/meo-50m.toml"),
            "lunar-10m" => include_str!("../presets/lunar-10m.toml"),
            _ => return None,
        };
        let none = &mut |file: &str| Err(format!("{file} is no part of a preset"));
        Some(Profile::read(text, name, none).expect("each of them is read by a test"))
    }

    /// A lossless link with `delay` each way and queues of max(rate × round trip, 64 KB).
    pub fn symmetric_delay(name: &str, forward: BitRate, return_: BitRate, delay: Duration) -> Profile {
        let leg = |rate: BitRate| {
            let queue = rate.bytes_in(2 * delay).max(Profile::SMALLEST_QUEUE);
            Leg { delay, rate: Some(rate), queue, ..Leg::transparent() }
        };
        Profile { name: name.into(), forward: leg(forward), return_: leg(return_) }
    }

    /// The leg of one way.
    pub fn leg(&self, way: Way) -> &Leg {
        match way {
            Way::Forward => &self.forward,
            Way::Return => &self.return_,
        }
    }

    /// The leg of one way, to change it.
    pub fn leg_mut(&mut self, way: Way) -> &mut Leg {
        match way {
            Way::Forward => &mut self.forward,
            Way::Return => &mut self.return_,
        }
    }

    /// Whether it is one of [`Profile::NAMES`], so that its name tells everything.
    pub fn is_preset(&self) -> bool {
        Profile::NAMES.contains(&self.name.as_str())
    }

    /// Round trip of a packet that neither waits nor takes time to send.
    pub fn rtt(&self) -> Duration {
        self.forward.one_way() + self.return_.one_way()
    }

    /// Bandwidth × delay product of one way: its rate over a round trip; `None` where there is no rate.
    pub fn bdp(&self, way: Way) -> Option<Bytes> {
        self.leg(way).rate.map(|rate| rate.bytes_in(self.rtt()))
    }

    /// The same link with random loss of probability `forward` and `return_`.
    #[must_use]
    pub fn with_loss(mut self, forward: f64, return_: f64) -> Profile {
        self.forward.loss = Loss::Independent(forward);
        self.return_.loss = Loss::Independent(return_);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_known_and_bears_its_name() {
        for name in Profile::NAMES {
            assert_eq!(Profile::named(name).unwrap().name, name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        assert_eq!(
            Profile::named("leo").unwrap_err().to_string(),
            "no link profile is called 'leo', known are leo-100m, meo-50m, geo-256k, geo-500k, geo-2m, geo-isti-128k, geo-isti-1m, \
             geo-hylas2, geo-hylas2-4m, geo-20m, lunar-10m, none"
        );
    }

    #[test]
    fn rates_delays_and_queues_are_those_of_the_services() {
        let row = |name| {
            let p = Profile::named(name).unwrap();
            let rate = |leg: &Leg| leg.rate.map_or(0, |r| r.0 / 1000);
            (rate(&p.forward), rate(&p.return_), p.rtt().as_millis(), p.forward.queue.0, p.return_.queue.0)
        };
        assert_eq!(row("geo-256k"), (256, 256, 600, 64_000, 64_000));
        assert_eq!(row("geo-500k"), (500, 500, 600, 64_000, 64_000));
        assert_eq!(row("geo-2m"), (2_000, 2_000, 600, 150_000, 150_000));
        assert_eq!(row("geo-isti-128k"), (128, 128, 520, 64_000, 64_000));
        assert_eq!(row("geo-isti-1m"), (1_000, 1_000, 720, 90_000, 90_000));
        assert_eq!(row("geo-hylas2"), (8_000, 512, 650, 600_000, 64_000));
        assert_eq!(row("geo-hylas2-4m"), (8_000, 4_000, 650, 600_000, 325_000));
        assert_eq!(row("geo-20m"), (20_000, 5_000, 600, 1_500_000, 375_000));
        assert_eq!(row("leo-100m"), (100_000, 20_000, 28, 1_000_000, 250_000));
        assert_eq!(row("meo-50m"), (50_000, 10_000, 130, 812_500, 162_500));
        assert_eq!(row("lunar-10m"), (10_000, 2_000, 2564, 3_205_000, 641_000));
        assert_eq!(row("none").2, 0);
    }

    #[test]
    fn the_bandwidth_delay_product_is_rate_times_round_trip() {
        let profile = Profile::named("geo-hylas2").unwrap();
        assert_eq!(profile.bdp(Way::Forward), Some(Bytes(650_000)));
        assert_eq!(profile.bdp(Way::Return), Some(Bytes(41_600)));
        assert_eq!(Profile::named("none").unwrap().bdp(Way::Forward), None);
    }
}
