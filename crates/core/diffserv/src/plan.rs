//! From the rate of a link to what each of its queues has: a hierarchical token bucket (Linux's HTB) with one root and one
//! leaf for each queue.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use crate::class::Queue;
use crate::patient::Patient;

/// A packet of an Ethernet with its header.
const LARGEST_PACKET: Bytes = Bytes(1514);
/// What a token bucket saves up at most: more is a queue in the modem, less is lost whenever a timer comes late.
const SAVED: Duration = Duration::from_millis(2);
/// The same for EF: calls that speak at the same moment are not held back for one another.
const SAVED_EF: Duration = Duration::from_millis(40);
/// What waits in a queue that is a plain FIFO: a TCP connection over half a second needs some of its window there.
const WAITS: Duration = Duration::from_millis(300);
/// And at the least, in packets.
const WAIT_AT_LEAST: u64 = 8;
/// Below this a guarantee is none: the kernel counts time for a packet in seconds.
const LEAST: BitRate = BitRate::kbit(1);
/// HTB complains of quanta outside of these.
const QUANTA: (u64, u64) = (1_514, 60_000);

/// What a queue has of the link, in hundredths of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// What it has whatever the others do; at least 1.
    pub guaranteed: u32,
    /// What it never exceeds.
    pub ceiling: u32,
}

/// The shares of all queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares([Share; 7]);

/// What each queue of a link has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The rate of the link itself.
    pub link: BitRate,
    /// The rate that is sent at, a little below it, so that no queue builds where nothing is ours.
    pub shaped: BitRate,
    /// Bytes that may go at once after a pause.
    pub burst: Bytes,
    /// One for each queue, in their order.
    pub queues: [Queued; 7],
    /// What each kind has of LE, in the order of [`Patient::BACKGROUND`].
    pub kinds: [Queued; 3],
}

/// What a queue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// Which.
    pub queue: Queue,
    /// The rate that it has whatever the others do.
    pub guaranteed: BitRate,
    /// The rate that it never exceeds.
    pub ceiling: BitRate,
    /// Bytes that may go at once after a pause.
    pub burst: Bytes,
    /// Bytes that it sends in turn with its equals.
    pub quantum: Bytes,
    /// Bytes that wait in it at most, where it is a plain FIFO.
    pub room: Bytes,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The shares are more than the link.
    #[error("the guaranteed shares make {0} % together, and a link has 100 %; lower some")]
    Exceeded(u32),
    /// A queue has nothing.
    #[error("{0} has no guaranteed share; give it 1 % at least")]
    Nothing(Queue),
    /// A queue may not use what it is guaranteed.
    #[error(
        "{queue} is guaranteed {guaranteed} % and may use {ceiling} % at most; raise that or lower the guarantee"
    )]
    Ceiling {
        /// Which.
        queue: Queue,
        /// Its guarantee.
        guaranteed: u32,
        /// Its ceiling.
        ceiling: u32,
    },
    /// The margin leaves nothing.
    #[error("a margin of {0} % leaves nothing of the link; 50 % is the most")]
    Margin(u32),
}

impl Shares {
    /// Shares in the order of [`Queue::ALL`].
    ///
    /// # Errors
    /// They are more than there is, or contradict themselves.
    pub fn new(shares: [Share; 7]) -> Result<Shares, PlanError> {
        for (queue, Share { guaranteed, ceiling }) in Queue::ALL.into_iter().zip(shares) {
            if guaranteed == 0 {
                return Err(PlanError::Nothing(queue));
            }
            if ceiling < guaranteed || ceiling > 100 {
                return Err(PlanError::Ceiling { queue, guaranteed, ceiling });
            }
        }
        let sum = shares.iter().fold(0u32, |sum, share| sum.saturating_add(share.guaranteed));
        if sum > 100 { Err(PlanError::Exceeded(sum)) } else { Ok(Shares(shares)) }
    }

    /// What a queue has.
    pub fn of(&self, queue: Queue) -> Share {
        self.0[queue as usize]
    }

