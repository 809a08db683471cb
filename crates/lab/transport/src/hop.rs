//! Where downloads are timed: a testbed with an origin for each way of sending that the kernel has, and, where they are
//! wanted, both ends of Farhop as processes.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use farhop_compare::{Ends, Interrupt, Keys, Stage, Tuning, Variant};
use farhop_orbit::Profile;
use farhop_testbed::{Calibration, LoadRecord, Place, Testbed, fit};
use farhop_testkit::SiteOrigin;
use farhop_units::Bytes;

use crate::TransportError;
use crate::client::{Got, Server, Wanted, fetch};
use crate::workload::site;

/// The kernel's ways of sending that origins have, each an origin of its own.
pub const CONTROLLERS: [&str; 3] = ["cubic", "bbr", "reno"];

/// Attempts at a load during which the link was late, and at measuring the link.
const ATTEMPTS: usize = 4;

/// How a download gets to its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Through the remote.
    Farhop,
    /// Straight to the origin that sends with this controller, whatever may stand in between.
    Direct(&'static str),
}

/// A link with an origin behind it.
pub struct Hop<'a> {
    /// Ends every wait when the user wants it.
    pub interrupt: &'a Interrupt,
    /// The link, without loss.
    pub profile: Profile,
    /// The link as measured before anything crossed.
    pub calibration: Calibration,
    // Dropped in this order: processes before what they live in.
    ends: Option<(Ends, PathBuf)>,
    origins: Vec<(&'static str, SiteOrigin)>,
    _runtime: tokio::runtime::Runtime,
    keys: Keys,
    /// The namespaces around it.
    pub testbed: Testbed,
    /// For whatever is written.
    pub folder: tempfile::TempDir,
}

/// Something that was loaded.
pub struct Load {
    /// What was wanted, in the same order.
    pub got: Vec<Got>,
    /// What the link had seen when the last byte arrived.
    pub at_end: LoadRecord,
    /// And a round trip later, last acknowledgements included.
    pub record: LoadRecord,
    /// Whether the link was late: an indication, not a measurement.
    pub late: bool,
}

impl Load {
    /// From the first request to the last byte.
    pub fn time(&self) -> Duration {
        let start = self.got.iter().map(|got| got.start).min().unwrap_or_default();
        self.got.iter().map(|got| got.end).max().unwrap_or_default().saturating_sub(start)
    }

    /// Bytes that had crossed towards the user, layer 3 up.
    pub fn wire(&self) -> Bytes {
        self.at_end.forward.counters.delivered.bytes
    }
}

