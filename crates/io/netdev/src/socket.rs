//! Socket options that the standard library does not offer: congestion control, fast open, the round trip that
//! TCP has measured, buffer sizes beyond the system's limit, and the time at which the kernel received a datagram.

use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, ReceiveTimestampns, TcpCongestion, TcpFastOpenConnect};
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

/// Lets a TCP socket send its first bytes with its SYN when the peer has given a cookie before (RFC 7413 §4): its
/// `connect` returns at once, and what is written first goes along.
///
/// # Errors
/// The kernel cannot.
pub fn fast_open_connect(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, TcpFastOpenConnect, &true)?)
}

/// Lets a listening TCP socket take bytes with a SYN, from at most `pending` peers that have not completed their
/// handshake. The kernel does so where the sysctl `net.ipv4.tcp_fastopen` allows it to servers.
///
/// # Errors
/// The kernel cannot.
pub fn fast_open_listen(socket: &impl AsFd, pending: u32) -> io::Result<()> {
    let pending = libc::c_int::try_from(pending).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is borrowed for the call, and the value is a live int of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_FASTOPEN,
            (&raw const pending).cast(),
            size_of_val(&pending) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The round trip that TCP has measured on a connection, smoothed (RFC 6298); zero before its first sample.
///
/// # Errors
/// This is no TCP socket.
pub fn tcp_round_trip(socket: &impl AsFd) -> io::Result<Duration> {
    // A kernel that knows less fills in less; the round trip has been there for ever.
    tcp_info(socket).map(|info| Duration::from_micros(info.tcpi_rtt.into()))
}

/// What may be on its way on a TCP connection now, in segments.
///
/// # Errors
/// This is no TCP socket.
pub fn tcp_window(socket: &impl AsFd) -> io::Result<u32> {
    tcp_info(socket).map(|info| info.tcpi_snd_cwnd)
}

fn tcp_info(socket: &impl AsFd) -> io::Result<libc::tcp_info> {
    // SAFETY: plain numbers, of which all zeros are valid ones.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the descriptor is borrowed for the call, and the kernel writes at most `length` bytes into a live struct.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(info) } else { Err(io::Error::last_os_error()) }
}

/// Bytes that were written to a TCP connection and that its peer has not acknowledged so far (SIOCOUTQ, tcp(7)).
///
/// # Errors
/// This is no connected socket.
pub fn unacknowledged(socket: &impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is borrowed for the call, and the kernel writes one int into a live one.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { Ok(usize::try_from(bytes).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}

/// Sets the receive buffer in bytes, past the system's limit where this process may: root of a user namespace may not, and has
/// what the system allows to anyone.
///
/// # Errors
/// This is no socket.
pub fn receive_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(setsockopt(socket, RcvBufForce, &bytes).or_else(|_| setsockopt(socket, RcvBuf, &bytes))?)
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
    use std::io::{Read as _, Write as _};
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
    fn a_connection_knows_its_round_trip_and_a_datagram_socket_has_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        fast_open_listen(&listener, 8).unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        listener.accept().unwrap();
        let round_trip = tcp_round_trip(&near).unwrap();
        assert!(round_trip > Duration::ZERO && round_trip < Duration::from_secs(10), "{round_trip:?}");
        assert!(tcp_round_trip(&UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }

    #[test]
    fn what_is_written_is_unacknowledged_until_the_peer_has_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let mut written = 0;
        // Both ends are full then.
        while let Ok(count) = near.write(&[7; 64 << 10]) {
            written += count;
        }
        let waiting = unacknowledged(&near).unwrap();
        assert!(waiting > 0 && waiting < written, "{waiting} of {written}");
        near.shutdown(std::net::Shutdown::Write).unwrap();
        far.read_to_end(&mut Vec::new()).unwrap();
        assert!(unacknowledged(&near).unwrap() < waiting);
    }

    #[test]
    fn the_congestion_control_of_a_socket_reads_back() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        set_congestion_control(&socket, "reno").unwrap(); // every kernel has it and allows it
        assert_eq!(congestion_control(&socket).unwrap(), "reno");
        assert!(set_congestion_control(&socket, "nonesuch").is_err());
    }
}
