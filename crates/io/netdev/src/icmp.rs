//! What ICMP says of datagrams that do not arrive (RFC 792, RFC 4443): heard by the socket that sent them, and said to a client in the
//! name of the place that it sent to.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd as _};

use farhop_packets::{Complaint, complaint};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, recvmsg,
    sendto, setsockopt, socket,
};

use crate::Error;

/// Has this socket for datagrams keep what ICMP says of what it sends, for [`next_complaint`]; `to` is where it sends.
///
/// # Errors
/// The system refuses.
pub fn keep_complaints(socket: &impl AsFd, to: SocketAddr) -> io::Result<()> {
    match to {
        SocketAddr::V4(_) => setsockopt(&socket.as_fd(), Ipv4RecvErr, &true)?,
        SocketAddr::V6(_) => setsockopt(&socket.as_fd(), Ipv6RecvErr, &true)?,
    }
    Ok(())
}

/// The next that ICMP has said; `Ok(None)` is something that is not about the way there.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] where there is nothing more.
pub fn next_complaint(socket: &impl AsFd) -> io::Result<Option<Complaint>> {
    let mut control = nix::cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6);
    let descriptor = socket.as_fd().as_raw_fd();
    let message = loop {
        match recvmsg::<SockaddrStorage>(descriptor, &mut [], Some(&mut control), MsgFlags::MSG_ERRQUEUE) {
            Err(Errno::EINTR) => {}
            result => break result?,
        }
    };
    let said = message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::Ipv4RecvErr(said, _) | ControlMessageOwned::Ipv6RecvErr(said, _) => Some(said),
        _ => None,
    });
    Ok(said.and_then(|said| match Errno::from_raw(said.ee_errno.cast_signed()) {
        Errno::ECONNREFUSED => Some(Complaint::PortUnreachable),
        Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EACCES | Errno::EHOSTDOWN => {
            Some(Complaint::HostUnreachable)
        }
        Errno::EMSGSIZE => Some(Complaint::TooBig(u16::try_from(said.ee_info).unwrap_or(u16::MAX))),
        _ => None,
    }))
}

/// Tells `client` what becomes of its datagrams to `to`.
pub(crate) fn complain(what: Complaint, to: SocketAddr, client: SocketAddr) -> Result<(), Error> {
    let packet = complaint(what, client, to).ok_or(Errno::EAFNOSUPPORT);
    let family = if client.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let send = |packet: Vec<u8>| {
        // Of this kind the packets have their headers with them (raw(7)), and so any source.
        let socket = socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw)?;
        let client = SockaddrStorage::from(SocketAddr::new(client.ip(), 0));
        sendto(socket.as_raw_fd(), &packet, &client, MsgFlags::MSG_DONTWAIT)
    };
    packet.and_then(send).map(drop).map_err(|error| match error {
        Errno::EPERM => Error::NoNetRaw { what: "telling clients that datagrams do not arrive".into() },
        error => Error::system(format!("tell {client} of {to}"))(error),
    })
}
