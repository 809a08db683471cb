//! How many of a call's packets go first: as many as it was admitted with, as a device sees them. What comes beyond is no speech of
//! that call's, whoever sends it, and would take what others were admitted with (RFC 3246, security considerations: what enters EF
//! is strictly policed). No I/O.

use std::collections::{BTreeSet, HashMap};
use std::ops::AddAssign;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use super::admission::{Media, Offer};
use super::rate::{Hop, packet, rate};

/// Hundredths beyond what a call was admitted with: reports that share its ports (RFC 3550 §6.2 gives them a twentieth, RFC 5761 the
/// ports), and a sender's clock that is a little fast.
const SLACK: u64 = 5;
/// Packets of so long a time may come at once: what a wireless LAN has held back.
const AT_ONCE: Duration = Duration::from_millis(200);
/// And so many at the least.
const LEAST_AT_ONCE: u64 = 4;
/// The speech of the smallest packets (G.729, 10 ms), for a call of which no codec is known.
const LEAST_SPEECH: u64 = 10;

/// What goes first: a bucket of packets and one of bytes (RFC 2697 §3, with one colour), both of which have to have room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meter {
    /// Packets in a second.
    pub packets: u64,
    /// Packets at once, after a pause.
    pub packets_at_once: u64,
    /// Bytes in a second, from the IP header on.
    pub bytes: Bytes,
    /// Bytes at once, after a pause.
    pub bytes_at_once: Bytes,
}

/// Media whose packets are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metered {
    /// Where they go.
    pub media: Vec<Media>,
    /// How many of them go first.
    pub meter: Meter,
}

impl Meter {
    /// That of a call on such a hop. Where something compresses headers there, packets are whole here still.
    pub fn of(offer: &Offer, hop: &Hop) -> Meter {
        let hop = hop.of_media(&offer.media);
        let whole = Hop { compressed: None, overhead: Bytes(0), ..hop };
        let by_codec = offer.codec.and_then(|(codec, time)| {
            // A packet time of nothing is none.
            let (size, counted) = (packet(codec, time, &whole).ok()?, rate(codec, time, &hop).ok()?);
            let packets = u64::try_from(Duration::from_secs(1).as_nanos().div_ceil(time.as_nanos())).ok()?;
            Some((counted, (packets, packets.saturating_mul(size.0))))
        });
        let (packets, bytes) = match by_codec {
            Some((counted, of_codec)) if offer.rate <= counted => of_codec,
            // It has several streams, of which one codec is told, or what it takes was said.
            Some((_, (packets, bytes))) => {
                let (more, larger) = by_rate(offer.rate, &hop, &whole);
                (packets.max(more), bytes.max(larger))
            }
            None => by_rate(offer.rate, &hop, &whole),
        };
        Meter::new(packets, bytes)
    }

    fn new(packets: u64, bytes: u64) -> Meter {
        let with_slack = |number: u64| number.saturating_add((number.saturating_mul(SLACK)).div_ceil(100));
        let at_once = |number: u64| {
            let number = u128::from(number) * AT_ONCE.as_millis();
            u64::try_from(number.div_ceil(1000)).unwrap_or(u64::MAX)
        };
        let (packets, bytes) = (with_slack(packets), with_slack(bytes));
        Meter {
            packets,
            packets_at_once: at_once(packets).max(LEAST_AT_ONCE),
            bytes: Bytes(bytes),
            bytes_at_once: Bytes(at_once(bytes).max(1)),
        }
    }
}

/// Packets and bytes in a second of what takes this rate of the hop, in packets as small as they can be.
fn by_rate(rate: BitRate, hop: &Hop, whole: &Hop) -> (u64, u64) {
    let bytes = rate.0.div_ceil(8);
    let packets = bytes.div_ceil(LEAST_SPEECH + hop.around());
    let compressed = whole.around().saturating_sub(hop.around());
    (packets, bytes.saturating_add(packets.saturating_mul(compressed)))
}

impl AddAssign for Meter {
    fn add_assign(&mut self, other: Meter) {
        self.packets = self.packets.saturating_add(other.packets);
        self.packets_at_once = self.packets_at_once.saturating_add(other.packets_at_once);
        self.bytes = Bytes(self.bytes.0.saturating_add(other.bytes.0));
        self.bytes_at_once = Bytes(self.bytes_at_once.0.saturating_add(other.bytes_at_once.0));
    }
}