    /// The same with another ceiling of a queue; where that is less than its share it has no more than that, and where it is none,
    /// or EF's, all is as before.
    #[must_use]
    pub fn with_ceiling(mut self, queue: Queue, hundredths: u32) -> Shares {
        if queue != Queue::Ef && (1..=100).contains(&hundredths) {
            let share = &mut self.0[queue as usize];
            (share.guaranteed, share.ceiling) = (share.guaranteed.min(hundredths), hundredths);
        }
        self
    }
}

impl Plan {
    /// The plan for a link of this rate, of which `margin` hundredths are left unused.
    ///
    /// Each queue has 1 kbit/s at the least, however slow the link is: where the others have no room for it beside their shares, they give
    /// it up in proportion. A link of less than that for each is sent at as much all the same: what followed it there found it all but
    /// cut.
    ///
    /// EF never has more than its share (RFC 3246 §2.2: its configured rate), since calls beyond it are refused; what EF
    /// leaves unused others have.
    ///
    /// # Errors
    /// The margin leaves nothing.
    pub fn new(link: BitRate, margin: u32, shares: &Shares) -> Result<Plan, PlanError> {
        if margin > 50 {
            return Err(PlanError::Margin(margin));
        }
        let shaped = percent(link, 100 - margin).max(BitRate(LEAST.0 * Queue::ALL.len() as u64));
        let guarantees = guarantees(shaped, shares);
        let mut queues = [Queued::new(Queue::De, LEAST, LEAST); 7];
        for (queued, queue) in queues.iter_mut().zip(Queue::ALL) {
            let guaranteed = guarantees[queue as usize];
            let ceiling = match queue {
                Queue::Ef => guaranteed,
                _ => percent(shaped, shares.of(queue).ceiling).max(guaranteed),
            };
            *queued = Queued::new(queue, guaranteed, ceiling);
        }
        let le = queues[Queue::Le as usize];
        let third = BitRate(le.guaranteed.0 / 3).max(LEAST);
        let kinds = [Queued::new(Queue::Le, third, le.ceiling); 3];
        Ok(Plan { link, shaped, burst: at_least_one(shaped.bytes_in(SAVED)), queues, kinds })
    }

    /// The same with ceilings of what can wait: streaming's and bulk's are their queues', and those of the others hold within LE. What is
    /// guaranteed is no more than that either.
    #[must_use]
    pub fn with_ceilings(mut self, ceilings: &[(Patient, BitRate)]) -> Plan {
        for (of, most) in ceilings {
            let queued = match of {
                Patient::Streaming => &mut self.queues[Queue::Af2 as usize],
                Patient::Bulk => &mut self.queues[Queue::Af1 as usize],
                Patient::Updates => &mut self.kinds[0],
                Patient::Backups => &mut self.kinds[1],
                Patient::PeerToPeer => &mut self.kinds[2],
            };
            let ceiling = queued.ceiling.min((*most).max(LEAST));
            *queued = Queued::new(queued.queue, queued.guaranteed.min(ceiling), ceiling);
        }
        self
    }

    /// What a queue has.
    pub fn of(&self, queue: Queue) -> &Queued {
        &self.queues[queue as usize]
    }

    /// The rate set aside for calls.
    pub fn ef(&self) -> BitRate {
        self.of(Queue::Ef).guaranteed
    }

    /// How long a packet of EF waits at most for others: one of the largest packets has just begun, and what the bucket had
    /// saved is ahead of it. On a link of 256 kbit/s that alone is 50 ms.
    pub fn wait_behind_others(&self) -> Duration {
        self.shaped.time_for(LARGEST_PACKET + self.burst)
    }
}

impl Queued {
    fn new(queue: Queue, guaranteed: BitRate, ceiling: BitRate) -> Queued {
        let saved = if queue == Queue::Ef { SAVED_EF } else { SAVED };
        Queued {
            queue,
            guaranteed,
            ceiling,
            burst: at_least_one(guaranteed.bytes_in(saved)),
            quantum: Bytes(guaranteed.bytes_in(WAITS).0.clamp(QUANTA.0, QUANTA.1)),
            room: Bytes(ceiling.bytes_in(WAITS).0.max(WAIT_AT_LEAST * LARGEST_PACKET.0)),
        }
    }
}

