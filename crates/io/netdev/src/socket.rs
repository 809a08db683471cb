//! Socket options that the standard library does not offer: congestion control, buffer sizes beyond the
//! system's limit, and the time at which the kernel received a datagram.

use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns, TcpCongestion};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, getsockopt, recvmsg, setsockopt};
use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd as _};
use std::time::Duration;

/// Chooses the TCP congestion control of one socket.
///
/// # Errors
/// The kernel lacks it, or this process may not use it.
pub fn set_congestion_control(socket: &impl AsFd, name: &str) -> io::Result<()> {
    Ok(setsockopt(socket, TcpCongestion, &OsString::from(name))?)
}

/// The TCP congestion control of one socket.
///
/// # Errors
/// This is no TCP socket.
pub fn congestion_control(socket: &impl AsFd) -> io::Result<String> {
    let name = getsockopt(socket, TcpCongestion)?.to_string_lossy().into_owned();
    Ok(name.trim_end_matches('\0').to_owned())
}

/// Sets the receive buffer in bytes, past the system's limit.
///
/// # Errors
/// No privileges.
pub fn receive_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(setsockopt(socket, RcvBufForce, &bytes)?)
}

/// Lets the kernel note when each datagram arrives, for [`receive_with_timestamp`].
///
/// # Errors
/// The kernel cannot.
pub fn receive_timestamps(socket: &UdpSocket) -> io::Result<()> {
    Ok(setsockopt(socket, ReceiveTimestampns, &true)?)
}

/// The next datagram: its length and when the kernel received it, since 1970 on the system's clock. Unlike
/// a clock read after the call, this does not depend on when the reader was scheduled.
///
/// # Errors
/// A timeout of the socket passed, or its timestamps are not switched on.
pub fn receive_with_timestamp(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, Duration)> {
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = loop {
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty()) {
            Err(nix::errno::Errno::EINTR) => {} // with a timeout set, the kernel does not restart the call
            result => break result?,
        }
    };
    let stamp = message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
        _ => None,
    });
    let stamp = stamp.ok_or_else(|| io::Error::other("the kernel sent no timestamp"))?;
    Ok((message.bytes, stamp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::SystemTime;

    #[test]
    fn a_datagram_bears_the_time_between_sending_and_reading() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receive_timestamps(&receiver).unwrap();
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let before = now();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"hello", receiver.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 16];
        let (length, stamp) = receive_with_timestamp(&receiver, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"hello");
        assert!(before <= stamp && stamp <= now());
    }

    #[test]
    fn the_congestion_control_of_a_socket_reads_back() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        set_congestion_control(&socket, "reno").unwrap(); // every kernel has it and allows it
        assert_eq!(congestion_control(&socket).unwrap(), "reno");
        assert!(set_congestion_control(&socket, "nonesuch").is_err());
    }
}