/// The media of calls, each with the meter of its call. Calls that share an address (a gateway's port) cannot be told apart there, and
/// have one meter together.
pub fn metered<'a>(calls: impl Iterator<Item = (&'a [Media], Meter)>) -> Vec<Metered> {
    let mut groups: Vec<Metered> = Vec::new();
    let mut group_of: HashMap<Media, usize> = HashMap::new();
    for (media, meter) in calls {
        let shared: BTreeSet<usize> = media.iter().filter_map(|it| group_of.get(it).copied()).collect();
        // The largest takes in the others, so that no address is moved often.
        let target = shared.iter().copied().max_by_key(|at| groups[*at].media.len()).unwrap_or_else(|| {
            groups.push(Metered::default());
            groups.len() - 1
        });
        for at in shared.into_iter().filter(|at| *at != target) {
            let joined = std::mem::take(&mut groups[at]);
            group_of.extend(joined.media.iter().map(|media| (*media, target)));
            groups[target].media.extend(joined.media);
            groups[target].meter += joined.meter;
        }
        for media in media {
            if group_of.insert(*media, target).is_none() {
                groups[target].media.push(*media);
            }
        }
        groups[target].meter += meter;
    }
    groups.retain(|group| !group.media.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Codec;

    fn offer(rate: u64, codec: Option<(Codec, u64)>, media: &[&str]) -> Offer {
        Offer {
            id: "a".parse().unwrap(),
            rate: BitRate(rate),
            codec: codec.map(|(codec, ms)| (codec, Duration::from_millis(ms))),
            media: media.iter().map(|it| it.parse().unwrap()).collect(),
        }
    }

    fn meter(rate: u64, codec: Option<(Codec, u64)>, hop: &Hop) -> (u64, u64) {
        let Meter { packets, bytes, .. } = Meter::of(&offer(rate, codec, &[]), hop);
        (packets, bytes.0)
    }

    const ETHERNET: Hop = Hop { overhead: Bytes(14), ..Hop::PLAIN };

    #[test]
    fn a_call_has_its_codecs_packets_and_a_twentieth_more() {
        let g729 = Some((Codec::G729, 20));
        // 50 packets of 60 bytes from the IP header on, whatever the hop puts around them or takes away.
        assert_eq!(meter(24_000, g729, &Hop::PLAIN), (53, 3_150));
        assert_eq!(meter(29_600, g729, &ETHERNET), (53, 3_150));
        let compressed = Hop { compressed: Some(Bytes(4)), ..Hop::PLAIN };
        assert_eq!(meter(9_600, g729, &compressed), (53, 3_150));
        // A plain figure says what is set aside, not what comes.
        assert_eq!(meter(8_000, g729, &ETHERNET), (53, 3_150));
        assert_eq!(meter(17_067, Some((Codec::G723, 30)), &Hop::PLAIN), (36, 2_285));
        let meter = Meter::of(&offer(24_000, g729, &[]), &Hop::PLAIN);
        assert_eq!((meter.packets_at_once, meter.bytes_at_once), (11, Bytes(630)));
        let v6 = Meter::of(&offer(32_000, g729, &["[fd00::1]:4000"]), &Hop::PLAIN);
        assert_eq!(v6.bytes, Bytes(4_200));
    }

    #[test]
    fn what_is_admitted_with_more_than_its_codec_or_without_one_has_its_rate() {
        // G.729 in packets of 10 ms, of which nobody knows: 100 of 50 bytes.
        assert_eq!(meter(40_000, None, &Hop::PLAIN), (105, 5_250));
        // Speech of G.711 and one of G.729: 100 packets, 13,000 bytes.
        let (packets, bytes) = meter(104_000, Some((Codec::G711, 20)), &Hop::PLAIN);
        assert!(packets >= 105 && bytes >= 13_650, "{packets} {bytes}");
        // What is compressed later is whole here.
        let compressed = Hop { compressed: Some(Bytes(4)), ..Hop::PLAIN };
        let (packets, bytes) = meter(9_600, None, &compressed);
        assert!(packets >= 53 && bytes >= 3_150, "{packets} {bytes}");
    }

    #[test]
    fn calls_that_share_an_address_share_a_meter() {
        let media = |texts: &[&str]| texts.iter().map(|it| it.parse().unwrap()).collect::<Vec<Media>>();
        let one = Meter::new(50, 3_000);
        let calls = [
            media(&["10.0.0.1:1", "10.0.0.2:2"]),
            media(&["10.0.0.3:3"]),
            media(&["10.0.0.4:4", "10.0.0.5:5"]),
            media(&[]),
            // It joins the first and the third.
            media(&["10.0.0.2:2", "10.0.0.5:5", "10.0.0.5:5"]),
        ];
        let groups = metered(calls.iter().map(|media| (media.as_slice(), one)));
        let packets = |count: u64| one.packets * count;
        assert_eq!(groups.iter().map(|it| it.meter.packets).sum::<u64>(), packets(4), "{groups:?}");
        assert_eq!(groups.len(), 2);
        let joined = groups.iter().find(|it| it.media.len() == 4).unwrap();
        assert_eq!((joined.meter.packets, joined.meter.bytes), (packets(3), Bytes(one.bytes.0 * 3)));
        let named: BTreeSet<&Media> = groups.iter().flat_map(|it| &it.media).collect();
        assert_eq!(named.len(), groups.iter().map(|it| it.media.len()).sum::<usize>(), "each once");
    }
}
