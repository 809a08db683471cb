//! Sockets that speak for addresses which are not this machine's (`IP_TRANSPARENT`, ip(7)).

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use nix::sys::socket::sockopt::{KeepAlive, RcvBuf, TcpKeepIdle};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen as start, setsockopt, socket,
};

use crate::Error;

/// Clients that have connected and are not accepted yet.
const BACKLOG: i32 = 4096;
/// A client that is silent for so long is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Received bytes that wait in the kernel. What a client sends ahead of a slower hop gains nothing by waiting here.
const RECEIVE_BUFFER: usize = 256 * 1024;

/// A listener for diverted connections. What is set here its connections inherit: urgent bytes stay in their place in the
/// stream (RFC 6093 §6), whoever is gone for good is noticed, small pieces leave at once.
pub(crate) fn listen(address: IpAddr) -> Result<TcpListener, Error> {
    let at = SocketAddr::new(address, 0);
    transparent(address, SockType::Stream)
        .and_then(|socket| start_at(socket, at))
        .map_err(Error::system(format!("listen transparently at {address}")))
}

/// The same at an address of this machine's, for which no right is needed.
pub(crate) fn listen_at(at: SocketAddr) -> Result<TcpListener, Error> {
    plain(at.ip(), SockType::Stream)
        .and_then(|socket| start_at(socket, at))
        .map_err(Error::system(format!("listen at {}", at.ip())))
}

fn start_at(socket: OwnedFd, at: SocketAddr) -> nix::Result<TcpListener> {
    switch_on(&socket, libc::SOL_SOCKET, libc::SO_OOBINLINE)?;
    switch_on(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY)?;
    setsockopt(&socket, KeepAlive, &true)?;
    setsockopt(&socket, TcpKeepIdle, &(KEEPALIVE.as_secs() as u32))?;
    setsockopt(&socket, RcvBuf, &RECEIVE_BUFFER)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(at))?;
    start(&socket, Backlog::new(BACKLOG)?)?;
    Ok(TcpListener::from(socket))
}

/// A socket to connect from, as `address`. Its port is chosen when it connects, so that as many connections as there are ports
/// go to each destination.
pub(crate) fn speak(address: IpAddr) -> Result<OwnedFd, Error> {
    let prepare = || -> nix::Result<OwnedFd> {
        let socket = transparent(address, SockType::Stream)?;
        switch_on(&socket, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT)?;
        bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(address, 0)))?;
        Ok(socket)
    };
    prepare().map_err(Error::system(format!("speak as {address}")))
}

/// A socket of the family of `address` that may have foreign addresses.
pub(crate) fn transparent(address: IpAddr, kind: SockType) -> nix::Result<OwnedFd> {
    let (level, option) = match address {
        IpAddr::V4(_) => (libc::SOL_IP, libc::IP_TRANSPARENT),
        IpAddr::V6(_) => (libc::SOL_IPV6, libc::IPV6_TRANSPARENT),
    };
    let socket = plain(address, kind)?;
    switch_on(&socket, level, option)?;
    Ok(socket)
}

fn plain(address: IpAddr, kind: SockType) -> nix::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    socket(family, kind, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
}

/// Sets an option that is a number to one.
fn switch_on(socket: &OwnedFd, level: libc::c_int, option: libc::c_int) -> nix::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is borrowed for the call, and the value is a live int of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    nix::errno::Errno::result(result).map(drop)
}
