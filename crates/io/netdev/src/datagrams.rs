//! Datagrams that are not for this machine (TPROXY): the socket that takes the first of each flow and knows where it was to
//! go, the socket that answers in the name of that place.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv4OrigDstAddr, Ipv6OrigDstAddr, ReuseAddr};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockType, SockaddrIn, SockaddrIn6, SockaddrStorage, bind, connect,
    recvmsg, setsockopt,
};

use crate::Error;
use crate::transparent::transparent;

/// A socket at this loopback address for datagrams that are diverted to it: [`receive_diverted`] says where they were to go.
pub(crate) fn take(address: IpAddr) -> Result<UdpSocket, Error> {
    let prepare = || -> nix::Result<OwnedFd> {
        let socket = transparent(address, SockType::Datagram)?;
        match address {
            IpAddr::V4(_) => setsockopt(&socket, Ipv4OrigDstAddr, &true)?,
            IpAddr::V6(_) => setsockopt(&socket, Ipv6OrigDstAddr, &true)?,
        }
        bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(address, 0)))?;
        Ok(socket)
    };
    prepare()
        .map(UdpSocket::from)
        .map_err(Error::system(format!("take datagrams transparently at {address}")))
}

/// A socket that is `from`, which need not be this machine's, and speaks with `to` alone. What `to` sends there comes to it.
pub(crate) fn answer(from: SocketAddr, to: SocketAddr) -> Result<UdpSocket, Error> {
    let prepare = || -> nix::Result<OwnedFd> {
        let socket = transparent(from.ip(), SockType::Datagram)?;
        // Another client may speak with the same place.
        setsockopt(&socket, ReuseAddr, &true)?;
        bind(socket.as_raw_fd(), &SockaddrStorage::from(from))?;
        connect(socket.as_raw_fd(), &SockaddrStorage::from(to))?;
        Ok(socket)
    };
    prepare().map(UdpSocket::from).map_err(Error::system(format!("answer as {from}")))
}

/// The next datagram that was diverted: its length, who sent it, and where it was to go.
///
/// # Errors
/// There is none, or the kernel does not say where it was to go.
pub fn receive_diverted(
    socket: &impl AsFd,
    buffer: &mut [u8],
) -> io::Result<(usize, SocketAddr, SocketAddr)> {
    let mut control = nix::cmsg_space!(libc::sockaddr_in6, libc::sockaddr_in);
    let mut parts = [IoSliceMut::new(buffer)];
    let descriptor = socket.as_fd().as_raw_fd();
    let message = loop {
        match recvmsg::<SockaddrStorage>(descriptor, &mut parts, Some(&mut control), MsgFlags::empty()) {
            Err(Errno::EINTR) => {}
            result => break result?,
        }
    };
    let to = message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::Ipv4OrigDstAddr(to) => {
            Some(SocketAddr::V4(SocketAddrV4::from(SockaddrIn::from(to))))
        }
        ControlMessageOwned::Ipv6OrigDstAddr(to) => {
            Some(SocketAddr::V6(SocketAddrV6::from(SockaddrIn6::from(to))))
        }
        _ => None,
    });
    let from = message.address.as_ref().and_then(|address| {
        let v4 = address.as_sockaddr_in().map(|it| SocketAddr::V4(SocketAddrV4::from(*it)));
        v4.or_else(|| address.as_sockaddr_in6().map(|it| SocketAddr::V6(SocketAddrV6::from(*it))))
    });
    match (from, to) {
        (Some(from), Some(to)) => Ok((message.bytes, from, to)),
        _ => Err(io::Error::other("the kernel did not say where a datagram was to go")),
    }
}
