//! What one seed draws: the path, what its ends know of it, what befalls it, and what crosses. Pure.

use std::fmt;
use std::time::Duration;

use farhop_congestion::Choice;
use farhop_htotp::frame::Priority;
use farhop_orbit::{Leg, Profile, Way};
use farhop_transport::path::{End, PathPlan};
use farhop_units::{BitRate, Bytes};

use crate::dice::Dice;
use crate::ills::{Hole, Ills};

/// Everything about one run.
#[derive(Debug, Clone)]
pub struct Scene {
    /// From which it was drawn.
    pub seed: u64,
    /// Delay, rates and queues.
    pub profile: Profile,
    /// What both ends know of that.
    pub plan: PathPlan,
    /// How ground and the remote send.
    pub choices: [Choice; 2],
    /// What befalls datagrams, forward and return.
    pub ills: [Ills; 2],
    /// When the link is away.
    pub cuts: Vec<Cut>,
    /// What is asked.
    pub errands: Vec<Errand>,
}

/// One absence of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// How long it is there before.
    pub after: Duration,
    /// How long it is away.
    pub lasts: Duration,
    /// The only way that is cut; both where there is none.
    pub way: Option<Way>,
}

/// Something that the remote asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// When, after the carrier stands.
    pub at: Duration,
    /// How urgent it is.
    pub priority: Priority,
    /// Bytes of the request's body, or said into a tunnel, which says them back.
    pub up: usize,
    /// Bytes of the answer's body.
    pub down: usize,
    /// How it goes.
    pub course: Course,
}

/// How an errand goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course {
    /// A request and its answer.
    Exchange {
        /// Ground answers before it has the whole request.
        is_early: bool,
        /// What else it promises and pushes.
        promises: Vec<Promise>,
    },
    /// The remote loses interest after so many bytes of the answer.
    Cancelled(usize),
    /// Ground gives up after so many.
    Abandoned(usize),
    /// A tunnel.
    Tunnel,
}

/// Something that ground pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// Bytes of its body.
    pub size: usize,
    /// Whether the remote wants it.
    pub is_wanted: bool,
}

/// Round trips, from the lowest orbits to the moon's; rates.
const RTT: (f64, f64) = (0.005, 2.6);
const RATE: (f64, f64) = (64e3, 200e6);
/// Below this queue not even one flight of a handshake passes.
const SMALLEST_QUEUE: f64 = 32e3;
/// What crosses takes about so long at most, without anything that befalls it, and so many bytes.
const BUSY: f64 = 6.0;
const MOST_DOWN: f64 = 200e3;
const MOST_UP: f64 = 30e3;
/// UDP payload that IPv6 carries over any path (RFC 8200 §5), less its headers: no hole is narrower.
const NARROWEST: u64 = 1280 - 48;
const WIDEST: u64 = 1420;

impl Scene {
    /// Draws a scene.
    pub fn draw(seed: u64) -> Scene {
        let mut dice = Dice::new(seed);
        let profile = profile(&mut dice);
        let plan = plan(&mut dice, &profile);
        let choices = [End::Ground, End::Remote].map(|end| choice(&mut dice, &plan, end));
        let ills = if dice.chance(0.2) {
            [Ills::default(); 2]
        } else {
            [(); 2].map(|()| if dice.chance(0.75) { ills(&mut dice, &profile) } else { Ills::default() })
        };
        let cuts = cuts(&mut dice);
        let errands = errands(&mut dice, &profile);
        Scene { seed, profile, plan, choices, ills, cuts, errands }
    }

    /// What one way suffers.
    pub fn ills(&self, way: Way) -> Ills {
        self.ills[usize::from(way == Way::Return)]
    }
}

fn profile(dice: &mut Dice) -> Profile {
    let delay = Duration::from_secs_f64(dice.scaled(RTT.0, RTT.1) / 2.0);
    let forward = dice.scaled(RATE.0, RATE.1);
    let return_ = (forward / dice.scaled(1.0, 16.0)).max(RATE.0);
    let mut leg = |rate: f64| {
        let product = rate / 8.0 * 2.0 * delay.as_secs_f64();
        let queue = Bytes((product * dice.between(0.5, 2.0)).max(SMALLEST_QUEUE) as u64);
        Leg { delay, rate: Some(BitRate(rate as u64)), queue, ..Leg::transparent() }
    };
    Profile { name: "drawn".into(), forward: leg(forward), return_: leg(return_) }
}

/// Both ends know all of the path, its round trip, or nothing.
fn plan(dice: &mut Dice, profile: &Profile) -> PathPlan {
    let plan = match dice.below(3) {
        0 => PathPlan::for_profile(profile),
        1 => PathPlan { rtt: profile.rtt(), ..PathPlan::UNKNOWN },
        _ => PathPlan::UNKNOWN,
    };
    let repair = [0, plan.repair, plan.repair, 5 + dice.below(45) as u32];
    plan.with_repair(dice.pick(&repair))
}

fn choice(dice: &mut Dice, plan: &PathPlan, end: End) -> Choice {
    let chosen = dice.pick(&Choice::ALL);
    let is_possible = plan.sending_rate(end).is_some() || chosen.searches();
    if is_possible && dice.chance(0.5) { chosen } else { plan.default_choice(end) }
}