impl<'a> Hop<'a> {
    /// Over the link of this name, measured first; whether it is what it should be, its `calibration` tells.
    ///
    /// # Errors
    /// No such link, no privileges, or nothing passes.
    pub fn up(interrupt: &'a Interrupt, name: &str) -> Result<Hop<'a>, TransportError> {
        let profile = Profile::named(name).map_err(|error| TransportError::Unexpected(error.to_string()))?;
        Hop::over(interrupt, profile)
    }

    /// As [`Hop::up`], over any link.
    ///
    /// # Errors
    /// No privileges, or nothing passes.
    pub fn over(interrupt: &'a Interrupt, profile: Profile) -> Result<Hop<'a>, TransportError> {
        let folder = tempfile::Builder::new().prefix("farhop-hop-").tempdir();
        let folder = folder.map_err(TransportError::system("a folder"))?;
        let testbed = Testbed::up(&profile, 1)?;
        let calibration = measured(&testbed, interrupt)?;
        let keys = Keys::make(folder.path())?;
        let runtime = tokio::runtime::Runtime::new().map_err(TransportError::system("a runtime"))?;
        let mut origins = Vec::new();
        for (controller, number) in CONTROLLERS.into_iter().zip(0..) {
            // Whoever wants what the kernel lacks says so.
            if farhop_testbed::require_congestion_control(controller).is_ok() {
                let address = SocketAddr::from((testbed.addresses.origin(number), 80));
                let listener = listener(&testbed, address, controller)?;
                let _inside = runtime.enter();
                let listener = tokio::net::TcpListener::from_std(listener);
                let listener = listener.map_err(TransportError::system("the origin"))?;
                origins.push((controller, site().serve_on(listener)));
            }
        }
        Ok(Hop {
            interrupt,
            profile,
            calibration,
            ends: None,
            origins,
            _runtime: runtime,
            keys,
            testbed,
            folder,
        })
    }

    /// Starts both ends, in place of those that may run, and waits for their carrier. What they keep on disk they keep under
    /// `name`, and find it there when they are started under it again.
    ///
    /// # Errors
    /// One of them ends, or no carrier comes up.
    pub fn start(&mut self, name: &str, tuning: &Tuning) -> Result<(), TransportError> {
        self.stop();
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).map_err(TransportError::file(&folder))?;
        let ends = Ends::start_tuned(self.stage(&folder), Variant::FarhopTransport, tuning)?;
        self.ends = Some((ends, folder));
        Ok(())
    }

    /// Ends both ends.
    pub fn stop(&mut self) {
        self.ends = None;
    }

    /// Ends the remote and starts it again, without waiting for its carrier.
    ///
    /// # Errors
    /// There is none, or it cannot be started.
    pub fn restart_remote(&mut self) -> Result<(), TransportError> {
        let (mut ends, folder) = self.ends.take().ok_or_else(no_ends)?;
        ends.restart_remote(self.stage(&folder))?;
        self.ends = Some((ends, folder));
        Ok(())
    }

    fn stage<'s>(&'s self, folder: &'s std::path::Path) -> Stage<'s> {
        Stage {
            testbed: &self.testbed,
            folder,
            keys: &self.keys,
            interception: None,
            interrupt: self.interrupt,
        }
    }

    /// Loads all of `wanted` at once, each on a connection of its own, every byte compared; again, as often as three times, where
    /// the link was late meanwhile.
    ///
    /// # Errors
    /// A byte is wrong or missing, or the user wants it to end.
    pub fn load(&self, via: Via, wanted: &[Wanted]) -> Result<Load, TransportError> {
        self.load_while(via, wanted, || Ok(()))
    }

    /// The same, with `meanwhile` done beside it from its beginning.
    ///
    /// # Errors
    /// As [`load`](Self::load), or what `meanwhile` says.
    pub fn load_while<E: From<TransportError>>(
        &self,
        via: Via,
        wanted: &[Wanted],
        meanwhile: impl Fn() -> Result<(), E>,
    ) -> Result<Load, E> {
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
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_at_once(&self, wanted: &[Wanted]) -> Result<Load, TransportError> {
        self.attempt(Via::Farhop, wanted, &|| Ok::<(), TransportError>(()))
    }

    fn attempt<E: From<TransportError>>(
        &self,
        via: Via,
        wanted: &[Wanted],
        meanwhile: &impl Fn() -> Result<(), E>,
    ) -> Result<Load, E> {
        let link = self.testbed.link();
        link.take_record();
        let (got, done) = std::thread::scope(|scope| {
            let client = scope.spawn(|| self.fetch(via, wanted));
            let done = meanwhile();
            let stopped = |_| Err(TransportError::Unexpected("the client stopped".into()));
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
    fn pause(&self) -> Result<(), TransportError> {
        Ok(self.interrupt.sleep(self.profile.rtt() + Duration::from_millis(100))?)
    }

    fn fetch(&self, via: Via, wanted: &[Wanted]) -> Result<Vec<Got>, TransportError> {
        let (server, origin) = match via {
            Via::Farhop => {
                let (ends, _) = self.ends.as_ref().ok_or_else(no_ends)?;
                (Server::Proxy(ends.proxy), self.origin(CONTROLLERS[0])?)
            }
            Via::Direct(controller) => (Server::Origin, self.origin(controller)?),
        };
        let client = self.testbed.namespace(Place::Client);
        let got = client
            .run(|| fetch(server, origin, wanted, self.interrupt))
            .map_err(farhop_testbed::Error::from)?;
        self.interrupt.check()?;
        got.map_err(TransportError::system("a download"))
    }

    fn origin(&self, controller: &str) -> Result<SocketAddr, TransportError> {
        let found = self.origins.iter().find(|(name, _)| *name == controller);
        let missing = || {
            TransportError::Unexpected(format!("this kernel has no TCP congestion control '{controller}'"))
        };
        found.map(|(_, origin)| origin.address()).ok_or_else(missing)
    }

    /// Loses packets at random from now on, both ways with this probability; with none as the link itself does.
    pub fn lose(&self, share: f64) {
        let link = self.profile.clone();
        self.testbed.link().switch(&if share > 0.0 { link.with_loss(share, share) } else { link });
    }

    /// Gives the forward way another queue from now on.
    pub fn queue(&mut self, queue: Bytes) {
        self.profile.forward.queue = queue;
        self.testbed.link().switch(&self.profile);
    }

    /// Round trip and transmission of so many bytes towards the user: what no transport can beat.
    pub fn limit(&self, wire: Bytes) -> Duration {
        let sending = self.profile.forward.rate.map(|rate| rate.time_for(wire)).unwrap_or_default();
        self.profile.rtt() + sending
    }
}

fn no_ends() -> TransportError {
    TransportError::Unexpected("the two ends have not been started".into())
}

/// Measures the link until it is what it should be, or takes it as it is.
fn measured(testbed: &Testbed, interrupt: &Interrupt) -> Result<Calibration, TransportError> {
    let mut attempt = 1;
    loop {
        interrupt.check()?;
        let calibration = testbed.calibrate()?;
        eprintln!("{calibration}");
        if attempt == ATTEMPTS || calibration.fitness().is_fit() {
            return Ok(calibration);
        }
        attempt += 1;
    }
}

/// A listener at the origins, for connections that send with `controller`.
fn listener(testbed: &Testbed, address: SocketAddr, controller: &str) -> Result<TcpListener, TransportError> {
    let listen = || {
        let listener = TcpListener::bind(address)?;
        farhop_netdev::set_congestion_control(&listener, controller)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let listening = testbed.namespace(Place::Origins).run(listen).map_err(farhop_testbed::Error::from)?;
    listening.map_err(TransportError::system("the origin's port"))
}
