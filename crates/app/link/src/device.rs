//! The device that is shaped, as the manager sees it: the kernel's, or a test's.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farhop_netdev::{Applied, Crowd, Error, Hold, Listed, Losing, Metered, Overheard, Ping, Shaping};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The largest packet of IP.
const LARGEST: usize = 65_536;
/// Packets that wait to be read; those that come meanwhile wait in the kernel, which drops what is too much.
const WAITING: usize = 64;
/// How often a listener looks whether anybody hears it still.
const LOOK: Duration = Duration::from_millis(500);

/// What can be done with a device. Calls block for as long as a tool runs.
pub trait Device: Send + Sync + 'static {
    /// Puts a shaping into force.
    ///
    /// # Errors
    /// As [`Shaping::apply`].
    fn apply(&self, shaping: &Shaping) -> Result<Applied, Error>;

    /// Names other media that go first than `shaping` does, which is in force.
    ///
    /// # Errors
    /// As [`Shaping::set_media`].
    fn set_media(&self, shaping: &Shaping, media: &[Metered]) -> Result<Listed, Error>;

    /// Packets that have left for or from each of the named media since they were named.
    ///
    /// # Errors
    /// As [`farhop_netdev::media_passed`].
    fn media_passed(&self, interface: &str) -> Result<Vec<(SocketAddr, u64)>, Error>;

    /// The packets of UDP and TCP from or to these ports that pass the device from now on, each from its IP header on. They end when
    /// the device goes down or away.
    ///
    /// # Errors
    /// As [`Overheard::open`].
    fn overhear(&self, interface: &str, ports: &[(u16, u16)]) -> Result<Receiver<Vec<u8>>, Error>;

    /// Gives each class its rate, in place of the one that it has.
    ///
    /// # Errors
    /// As [`Shaping::apply_rates`].
    fn apply_rates(&self, shaping: &Shaping) -> Result<(), Error>;

    /// Lets connections make no longer packets than it says.
    ///
    /// # Errors
    /// As [`Shaping::apply_longest`].
    fn apply_longest(&self, shaping: &Shaping) -> Result<Listed, Error>;

    /// How the classes stand that have drop precedences.
    ///
    /// # Errors
    /// As [`farhop_netdev::crowds`].
    fn crowds(&self, interface: &str) -> Result<Vec<Crowd>, Error>;

    /// Says what of them is dropped before it waits, for a few seconds.
    ///
    /// # Errors
    /// As [`farhop_netdev::set_losing`].
    fn set_losing(&self, losing: &[Losing]) -> Result<(), Error>;

    /// Bytes that wait in the classes.
    ///
    /// # Errors
    /// As [`farhop_netdev::waiting`].
    fn waiting(&self, interface: &str) -> Result<u64, Error>;

    /// Asks this address for an echo by the device.
    ///
    /// # Errors
    /// As [`Ping::open`]; and the device is down, or there is no route.
    fn echo(&self, interface: &str, address: IpAddr) -> Result<Echo, Error>;

    /// The time since midnight in UTC.
    fn time_of_day(&self) -> Duration;

    /// Whether the device is there.
    fn is_there(&self, interface: &str) -> bool;

    /// What of a shaping somebody has taken away or changed since it was put into force so.
    ///
    /// # Errors
    /// As [`Shaping::changed`].
    fn changed(&self, shaping: &Shaping, applied: &Applied) -> Result<Option<&'static str>, Error>;
}

/// An echo that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// From asking to hearing; `None` where nothing came for three seconds.
    pub round_trip: Option<Duration>,
    /// Bytes that had left by the device at the end, from any beginning.
    pub left: u64,
}

/// An echo that comes later is none.
const PATIENCE: Duration = Duration::from_secs(3);

/// The kernel that this process runs on, where nobody else changes the device that is held.
#[derive(Debug)]
pub struct Linux {
    hold: Hold,
}

impl Linux {
    /// Changes the device that is held, and no other.
    pub fn new(hold: Hold) -> Linux {
        Linux { hold }
    }
}

/// The time since midnight in UTC.
pub fn time_of_day() -> Duration {
    // A clock before 1970 knows no hours.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(now.as_secs() % (24 * 3600))
}

impl Device for Linux {
    fn apply(&self, shaping: &Shaping) -> Result<Applied, Error> {
        shaping.apply(&self.hold)
    }

    fn set_media(&self, shaping: &Shaping, media: &[Metered]) -> Result<Listed, Error> {
        shaping.set_media(&self.hold, media)
    }

    fn media_passed(&self, interface: &str) -> Result<Vec<(SocketAddr, u64)>, Error> {
        farhop_netdev::media_passed(interface)
    }

    fn overhear(&self, interface: &str, ports: &[(u16, u16)]) -> Result<Receiver<Vec<u8>>, Error> {
        let overheard = Overheard::open(interface, ports)?;
        let (sender, receiver) = mpsc::channel(WAITING);
        thread::Builder::new()
            .name("overhears".into())
            .spawn(move || pass_on(&overheard, &sender))
            .map_err(|error| Error::Helper(format!("cannot start a thread: {error}")))?;
        Ok(receiver)
    }

    fn apply_rates(&self, shaping: &Shaping) -> Result<(), Error> {
        shaping.apply_rates(&self.hold)
    }

    fn apply_longest(&self, shaping: &Shaping) -> Result<Listed, Error> {
        shaping.apply_longest(&self.hold)
    }

    fn crowds(&self, interface: &str) -> Result<Vec<Crowd>, Error> {
        farhop_netdev::crowds(interface)
    }

    fn set_losing(&self, losing: &[Losing]) -> Result<(), Error> {
        farhop_netdev::set_losing(&self.hold, losing)
    }

    fn waiting(&self, interface: &str) -> Result<u64, Error> {
        farhop_netdev::waiting(interface)
    }

    fn echo(&self, interface: &str, address: IpAddr) -> Result<Echo, Error> {
        let round_trip = Ping::open(interface, address)?
            .round_trip(PATIENCE)
            .map_err(|error| Error::Helper(format!("{address} cannot be asked for an echo: {error}")))?;
        Ok(Echo { round_trip, left: farhop_netdev::left_by(interface)? })
    }

    fn time_of_day(&self) -> Duration {
        time_of_day()
    }

    fn is_there(&self, interface: &str) -> bool {
        farhop_netdev::has_interface(interface)
    }

    fn changed(&self, shaping: &Shaping, applied: &Applied) -> Result<Option<&'static str>, Error> {
        shaping.changed(applied)
    }
}

/// Until nobody hears it any more, or the device is gone.
fn pass_on(overheard: &Overheard, sender: &Sender<Vec<u8>>) -> io::Result<()> {
    let mut buffer = vec![0; LARGEST];
    while !sender.is_closed() {
        if let Some(packet) = overheard.receive(&mut buffer, LOOK)?
            && sender.blocking_send(packet.to_vec()).is_err()
        {
            break;
        }
    }
    Ok(())
}