fn ills(dice: &mut Dice, profile: &Profile) -> Ills {
    let mut ills = Ills { burst: 1.0, ..Ills::default() };
    if dice.chance(0.5) {
        ills.loss = dice.scaled(0.001, 0.05);
        if dice.chance(0.5) {
            ills.burst = dice.between(2.0, 8.0);
        }
    }
    if dice.chance(0.3) {
        ills.damage = dice.scaled(0.001, 0.02);
    }
    if dice.chance(0.3) {
        ills.twice = dice.scaled(0.001, 0.1);
    }
    if dice.chance(0.4) {
        ills.overtaken = dice.scaled(0.001, 0.2);
        ills.late = profile.rtt().mul_f64(dice.scaled(0.01, 0.5)).max(Duration::from_millis(2));
    }
    if dice.chance(0.2) {
        let from = Duration::from_secs_f64(dice.between(0.0, 4.0));
        let largest = (NARROWEST + dice.below(WIDEST - NARROWEST)) as usize;
        ills.hole = Some(Hole { from, largest });
    }
    ills
}

/// None, one cut of up to a minute, or a link that comes and goes.
fn cuts(dice: &mut Dice) -> Vec<Cut> {
    let seconds = |dice: &mut Dice, least, most| Duration::from_secs_f64(dice.scaled(least, most));
    let way = |dice: &mut Dice| dice.pick(&[None, None, Some(Way::Forward), Some(Way::Return)]);
    match dice.below(10) {
        0..6 => Vec::new(),
        6..8 => {
            vec![Cut { after: seconds(dice, 0.01, 6.0), lasts: seconds(dice, 0.1, 60.0), way: way(dice) }]
        }
        _ => (0..2 + dice.below(7))
            .map(|_| Cut { after: seconds(dice, 0.05, 4.0), lasts: seconds(dice, 0.05, 6.0), way: way(dice) })
            .collect(),
    }
}

fn errands(dice: &mut Dice, profile: &Profile) -> Vec<Errand> {
    let most = |leg: &Leg, bytes: f64| {
        leg.rate.map_or(bytes, |rate| (rate.0 as f64 / 8.0 * BUSY).min(bytes)).max(2e3)
    };
    let count = 1 + dice.below(6);
    let (down, up) = (most(&profile.forward, MOST_DOWN), most(&profile.return_, MOST_UP));
    (0..count).map(|_| errand(dice, profile, down / count as f64, up / count as f64)).collect()
}

fn errand(dice: &mut Dice, profile: &Profile, most_down: f64, most_up: f64) -> Errand {
    let at = Duration::from_secs_f64(dice.between(0.0, 1.0)) + profile.rtt().mul_f64(dice.between(0.0, 2.0));
    let priority = Priority { urgency: dice.below(8) as u8, incremental: dice.chance(0.5) };
    let down = dice.scaled(1.0, 2.0 * most_down) as usize;
    let up = if dice.chance(0.4) { dice.scaled(1.0, 2.0 * most_up) as usize } else { 0 };
    let course = match dice.below(10) {
        0 => Course::Cancelled(dice.below(down as u64) as usize),
        1 => Course::Abandoned(dice.below(down as u64) as usize),
        2 => Course::Tunnel,
        _ => {
            let promises = (0..dice.below(3))
                .map(|_| {
                    let size = dice.scaled(1.0, most_down) as usize;
                    Promise { size, is_wanted: dice.chance(0.8) }
                })
                .collect();
            Course::Exchange { is_early: dice.chance(0.3), promises }
        }
    };
    match course {
        Course::Cancelled(_) | Course::Abandoned(_) => Errand { at, priority, up: 0, down, course },
        Course::Tunnel => Errand { at, priority, up: up.max(1), down: 0, course },
        Course::Exchange { .. } => Errand { at, priority, up, down, course },
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scene { profile, plan, choices: [ground, remote], .. } = self;
        let rate = |leg: &Leg| leg.rate.map_or(0.0, |rate| rate.0 as f64 / 1e3);
        let known = match (plan.rtt.is_zero(), plan.forward) {
            (true, _) => "nothing",
            (false, None) => "the round trip",
            (false, Some(_)) => "all",
        };
        writeln!(
            f,
            "{:?} of round trip, {:.0}/{:.0} kbit/s, queues {}/{} B; known is {known}, driven by {ground}/{remote}, \
             repairs up to {} %",
            profile.rtt(),
            rate(&profile.forward),
            rate(&profile.return_),
            profile.forward.queue.0,
            profile.return_.queue.0,
            plan.repair,
        )?;
        writeln!(f, "forward: {}\nreturn: {}", self.ills[0], self.ills[1])?;
        for Cut { after, lasts, way } in &self.cuts {
            let way = way.map_or("both ways".to_owned(), |way| way.to_string());
            writeln!(f, "cut after {after:?} for {lasts:?}, {way}")?;
        }
        for (number, errand) in self.errands.iter().enumerate() {
            writeln!(f, "{number}: {errand:?}")?;
        }
        Ok(())
    }
}
