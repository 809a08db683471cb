//! Round trips of a packet to one address and back (ICMP echo, RFC 792 and RFC 4443), by a device; and what has left by it.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::BindToDevice;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, recv, send,
    setsockopt, socket,
};

use crate::Error;

/// What an echo carries besides its header: enough to be told from others'.
const COOKIE: [u8; 8] = *b"farhop\0\0";

/// Asks one address for an echo, again and again.
#[derive(Debug)]
pub struct Ping {
    socket: OwnedFd,
    is_v6: bool,
    identifier: u16,
    sequence: AtomicU16,
}

impl Ping {
    /// To `address`, by `interface` whatever the routes say.
    ///
    /// # Errors
    /// No such device, no route, or no right to it (CAP_NET_RAW).
    pub fn open(interface: &str, address: IpAddr) -> Result<Ping, Error> {
        let is_v6 = address.is_ipv6();
        let (family, protocol) = match is_v6 {
            false => (AddressFamily::Inet, SockProtocol::Icmp),
            true => (AddressFamily::Inet6, SockProtocol::IcmpV6),
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family, SockType::Raw, flags, protocol).map_err(|error| match error {
            Errno::EPERM => Error::NoNetRaw { what: format!("measuring the round trip to {address}") },
            error => Error::system("open a socket for ICMP")(error),
        })?;
        setsockopt(&socket, BindToDevice, &interface.into()).map_err(|error| match error {
            Errno::ENODEV => Error::NoInterface { interface: interface.into() },
            error => Error::system(format!("send by {interface}"))(error),
        })?;
        let to = SockaddrStorage::from(SocketAddr::new(address, 0));
        connect(socket.as_raw_fd(), &to).map_err(Error::system(format!("reach {address} by {interface}")))?;
        // Others on this machine may ask, too.
        let identifier = std::process::id() as u16;
        Ok(Ping { socket, is_v6, identifier, sequence: AtomicU16::new(0) })
    }

    /// One round trip; `None` where no answer comes within `patience`.
    ///
    /// # Errors
    /// The device is down or gone, or there is no route any more.
    pub fn round_trip(&self, patience: Duration) -> io::Result<Option<Duration>> {
        let sequence = self.sequence.fetch_add(1, Relaxed);
        let began = Instant::now();
        send(self.socket.as_raw_fd(), &self.request(sequence), MsgFlags::empty())?;
        let mut buffer = [0; 2048];
        loop {
            let Some(left) = patience.checked_sub(began.elapsed()) else { return Ok(None) };
            let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(length) if self.is_answer(&buffer[..length], sequence) => {
                    return Ok(Some(began.elapsed()));
                }
                Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn request(&self, sequence: u16) -> [u8; 16] {
        let mut packet = [0; 16];
        packet[0] = if self.is_v6 { 128 } else { 8 };
        packet[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        packet[6..8].copy_from_slice(&sequence.to_be_bytes());
        packet[8..].copy_from_slice(&COOKIE);
        if !self.is_v6 {
            // The kernel makes the sum of ICMPv6 (RFC 3542 §3.1), and not that of ICMP.
            let sum = checksum(&packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    }

    /// Of IPv4 a raw socket gives the header of IP, too (raw(7)).
    fn is_answer(&self, packet: &[u8], sequence: u16) -> bool {
        let start = match (self.is_v6, packet.first()) {
            (true, _) => 0,
            (false, Some(first)) => usize::from(first & 0xf) * 4,
            (false, None) => return false,
        };
        let Some(message) = packet.get(start..start + 16) else { return false };
        let wanted = self.request(sequence);
        message[0] == if self.is_v6 { 129 } else { 0 } && message[4..] == wanted[4..]
    }
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Bytes that have left by a device since it was made.
///
/// # Errors
/// No such device.
pub fn left_by(interface: &str) -> Result<u64, Error> {
    // That of this thread: another one may be in another namespace.
    let text =
        fs::read_to_string("/proc/thread-self/net/dev").map_err(Error::system("read /proc/net/dev"))?;
    read_left(&text, interface).ok_or_else(|| Error::NoInterface { interface: interface.into() })
}

/// `  sat0: 1 2 0 0 0 0 0 0 3 …`: eight numbers of what has come, then those of what has left.
fn read_left(text: &str, interface: &str) -> Option<u64> {
    let of = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        (name.trim() == interface).then(|| numbers.split_whitespace().nth(8)?.parse().ok())?
    };
    text.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_left_is_told_device_by_device() {
        let text = "Inter-|   Receive   |  Transmit\n face |bytes packets\n    lo: 9 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n  sat0: 1 1 0 0 0 0 0 0 4711 1 0 0 0 0 0 0\n";
        assert_eq!(
            (read_left(text, "sat0"), read_left(text, "sat1"), read_left(text, "face |bytes packets")),
            (Some(4711), None, None)
        );
        assert!(left_by("lo").is_ok() && left_by("sat9").is_err());
    }

    #[test]
    fn sums_are_those_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn an_echo_comes_back_in_both_families() {
        for address in ["127.0.0.1", "::1"] {
            let ping = match Ping::open("lo", address.parse().unwrap()) {
                Ok(ping) => ping,
                Err(reason) => {
                    println!("skipped: {reason}");
                    continue;
                }
            };
            let before = left_by("lo").unwrap();
            for _ in 0..3 {
                assert!(ping.round_trip(Duration::from_secs(10)).unwrap().is_some(), "{address}");
            }
            assert!(left_by("lo").unwrap() > before);
        }
    }
}
