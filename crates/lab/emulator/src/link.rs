//! The link as its users hold it: started between two devices, controlled and read while it runs. The work
//! itself is in `lane`.

use farhop_netdev::{AwakeProcessors, Tun};
use farhop_orbit::{Counters, Path, Profile, Supply, Way};
use farhop_units::{BitRate, Bytes};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::lane::{Lane, Seen};
use crate::standstill::Watch;
use crate::{LoadRecord, StartError, WayRecord};

/// The two ends of a terminal's way over the link.
#[derive(Debug)]
pub struct Hop {
    /// The gateway's device for this terminal.
    pub gateway: Tun,
    /// The terminal's own.
    pub terminal: Tun,
}

/// A running link; it stops when dropped.
#[derive(Debug)]
pub struct Link {
    handle: LinkHandle,
    threads: Vec<JoinHandle<()>>,
    /// `None` where the system does not allow it: the lateness shows it.
    _awake: Option<AwakeProcessors>,
}

/// Control of a running link; clones control the same one.
#[derive(Debug, Clone)]
pub struct LinkHandle(Arc<Shared>);

struct Shared {
    forward: Arc<Lane>,
    return_: Arc<Lane>,
    terminals: usize,
    setup: Mutex<Setup>,
    watch: Watch,
}

struct Setup {
    profile: Profile,
    since: Instant,
}

impl Link {
    /// Starts a link between the gateway and its terminals, which share what it carries either way. All devices must be up; equal
    /// seeds lose the same packets of the same traffic.
    ///
    /// # Errors
    /// Out of descriptors or threads, or capacity on demand is for fewer terminals than these.
    pub fn start(hops: Vec<Hop>, profile: &Profile, seed: u64) -> Result<Self, StartError> {
        seated(profile, hops.len())?;
        let epoch = Instant::now();
        let (forward, return_) = Path::directions(profile, seed);
        let (forward, return_) = (Arc::new(Lane::new(forward, epoch)?), Arc::new(Lane::new(return_, epoch)?));
        let terminals = hops.len();
        let (gateway, terminal): (Vec<_>, Vec<_>) =
            hops.into_iter().map(|hop| (hop.gateway, hop.terminal)).unzip();
        let (gateway, terminal) = (Arc::new(gateway), Arc::new(terminal));
        let setup = Mutex::new(Setup { profile: profile.clone(), since: epoch });
        let (ours, theirs, watch) = (Arc::clone(&forward), Arc::clone(&return_), Watch::start()?);
        let shared = Shared { forward: ours, return_: theirs, terminals, setup, watch };
        // Made before the threads: should the second not start, dropping it stops the first.
        let mut link = Link {
            handle: LinkHandle(Arc::new(shared)),
            threads: Vec::new(),
            _awake: AwakeProcessors::request().ok(),
        };
        let lanes = [
            ("link-forward", forward, Arc::clone(&gateway), Arc::clone(&terminal)),
            ("link-return", return_, terminal, gateway),
        ];
        for (name, lane, from, to) in lanes {
            let run = move || lane.run(&from, &to);
            link.threads.push(std::thread::Builder::new().name(name.into()).spawn(run)?);
        }
        Ok(link)
    }

    /// Control of this link, for whoever runs loads over it.
    pub fn handle(&self) -> &LinkHandle {
        &self.handle
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        Way::BOTH.into_iter().for_each(|way| self.handle.lane(way).stop());
        for thread in self.threads.drain(..) {
            // A panic of its own has been printed already, and there is no load left that it could spoil.
            let _ = thread.join();
        }
    }
}

impl LinkHandle {
    fn lane(&self, way: Way) -> &Lane {
        match way {
            Way::Forward => &self.0.forward,
            Way::Return => &self.0.return_,
        }
    }

    fn setup(&self) -> MutexGuard<'_, Setup> {
        self.0.setup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many terminals share the link.
    pub fn terminals(&self) -> usize {
        self.0.terminals
    }

    /// Announces that a terminal will have so many bytes to send on the return link, as [`farhop_orbit::Direction::announce`] has it.
    pub fn announce(&self, terminal: u16, bytes: Bytes) {
        self.0.return_.control(|now, direction| direction.announce(now, terminal, bytes));
    }

