//! Seeded simulation of both real ends over a path that treats them badly, in virtual time.
//!
//! A seed draws a path of 5 ms to 2.6 s and 64 kbit/s to 200 Mbit/s, what its ends know of it, how each sends and repairs,
//! what befalls datagrams (loss, alone or in runs, damage, duplicates, overtaking, an MTU black hole), when the link is
//! away, and what crosses: exchanges with bodies both ways, promises and pushes, tunnels, some cancelled or abandoned. The
//! ends are those of the product: QUIC, the repair layer, HTOTP, their drivers. Every byte is compared, everything has to
//! end, and nothing may stand still.
//!
//! While anything is open, the time without an arrival at either end is at most 3 round trips, queues included, from when the
//! path last took something or was cut, beside the sleep that `log` describes. A path may go on taking this or that, so there
//! is a bound on the whole of such a time as well, cuts not counted: twice that, and once more for each cut, since nobody hears
//! of the end of one, nor of a loss or its repair, sooner.
//!
//! Where cuts are all that befalls a path, nothing has to be found lost and found again: beside the cuts it is that sleep, and 3
//! round trips for each cut in that time. How many of all seeds keep within 3 round trips of the empty path, as the bound
//! is written, is counted beside.

mod dice;
mod ground;
pub mod ills;
mod log;
mod many;
mod remote;
mod run;
pub mod scene;
mod socket;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use farhop_orbit::Way;

pub use log::Silence;
pub use many::{Lives, live_many};
pub use scene::Scene;

use ills::Ills;
use log::{Entries, Log, asked};

/// What became of one seed.
#[derive(Debug, Clone)]
pub struct Life {
    /// What was drawn.
    pub scene: Scene,
    /// Of everything that happened, datagram by datagram; equal seeds give equal traces.
    pub trace: u64,
    /// What went wrong; nothing should have.
    pub faults: Vec<String>,
    /// The longest time without an arrival in which the path took nothing.
    pub stall: Silence,
    /// The longest time without any arrival, cuts not counted.
    pub pause: Silence,
}

impl Life {
    /// The longest time without any arrival was no longer than the cut and three round trips of the empty path.
    pub fn is_literal(&self) -> bool {
        self.pause.long <= 3 * self.scene.profile.rtt()
    }

    /// Cuts were all that befell the path.
    pub fn is_cut_alone(&self) -> bool {
        is_cut_alone(&self.scene)
    }
}

fn is_cut_alone(scene: &Scene) -> bool {
    !scene.cuts.is_empty() && scene.ills.iter().all(Ills::are_none)
}

impl fmt::Display for Life {
    /// What went wrong, with what was drawn and the command that lives it again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Life { scene, faults, .. } = self;
        writeln!(f, "seed {}: {}", scene.seed, faults.join("; "))?;
        write!(f, "{scene}")?;
        write!(f, "FARHOP_SEED={} cargo test -p farhop-seeds --test seeds drawn -- --nocapture", scene.seed)
    }
}

/// Lives one seed, which is told on standard error as it happens or not.
///
/// # Panics
/// The system has no room for a runtime.
pub fn live(seed: u64, is_told: bool) -> Life {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime of one thread needs nothing of the system");
    runtime.block_on(async {
        let scene = Arc::new(Scene::draw(seed));
        let round_trip = scene.profile.rtt();
        let log = Arc::new(Log::new(round_trip, is_told));
        let link = run::run(Arc::clone(&scene), Arc::clone(&log)).await;
        let queues = Way::BOTH.map(|way| link.counters(way).queue_peak);
        let Entries { trace, mut faults, stall, pause } = log.entries();
        let most = bound(&scene, queues);
        let longest = (most + asked(round_trip)) * (2 + scene.cuts.len() as u32);
        for (Silence { from, long, .. }, most, when) in
            [(stall, most, "though nothing was taken"), (pause, longest, "beside cuts")]
        {
            if long > most {
                faults
                    .push(format!("nothing came for {long:?} from {from:?} on {when}; {most:?} are allowed"));
            }
        }
        let Silence { from, long, cuts } = pause;
        let plain = most * cuts.max(1) + asked(round_trip);
        if is_cut_alone(&scene) && long > plain {
            faults.push(format!(
                "nothing came for {long:?} from {from:?} on beside {cuts} cuts, where nothing else is wrong; {plain:?} are allowed"
            ));
        }
        Life { scene: (*scene).clone(), trace, faults, stall, pause }
    })
}

/// How long nothing may come while the path takes nothing: three round trips, with the queues that were seen.
fn bound(scene: &Scene, queues: [farhop_units::Bytes; 2]) -> Duration {
    let waits = Way::BOTH.into_iter().zip(queues).map(|(way, queue)| {
        let rate = scene.profile.leg(way).rate;
        rate.map_or(Duration::ZERO, |rate| rate.time_for(queue)) + scene.ills(way).late
    });
    let round_trip = scene.profile.rtt() + waits.sum::<Duration>();
    round_trip * 3
}
