//! Packets of known size and time sent across the link between two namespaces. Measures; judges nothing.
//!
//! Arrival is the receiving kernel's own timestamp, so the reader's scheduling does not count.

use farhop_netdev::{Namespace, receive_buffer, receive_timestamps, receive_with_timestamp};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Error;

/// IPv4 and UDP headers in front of a probe's payload.
pub(crate) const HEADERS: usize = 28;

/// The smallest payload that holds a probe's number.
pub(crate) const SMALLEST: usize = 8;

/// A pair of sockets in two namespaces.
pub(crate) struct Probe {
    from: UdpSocket,
    to: UdpSocket,
}

/// A probe that arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) number: u64,
    /// Since 1970.
    pub(crate) at: Duration,
}

/// Since 1970, on the clock of the kernel's timestamps.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Probe {
    /// Sockets at two addresses; `patience` is how long a receiver waits for one more packet.
    pub(crate) fn between(
        (from, from_address): (&Namespace, Ipv4Addr),
        (to, to_address): (&Namespace, Ipv4Addr),
        patience: Duration,
    ) -> Result<Self, Error> {
        let open = |address| -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind((address, 0))?;
            receive_timestamps(&socket)?;
            receive_buffer(&socket, 16_000_000)?;
            socket.set_read_timeout(Some(patience))?;
            Ok(socket)
        };
        let probe = |source| Error::Probe { what: "opening sockets", source };
        let from = from.run(|| open(from_address))?.map_err(probe)?;
        let to = to.run(|| open(to_address))?.map_err(probe)?;
        let connect = || -> io::Result<()> {
            from.connect(to.local_addr()?)?;
            to.connect(from.local_addr()?)
        };
        connect().map_err(probe)?;
        Ok(Probe { from, to })
    }

    /// Sends probe `number` in a packet of `payload` bytes and headers; gives the time just before.
    pub(crate) fn send(&self, number: u64, payload: usize) -> io::Result<Duration> {
        let mut packet = vec![0; payload.max(SMALLEST)];
        packet[..8].copy_from_slice(&number.to_be_bytes());
        let sent = now();
        self.from.send(&packet)?;
        Ok(sent)
    }

    /// The next probe that arrives; `None` when patience ends.
    pub(crate) fn receive(&self) -> io::Result<Option<Arrival>> {
        receive(&self.to)
    }

    /// Sends back what arrives until `count` probes did or patience ends.
    pub(crate) fn echo(&self, count: u64) -> io::Result<()> {
        for _ in 0..count {
            let Some(arrival) = self.receive()? else {
                break;
            };
            self.to.send(&arrival.number.to_be_bytes())?;
        }
        Ok(())
    }

    /// The next echo; `None` when patience ends.
    pub(crate) fn receive_echo(&self) -> io::Result<Option<Arrival>> {
        receive(&self.from)
    }
}

fn receive(socket: &UdpSocket) -> io::Result<Option<Arrival>> {
    let mut packet = [0; 2048];
    match receive_with_timestamp(socket, &mut packet) {
        Ok((length, at)) if length >= SMALLEST => {
            let number = u64::from_be_bytes(packet[..8].try_into().expect("eight bytes are eight bytes"));
            Ok(Some(Arrival { number, at }))
        }
        Ok(_) => Err(io::Error::other("a packet that is no probe arrived")),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