    /// The same, said to the network control centre: [`farhop_orbit::Direction::foretell`].
    pub fn foretell(&self, terminal: u16, bytes: Bytes) {
        self.0.return_.control(|now, direction| direction.foretell(now, terminal, bytes));
    }

    /// What a terminal was given of late on the return link: [`farhop_orbit::Direction::granted`].
    pub fn granted(&self, terminal: u16) -> Option<BitRate> {
        let mut granted = None;
        self.0.return_.control(|now, direction| granted = direction.granted(now, terminal));
        granted
    }

    /// The profile in force.
    pub fn profile(&self) -> Profile {
        self.setup().profile.clone()
    }

    /// Goes over to another profile at once; see [`farhop_orbit::Direction::switch`] for what is under way.
    pub fn switch(&self, profile: &Profile) {
        let mut setup = self.setup();
        for way in Way::BOTH {
            self.lane(way).control(|now, direction| direction.switch(now, profile.leg(way).clone()));
        }
        setup.profile = profile.clone();
    }

    /// Cuts the link both ways: what is offered, and what would arrive, before it is restored is lost.
    pub fn cut(&self) {
        Way::BOTH.into_iter().for_each(|way| self.lane(way).control(|now, direction| direction.cut(now)));
    }

    /// Ends a cut.
    pub fn restore(&self) {
        Way::BOTH.into_iter().for_each(|way| self.lane(way).control(|now, direction| direction.restore(now)));
    }

    /// From the next [`take_record`](Self::take_record) on records say what arrived in each `step`, and on which connections.
    pub fn watch(&self, step: Option<Duration>) {
        Way::BOTH.into_iter().for_each(|way| self.lane(way).state().watch = step);
    }

    /// What the link has seen since the last reset.
    pub fn record(&self) -> LoadRecord {
        let read = |way| {
            let state = self.lane(way).state();
            (state.direction.counters(), state.seen.clone())
        };
        let since = self.setup().since;
        self.load_record(since, self.0.watch.seen().longest(), read(Way::Forward), read(Way::Return))
    }

    /// What the link has seen since the last reset, and resets it.
    pub fn take_record(&self) -> LoadRecord {
        let since = std::mem::replace(&mut self.setup().since, Instant::now());
        let still = self.0.watch.seen().take();
        self.load_record(since, still, self.lane(Way::Forward).take(), self.lane(Way::Return).take())
    }

    fn load_record(
        &self,
        since: Instant,
        stood_still: Duration,
        forward: (Counters, Seen),
        return_: (Counters, Seen),
    ) -> LoadRecord {
        let (tcp_flows, udp_flows) = forward.1.flows.union(&return_.1.flows);
        let activity = forward.1.activity.clone().zip(return_.1.activity.clone());
        let profile = self.profile();
        let way = |(counters, seen): (Counters, Seen), way| {
            let (sum, longest) = seen.under_way;
            let lateness = seen.lateness.summary();
            let mean = sum.checked_div(u32::try_from(lateness.packets).unwrap_or(u32::MAX));
            let delay = profile.leg(way).one_way();
            WayRecord {
                counters,
                waited: mean.unwrap_or_default().saturating_sub(delay),
                waited_most: longest.saturating_sub(delay),
                lateness,
                refused: seen.refused,
                cpu: seen.cpu,
            }
        };
        let (ours, theirs) = (self.lane(Way::Forward).state(), self.lane(Way::Return).state());
        LoadRecord {
            forward: way(forward, Way::Forward),
            return_: way(return_, Way::Return),
            tcp_flows,
            udp_flows,
            activity: activity.map(|(down, up)| [down, up]),
            elapsed: since.elapsed(),
            stood_still,
            realtime: ours.realtime && theirs.realtime,
            failure: ours.failure.clone().or_else(|| theirs.failure.clone()),
        }
    }
}

/// Whether each of so many terminals has a place where capacity is given on demand.
fn seated(profile: &Profile, terminals: usize) -> Result<(), StartError> {
    let Supply::OnDemand(link) = &profile.return_.supply else { return Ok(()) };
    let places = link.terminals.max(1);
    if terminals <= usize::from(places) {
        return Ok(());
    }
    Err(StartError::Seats { link: profile.name.clone(), places, terminals })
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}
