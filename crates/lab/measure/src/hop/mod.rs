//! What the carrier itself does: downloads through both ends as processes over an emulated link, timed at the user's end and
//! compared with what the link allows.

mod client;
pub(crate) mod cut;
pub(crate) mod downloads;
pub(crate) mod fresh;
pub(crate) mod loss;
pub(crate) mod tunnel;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use farhop_compare::{Ends, Keys, Stage, Variant};
use farhop_orbit::Profile;
use farhop_testbed::{LoadRecord, Place, Testbed, fit};
use farhop_testkit::{File, Site, SiteOrigin};
use farhop_units::Bytes;

use crate::group::Context;
pub(crate) use client::{Got, Via, Wanted};

use crate::{MeasureError, Row};

/// Attempts at a load during which the link was late.
const ATTEMPTS: usize = 4;

/// What every scene of this folder serves: path, length in bytes. A path's seed is its place here.
const BULK: [(&str, u64); 3] = [("/2m", 2_000_000), ("/10m", 10_000_000), ("/20m", 20_000_000)];
/// Small objects, `/small/0` and so on, and their length.
pub(crate) const SMALL: (usize, u64) = (200, 5_000);

/// A testbed with an origin, or a second one that sends with BBR, and both ends.
pub(crate) struct Hop<'a> {
    pub(crate) context: &'a Context,
    /// Without loss.
    pub(crate) profile: Profile,
    // Dropped in this order: processes before what they live in.
    ends: Ends,
    _origins: Vec<SiteOrigin>,
    _runtime: tokio::runtime::Runtime,
    keys: Keys,
    pub(crate) testbed: Testbed,
    folder: tempfile::TempDir,
}

/// Something that was loaded.
pub(crate) struct Load {
    /// What was wanted, in the same order.
    pub(crate) got: Vec<Got>,
    /// What the link had seen when the last byte arrived.
    pub(crate) at_end: LoadRecord,
    /// And a round trip later, last acknowledgements included.
    pub(crate) record: LoadRecord,
    /// Whether the link was late: an indication, not a measurement.
    pub(crate) late: bool,
}

impl Load {
    /// From the first request to the last byte.
    pub(crate) fn time(&self) -> Duration {
        self.got.iter().map(|got| got.end).max().unwrap_or_default()
    }

    /// Bytes that had crossed towards the user, layer 3 up.
    pub(crate) fn wire(&self) -> Bytes {
        self.at_end.forward.counters.delivered.bytes
    }
}

