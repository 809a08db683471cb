//! How large packets of a device are.

use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::Error;

/// What may stand around a packet besides: the header of an Ethernet, tags, PPPoE.
const AROUND: u64 = 64;
/// Of an Ethernet.
pub(super) const USUAL: u64 = 1500 + AROUND;

/// Bytes of the largest packet that leaves by a device.
///
/// # Errors
/// No such device.
pub(super) fn largest_packet(interface: &str) -> Result<u64, Error> {
    let failed = Error::system(format!("ask how large packets of {interface} are"));
    let bytes = match mtu(interface) {
        Err(Errno::ENODEV) => return Err(Error::NoInterface { interface: interface.into() }),
        bytes => bytes.map_err(failed)?,
    };
    Ok(u64::try_from(bytes).unwrap_or(0) + AROUND)
}

/// netdevice(7): SIOCGIFMTU, in the network namespace of this thread.
fn mtu(interface: &str) -> Result<libc::c_int, Errno> {
    // SAFETY: ifreq is plain data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: the kernel wants a terminated name.
    if interface.len() >= request.ifr_name.len() {
        return Err(Errno::ENODEV);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: SIOCGIFMTU reads and writes an ifreq, which lives on this stack through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    Errno::result(result)?;
    // SAFETY: the call has filled in this member.
    Ok(unsafe { request.ifr_ifru.ifru_mtu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_largest_packet_and_one_that_is_not_there_is_named() {
        assert!(largest_packet("lo").unwrap() > AROUND);
        for nowhere in ["sat9", "a-name-that-is-too-long"] {
            assert!(matches!(largest_packet(nowhere), Err(Error::NoInterface { .. })));
        }
    }
}
