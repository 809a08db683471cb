//! TUN devices: whole IP packets in and out of a kernel's stack, one per read and write.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::{Error, Namespace};

/// A TUN device, without packet information and non-blocking. It goes when this is dropped.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// Makes a device called `name` inside `namespace`, or in the namespace of the calling thread.
    ///
    /// # Errors
    /// No privileges, no driver, or the name is taken or too long.
    pub fn create(namespace: Option<&Namespace>, name: &str) -> Result<Self, Error> {
        match namespace {
            Some(namespace) => namespace.run(|| Tun::create(None, name))?,
            None => create_here(name).map_err(Error::system(format!("make the TUN device {name}"))),
        }
    }

    /// The device of this name that a descriptor is of.
    pub(crate) fn of(descriptor: OwnedFd, name: &str) -> Tun {
        Tun { file: File::from(descriptor), name: name.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next packet that the kernel sends through the device; `None` if there is none now.
    ///
    /// # Errors
    /// The device is gone.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a packet to the kernel as if it had arrived on the device.
    ///
    /// # Errors
    /// The kernel cannot take it: the device is down, or this is no IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Tun {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl From<Tun> for OwnedFd {
    fn from(tun: Tun) -> OwnedFd {
        tun.file.into()
    }
}

fn create_here(name: &str) -> io::Result<Tun> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: ifreq is plain data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: the kernel wants a terminated name.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device name has 1 to 15 bytes"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes an ifreq, which lives on this stack through the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Tun { file, name: name.into() })
}