impl<'a> Hop<'a> {
    /// Over the link of this name. The first download of both ends is made already: the carrier is warm.
    pub(crate) fn up(context: &'a Context, name: &str) -> Result<Hop<'a>, MeasureError> {
        let profile = Profile::named(name).map_err(|error| MeasureError::Unexpected(error.to_string()))?;
        let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
        let testbed = Testbed::up(&profile, 1)?;
        let calibration = testbed.calibrate()?;
        eprintln!("{calibration}");
        if let farhop_testbed::Fitness::Unfit(reason) = calibration.fitness() {
            return Err(MeasureError::Unexpected(format!("the link is not what it should be: {reason}")));
        }
        let keys = Keys::make(folder.path())?;
        let runtime = tokio::runtime::Runtime::new().map_err(MeasureError::system("a runtime"))?;
        let mut origins = Vec::new();
        for (number, controller) in [None, Some("bbr")].into_iter().enumerate() {
            let address = SocketAddr::from((testbed.addresses.origin(number as u16), 80));
            // A kernel without BBR has no second origin; whoever wants it says so.
            if let Some(listener) = listener(&testbed, address, controller)? {
                let _inside = runtime.enter();
                let listener = tokio::net::TcpListener::from_std(listener);
                origins.push(site().serve_on(listener.map_err(MeasureError::system("the origin"))?));
            }
        }
        let stage = Stage {
            testbed: &testbed,
            folder: folder.path(),
            keys: &keys,
            interception: None,
            interrupt: &context.interrupt,
        };
        let ends = Ends::start(stage, Variant::FarhopTransport)?;
        let hop = Hop { context, profile, ends, _origins: origins, _runtime: runtime, keys, testbed, folder };
        hop.load(Via::Farhop, &[bulk("/2m")])?;
        Ok(hop)
    }

    /// Loads all of `wanted` at once, each on a connection of its own, every byte compared; again, as often as three times, where
    /// the link was late meanwhile.
    pub(crate) fn load(&self, via: Via, wanted: &[Wanted]) -> Result<Load, MeasureError> {
        self.load_while(via, wanted, || Ok(()))
    }

    /// The same, with `meanwhile` done beside it from its beginning.
    pub(crate) fn load_while(
        &self,
        via: Via,
        wanted: &[Wanted],
        meanwhile: impl Fn() -> Result<(), MeasureError> + Sync,
    ) -> Result<Load, MeasureError> {
        let mut attempt = 1;
        loop {
            self.pause()?;
            let load = self.attempt(via, wanted, &meanwhile)?;
            if !load.late || attempt == ATTEMPTS {
                return Ok(load);
            }
            eprintln!("the link was late, again");
            attempt += 1;
        }
    }

    /// The same through Farhop, once, and without waiting for anything to settle before.
    pub(crate) fn load_at_once(&self, wanted: &[Wanted]) -> Result<Load, MeasureError> {
        self.attempt(Via::Farhop, wanted, &|| Ok(()))
    }

    fn attempt(
        &self,
        via: Via,
        wanted: &[Wanted],
        meanwhile: &(impl Fn() -> Result<(), MeasureError> + Sync),
    ) -> Result<Load, MeasureError> {
        let link = self.testbed.link();
        link.take_record();
        let (got, done) = std::thread::scope(|scope| {
            let client = scope.spawn(|| self.fetch(via, wanted));
            let done = meanwhile();
            let stopped = |_| Err(MeasureError::Unexpected("the client stopped".into()));
            (client.join().unwrap_or_else(stopped), done)
        });
        let at_end = link.record();
        done?;
        let got = got?;
        self.pause()?;
        let record = link.take_record();
        let late = !fit(&record).is_fit();
        Ok(Load { got, at_end, record, late })
    }

    /// Waits until what was under way has arrived and was acknowledged.
    fn pause(&self) -> Result<(), MeasureError> {
        Ok(self.context.interrupt.sleep(self.profile.rtt() + Duration::from_millis(100))?)
    }

    fn fetch(&self, via: Via, wanted: &[Wanted]) -> Result<Vec<Got>, MeasureError> {
        let origin = |number| SocketAddr::from((self.testbed.addresses.origin(number), 80));
        let (server, origin) = match via {
            Via::Farhop => (self.ends.proxy, origin(0)),
            Via::DirectBbr => (origin(1), origin(1)),
        };
        let client = self.testbed.namespace(Place::Client);
        let got = client
            .run(|| client::fetch(via, server, origin, wanted, &self.context.interrupt))
            .map_err(farhop_testbed::Error::from)?;
        self.context.interrupt.check()?;
        got.map_err(MeasureError::system("a download"))
    }

    /// Ends the remote and starts it again, without waiting for its carrier.
    pub(crate) fn restart_remote(&mut self) -> Result<(), MeasureError> {
        let Hop { context, ends, keys, testbed, folder, .. } = self;
        let stage =
            Stage { testbed, folder: folder.path(), keys, interception: None, interrupt: &context.interrupt };
        Ok(ends.restart_remote(stage)?)
    }

    /// Loses packets at random from now on, both ways with this probability.
    pub(crate) fn lose(&self, share: f64) {
        self.testbed.link().switch(&self.profile.clone().with_loss(share, share));
    }

    /// Round trip and transmission of so many bytes towards the user: what no transport can beat.
    pub(crate) fn limit(&self, wire: Bytes) -> Duration {
        let sending = self.profile.forward.rate.map(|rate| rate.time_for(wire)).unwrap_or_default();
        self.profile.rtt() + sending
    }

    /// How many loads of each kind.
    pub(crate) fn runs(&self) -> u32 {
        self.context.runs.unwrap_or(5)
    }
}

/// A listener at the origins, for connections that send with `controller`; none where the kernel lacks it.
fn listener(
    testbed: &Testbed,
    address: SocketAddr,
    controller: Option<&str>,
) -> Result<Option<TcpListener>, MeasureError> {
    if controller.is_some_and(|name| farhop_testbed::require_congestion_control(name).is_err()) {
        return Ok(None);
    }
    let listen = || {
        let listener = TcpListener::bind(address)?;
        if let Some(name) = controller {
            farhop_netdev::set_congestion_control(&listener, name)?;
        }
        listener.set_nonblocking(true)?;
        Ok(Some(listener))
    };
    let listening = testbed.namespace(Place::Origins).run(listen).map_err(farhop_testbed::Error::from)?;
    listening.map_err(MeasureError::system("the origin's port"))
}

/// Nothing of it may be held: each load crosses.
fn site() -> Site {
    let file = |seed, length| File::pattern(seed, length).field("cache-control", "no-store");
    let site = BULK
        .iter()
        .zip(1..)
        .fold(Site::new(), |site, ((path, length), seed)| site.file(path, file(seed, *length)));
    small().iter().fold(site, |site, wanted| site.file(&wanted.path, file(wanted.seed, wanted.length)))
}

/// One of the large files.
pub(crate) fn bulk(path: &str) -> Wanted {
    let place = BULK.iter().position(|(name, _)| *name == path).unwrap_or_default();
    Wanted::new(path, place as u64 + 1, BULK[place].1)
}

/// The small objects.
pub(crate) fn small() -> Vec<Wanted> {
    (0..SMALL.0).map(|number| Wanted::new(format!("/small/{number}"), 100 + number as u64, SMALL.1)).collect()
}

/// A row of the median time of some loads against a multiple of a limit.
pub(crate) fn within(what: impl Into<String>, loads: &[Load], limit: Duration, factor: f64) -> Row {
    let mut times: Vec<_> = loads.iter().map(Load::time).collect();
    let middle = median(&mut times);
    let ratio = middle.as_secs_f64() / limit.as_secs_f64();
    let measured = format!("{ratio:.3} × ({}){}", against(middle, limit), lateness(loads));
    Row::judged(what, measured, format!("≤ {factor:.2} × limit"), ratio <= factor)
}

/// A time and its limit in words.
pub(crate) fn against(time: Duration, limit: Duration) -> String {
    format!("{:.2} s, limit {:.2} s", time.as_secs_f64(), limit.as_secs_f64())
}

/// A remark where loads were late.
pub(crate) fn lateness(loads: &[Load]) -> &'static str {
    if loads.iter().any(|load| load.late) { ", late: indicative" } else { "" }
}

/// The middle one; zero of none.
pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The fewest bytes that any of some lossless loads took on the wire: without what was sent twice.
pub(crate) fn fewest(loads: &[Load]) -> Bytes {
    loads.iter().map(Load::wire).min().unwrap_or_default()
}
