//! One terminal and its return link in virtual time: what it waits for capacity when it is idle, and until a steady load has the
//! rate that it needs. Beside it what the numbers of the link say that it must be, worked out without the model.

use std::sync::Arc;
use std::time::Duration;

use farhop_orbit::{Direction, Entitlement, Leg, OnDemand, Signalling, Supply, Volume};
use farhop_units::{BitRate, Bytes};

const NO: Entitlement = Entitlement { cra: BitRate(0), rbdc: BitRate(0), volume: Volume::None, fca: false };

/// One way by satellite.
pub(super) const DELAY: Duration = Duration::from_millis(300);
/// What all may send together.
pub(super) const CAPACITY: BitRate = BitRate::kbit(512);
/// What a slot holds of a packet.
const PAYLOAD: u64 = 96;
/// Of a ping: IP, ICMP and 56 bytes; one slot takes it.
const PING: Bytes = Bytes(84);
/// Packets of a slot's size in each superframe of the steady load.
const STEADY: u32 = 12;
/// Superframes before anything is sent.
const IDLE: u32 = 40;
/// Superframes between two pings: longer than any control round, so that each finds an idle terminal.
const BETWEEN: u32 = 60;

/// A category of capacity by itself (EN 301 790 §6.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    Cra,
    Rbdc,
    Vbdc,
    AVbdc,
    Fca,
}

impl Category {
    pub(super) const ALL: [Category; 5] =
        [Category::Cra, Category::Rbdc, Category::Vbdc, Category::AVbdc, Category::Fca];

    pub(super) fn name(self) -> &'static str {
        match self {
            Category::Cra => "CRA",
            Category::Rbdc => "RBDC",
            Category::Vbdc => "VBDC",
            Category::AVbdc => "A-VBDC",
            Category::Fca => "FCA",
        }
    }

    /// A terminal that has nothing but this.
    fn entitlement(self) -> Entitlement {
        match self {
            Category::Cra => Entitlement { cra: CAPACITY, ..NO },
            Category::Rbdc => Entitlement { rbdc: CAPACITY, ..NO },
            Category::Vbdc => Entitlement { volume: Volume::Added, ..NO },
            Category::AVbdc => Entitlement { volume: Volume::Absolute, ..NO },
            Category::Fca => Entitlement { fca: true, ..NO },
        }
    }
}

/// A return link with superframes of this length, and terminals with these rights.
pub(super) fn shared(entitlement: Entitlement, superframe: Duration) -> OnDemand {
    OnDemand {
        superframe,
        capacity: CAPACITY,
        slot: Bytes(100),
        header: Bytes(4),
        control_round: 2 * DELAY + superframe,
        entitlement,
        rbdc_timeout: 8,
        signalling: Signalling { loss: 0.0, contention: None, size: Bytes(0) },
        terminals: 1,
        others: None,
    }
}

/// The return link as a direction.
pub(super) fn leg(shared: OnDemand) -> Leg {
    let supply = Supply::OnDemand(Arc::new(shared));
    Leg { delay: DELAY, rate: Some(CAPACITY), queue: Bytes(200_000), supply, ..Leg::transparent() }
}

/// Superframes from a request to its answer: there, one for the centre's table, and back.
fn round(superframe: Duration) -> u32 {
    let frames = (2 * DELAY + superframe).as_nanos().div_ceil(superframe.as_nanos().max(1));
    u32::try_from(frames).unwrap_or(u32::MAX)
}

/// What a packet waits at an idle terminal, on average over when in a superframe it comes: half a superframe, after which it is asked
/// for where it has to be, and then a control round.
pub(super) fn expected_wait(category: Category, superframe: Duration) -> Duration {
    let asked = match category {
        Category::Cra | Category::Fca => 0,
        Category::Rbdc | Category::Vbdc | Category::AVbdc => round(superframe),
    };
    superframe / 2 + asked * superframe
}

/// Superframes from the beginning of a steady load to the first that carries what comes in one.
pub(super) fn expected_ramp(category: Category, superframe: Duration) -> u32 {
    let round = round(superframe);
    match category {
        // Every superframe has its slots.
        Category::Cra | Category::Fca => 0,
        // What comes in the first is asked for at its end.
        Category::Vbdc | Category::AVbdc => 1 + round,
        // The rate asked for is that of the last control round's arrivals and a tenth, and what waits over one: after i superframes of
        // load 2.1 × i ÷ round of the load, all of it once i is round ÷ 2.1; and so it is given a round later.
        Category::Rbdc => (round * 10).div_ceil(21) + round,
    }
}

/// What each of many pings waited, wherever in its superframe it came.
pub(super) fn waits(category: Category, superframe: Duration) -> Vec<Duration> {
    let mut link = Direction::new(leg(shared(category.entitlement(), superframe)), 1);
    let sent = |number: u32| (IDLE + BETWEEN * number) * superframe + superframe * (number % 20) / 20;
    let mut waits = Vec::new();
    for number in 0..40 {
        drain(&mut link, sent(number), |due, at: Duration| waits.push(due - at - DELAY));
        link.handle_packet(sent(number), PING, sent(number));
    }
    drain(&mut link, sent(40), |due, at| waits.push(due - at - DELAY));
    waits
}

/// Superframes until a steady load of [`STEADY`] slots in each is carried as it comes; `None` if it never is.
pub(super) fn ramp(category: Category, superframe: Duration) -> Option<u32> {
    const LASTS: u32 = 120;
    let mut link = Direction::new(leg(shared(category.entitlement(), superframe)), 1);
    let mut carried = vec![0; LASTS as usize];
    let begin = IDLE * superframe;
    let mut count = |due: Duration, _: ()| {
        // Its last bit left a delay ago, at the end of a slot.
        let since = (due - DELAY).saturating_sub(begin + Duration::from_micros(1));
        let frame = usize::try_from(since.as_nanos() / superframe.as_nanos().max(1)).unwrap_or(usize::MAX);
        if let Some(bytes) = carried.get_mut(frame) {
            *bytes += PAYLOAD;
        }
    };
    for number in 0..LASTS * STEADY {
        let at = begin + superframe * number / STEADY;
        drain(&mut link, at, &mut count);
        link.handle_packet(at, Bytes(PAYLOAD), ());
    }
    let whole = u64::from(STEADY) * PAYLOAD;
    carried.iter().position(|bytes| *bytes >= whole).and_then(|frame| u32::try_from(frame).ok())
}

/// Hands what arrives by `now` to `each`, with when it did.
pub(super) fn drain<P>(link: &mut Direction<P>, now: Duration, mut each: impl FnMut(Duration, P)) {
    while let Some(sent) = link.poll_transmit(now) {
        each(sent.due, sent.packet);
    }
}
