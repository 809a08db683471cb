//! Split TCP as clients see it that know nothing of it: the remote is their router and catches what they begin.

mod flows;
mod programs;
mod sequence;
mod servers;
mod together;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use farhop_compare::{Ends, Keys, Stage, Tuning, Variant};
use farhop_orbit::Profile;
use farhop_testbed::{Place, Testbed};

use crate::group::Context;
use crate::{MeasureError, Row};
pub(crate) use sequence::rows as sequence;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut rows = programs::rows(context)?;
    rows.extend(together::rows(context)?);
    Ok(rows)
}

/// The remote catches every connection and carries it over this carrier. The testbed's own addresses are private, which it would
/// leave alone.
fn caught(carrier: &str) -> Tuning {
    Tuning {
        remote: format!(
            "role = \"transport\"\ncarrier = \"{carrier}\"\ntransparent.enabled = true\ntransparent.except = \"127.0.0.0/8\"\n"
        ),
        ..Tuning::default()
    }
}

/// A link that is in nobody's way, with the server of [`flows`] behind it at every address of the origins.
struct Scene {
    testbed: Testbed,
    keys: Keys,
    folder: tempfile::TempDir,
    _server: tokio::runtime::Runtime,
}

impl Scene {
    fn up() -> Result<Scene, MeasureError> {
        let profile = Profile::named("none").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
        let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
        let testbed = Testbed::up(&profile, 1)?;
        let keys = Keys::make(folder.path())?;
        // Each flow is a descriptor for its client and one for its server, and one at each end, which inherit the limit.
        farhop_netdev::raise_descriptor_limit().map_err(MeasureError::system("the limit of descriptors"))?;
        let listen = || -> io::Result<TcpListener> {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, flows::PORT))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listening = testbed.namespace(Place::Origins).run(listen).map_err(farhop_testbed::Error::from)?;
        let listener = listening.map_err(MeasureError::system("the server's port"))?;
        let server = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let server = server.map_err(MeasureError::system("a runtime"))?;
        {
            let _inside = server.enter();
            let listener = tokio::net::TcpListener::from_std(listener);
            server.spawn(flows::serve(listener.map_err(MeasureError::system("the server"))?));
        }
        Ok(Scene { testbed, keys, folder, _server: server })
    }

    fn ends(&self, context: &Context, carrier: &str) -> Result<Ends, MeasureError> {
        let stage = Stage {
            testbed: &self.testbed,
            folder: self.folder.path(),
            keys: &self.keys,
            interception: None,
            interrupt: &context.interrupt,
        };
        Ok(Ends::start_tuned(stage, Variant::FarhopTransport, &caught(carrier))?)
    }

    /// Runs this as clients do, on a thread of its own.
    fn as_clients<T: Send>(&self, act: impl AsyncFnOnce() -> T + Send) -> Result<T, MeasureError> {
        let run = || -> io::Result<T> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(act()))
        };
        let ran = self.testbed.namespace(Place::Client).run(run).map_err(farhop_testbed::Error::from)?;
        ran.map_err(MeasureError::system("a runtime"))
    }

    /// The server, at one of its many addresses.
    fn server(&self, number: u16) -> SocketAddr {
        SocketAddr::from((self.testbed.addresses.origin(number), flows::PORT))
    }
}

/// A number that the environment may set lower, so that a row can be tried; it cannot pass then.
fn fewer(variable: &str, whole: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(whole)
}