/// What each queue has whatever the others do: its share, or the least. The smallest are given theirs first, so that what they have beyond
/// their shares is what the others do without.
fn guarantees(shaped: BitRate, shares: &Shares) -> [BitRate; 7] {
    let share = |queue: Queue| shares.of(queue).guaranteed;
    let mut queues = Queue::ALL;
    queues.sort_by_key(|queue| share(*queue));
    let (mut left, mut parts) = (shaped, queues.iter().map(|queue| share(*queue)).sum::<u32>());
    let mut guarantees = [LEAST; 7];
    for queue in queues {
        let part = u128::from(left.0) * u128::from(share(queue)) / u128::from(parts.max(1));
        let part = BitRate(u64::try_from(part).unwrap_or(u64::MAX));
        let rate = part.min(percent(shaped, share(queue))).max(LEAST);
        guarantees[queue as usize] = rate;
        (left, parts) = (BitRate(left.0.saturating_sub(rate.0)), parts - share(queue));
    }
    guarantees
}

fn percent(rate: BitRate, hundredths: u32) -> BitRate {
    let bits = u128::from(rate.0) * u128::from(hundredths) / 100;
    BitRate(u64::try_from(bits).unwrap_or(u64::MAX))
}

/// A bucket of none would be one of the tool's choice.
fn at_least_one(bytes: Bytes) -> Bytes {
    bytes.max(Bytes(64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// EF 30, AF4 10, AF3 25, AF2 15, AF1 10, DE 8, LE 2.
    fn shares() -> Shares {
        let of = |guaranteed| Share { guaranteed, ceiling: 100 };
        Shares::new([30, 10, 25, 15, 10, 8, 2].map(of)).unwrap()
    }

    #[test]
    fn a_link_is_divided_by_its_shares_below_its_rate() {
        let plan = Plan::new(BitRate::kbit(512), 5, &shares()).unwrap();
        assert_eq!((plan.shaped, plan.ef()), (BitRate(486_400), BitRate(145_920)));
        assert_eq!(plan.of(Queue::Af3).guaranteed, BitRate(121_600));
        assert_eq!(plan.of(Queue::Af3).ceiling, plan.shaped);
        assert_eq!(plan.of(Queue::Ef).ceiling, plan.ef(), "EF has no more than its share");
    }

    #[test]
    fn voice_waits_for_one_packet_and_little_more() {
        let wait = |kbit| Plan::new(BitRate::kbit(kbit), 5, &shares()).unwrap().wait_behind_others();
        // geo-hylas2: 8 Mbit/s forward, 512 kbit/s return; below 40 ms in both.
        assert!(wait(8_000) < Duration::from_millis(4), "{:?}", wait(8_000));
        assert!(wait(512) < Duration::from_millis(27), "{:?}", wait(512));
        assert!(wait(256) > Duration::from_millis(50), "{:?}", wait(256));
    }

    #[test]
    fn shares_that_contradict_themselves_are_refused_in_words() {
        let refused = |shares: [(u32, u32); 7]| {
            Shares::new(shares.map(|(guaranteed, ceiling)| Share { guaranteed, ceiling }))
                .unwrap_err()
                .to_string()
        };
        let good = (10, 100);
        let mut over = [good; 7];
        over[2].0 = 41;
        assert_eq!(
            refused(over),
            "the guaranteed shares make 101 % together, and a link has 100 %; lower some"
        );
        let mut none = [good; 7];
        none[6].0 = 0;
        assert_eq!(refused(none), "LE has no guaranteed share; give it 1 % at least");
        let mut low = [good; 7];
        low[4].1 = 9;
        assert!(refused(low).starts_with("AF1 is guaranteed 10 % and may use 9 % at most"));
        // A window may leave a class less than the kernel can count.
        let little = Plan::new(BitRate::kbit(64), 5, &shares().with_ceiling(Queue::Le, 1)).unwrap();
        let le = little.of(Queue::Le);
        assert_eq!((le.guaranteed, le.ceiling), (BitRate::kbit(1), BitRate::kbit(1)));
    }

    #[test]
    fn a_link_that_is_slower_than_its_shares_is_divided_all_the_same() {
        let plan = Plan::new(BitRate::kbit(32), 5, &shares()).unwrap();
        // 2 % would be 608 bit/s. What is missing the others give, each in proportion.
        assert_eq!((plan.shaped, plan.of(Queue::Le).guaranteed), (BitRate(30_400), BitRate::kbit(1)));
        assert_eq!((plan.ef(), plan.of(Queue::Af4).guaranteed), (BitRate(9_000), BitRate(3_000)));
        // Where there is room beside the shares nobody gives any.
        let roomy =
            Shares::new([30, 10, 25, 15, 10, 5, 1].map(|guaranteed| Share { guaranteed, ceiling: 100 }));
        let plan = Plan::new(BitRate::kbit(32), 5, &roomy.unwrap()).unwrap();
        assert_eq!((plan.ef(), plan.of(Queue::De).guaranteed), (BitRate(9_120), BitRate(1_520)));
        let cut = Plan::new(BitRate(100), 0, &shares()).unwrap();
        assert_eq!((cut.shaped, cut.ef()), (BitRate::kbit(7), BitRate::kbit(1)));
    }

    #[test]
    fn a_lower_ceiling_takes_what_is_beyond_it_and_leaves_ef_alone() {
        let shares =
            shares().with_ceiling(Queue::Af1, 5).with_ceiling(Queue::Le, 50).with_ceiling(Queue::Ef, 1);
        assert_eq!(shares.of(Queue::Af1), Share { guaranteed: 5, ceiling: 5 });
        assert_eq!(shares.of(Queue::Le), Share { guaranteed: 2, ceiling: 50 });
        assert_eq!(shares.of(Queue::Ef), Share { guaranteed: 30, ceiling: 100 });
        Plan::new(BitRate::kbit(512), 5, &shares).unwrap();
    }

    #[test]
    fn what_can_wait_may_have_ceilings_of_its_own() {
        let plan = Plan::new(BitRate::mbit(1), 0, &shares()).unwrap();
        let le = *plan.of(Queue::Le);
        assert!(plan.kinds.iter().all(|kind| kind.ceiling == le.ceiling && kind.guaranteed < le.guaranteed));
        let capped = plan.clone().with_ceilings(&[
            (Patient::Backups, BitRate::kbit(50)),
            (Patient::PeerToPeer, BitRate(0)),
            (Patient::Bulk, BitRate::kbit(20)),
            (Patient::Streaming, BitRate::mbit(9)),
        ]);
        let ceilings = capped.kinds.map(|kind| kind.ceiling);
        assert_eq!(ceilings, [le.ceiling, BitRate::kbit(50), BitRate::kbit(1)]);
        let bulk = capped.of(Queue::Af1);
        assert_eq!((bulk.guaranteed, bulk.ceiling), (BitRate::kbit(20), BitRate::kbit(20)));
        assert_eq!(capped.of(Queue::Af2), plan.of(Queue::Af2), "what is higher than there is is none");
        assert_eq!(capped.of(Queue::Le), plan.of(Queue::Le));
    }

    proptest! {
        #[test]
        fn guarantees_never_exceed_the_link(
            kbit in prop_oneof![0u64..200, 200u64..10_000_000],
            margin in 0u32..=50,
            parts in proptest::array::uniform7(1u32..=14),
        ) {
            let shares = Shares::new(parts.map(|guaranteed| Share { guaranteed, ceiling: 100 })).unwrap();
            let plan = Plan::new(BitRate::kbit(kbit), margin, &shares).unwrap();
            let sum: u64 = plan.queues.iter().map(|queued| queued.guaranteed.0).sum();
            prop_assert!(sum <= plan.shaped.0 && plan.shaped <= plan.link.max(BitRate::kbit(7)));
            for queued in plan.queues {
                prop_assert!(queued.guaranteed >= LEAST);
                prop_assert!(queued.guaranteed <= queued.ceiling && queued.ceiling <= plan.shaped);
                prop_assert!(queued.burst.0 > 0 && queued.room.0 >= 8 * 1514);
                prop_assert!((1_514..=60_000).contains(&queued.quantum.0));
            }
        }
    }
}
