//! Urgent bytes of a TCP connection (RFC 9293 §3.8.5): kept in their place in the stream, as RFC 6093 §6 asks, and with
//! their mark. A read ends before a marked byte (tcp(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use nix::sys::socket::sockopt::OobInline;
use nix::sys::socket::{MsgFlags, recv, send, setsockopt};

/// The request of sockatmark(3), which is no system call of its own.
const SIOCATMARK: libc::Ioctl = 0x8905;

/// Lets urgent bytes be read in their place. Otherwise they are left out of what is read.
///
/// # Errors
/// This is no socket.
pub fn keep_urgent_in_place(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, OobInline, &true)?)
}

/// Whether the byte that is read next is marked as urgent. A later answer may differ only once that byte is read.
///
/// # Errors
/// There is none to read, which would block, or the connection is broken.
pub fn is_next_urgent(socket: &impl AsFd) -> io::Result<bool> {
    let descriptor = socket.as_fd().as_raw_fd();
    // An empty stream is at its mark before the marked byte is here, and not at one that is yet to come.
    if recv(descriptor, &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT)? == 0 {
        return Ok(false);
    }
    let mut at_mark: libc::c_int = 0;
    // SAFETY: the descriptor is borrowed for the call, and the kernel writes one int into a live one.
    let result = unsafe { libc::ioctl(descriptor, SIOCATMARK, &raw mut at_mark) };
    if result == 0 { Ok(at_mark != 0) } else { Err(io::Error::last_os_error()) }
}

/// Sends one byte that is marked as urgent.
///
/// # Errors
/// There is no room for it, which would block, or the connection is broken.
pub fn send_urgent(socket: &impl AsFd, byte: u8) -> io::Result<()> {
    let flags = MsgFlags::MSG_OOB | MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    send(socket.as_fd().as_raw_fd(), &[byte], flags)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn an_urgent_byte_is_read_in_its_place_and_known_as_such() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        keep_urgent_in_place(&far).unwrap();
        assert_eq!(is_next_urgent(&far).unwrap_err().kind(), ErrorKind::WouldBlock);
        near.write_all(b"before").unwrap();
        send_urgent(&near, b'!').unwrap();
        near.write_all(b"after").unwrap();
        near.shutdown(std::net::Shutdown::Write).unwrap();
        let (mut urgent, mut buffer) = (Vec::new(), [0; 64]);
        let mut all = Vec::new();
        // Waits until all of it is here.
        while far.peek(&mut buffer).unwrap() > 0 {
            if is_next_urgent(&far).unwrap() {
                urgent.push(all.len());
            }
            let count = far.read(&mut buffer).unwrap();
            all.extend_from_slice(&buffer[..count]);
        }
        assert_eq!((&all[..], &urgent[..]), (&b"before!after"[..], &[6][..]));
        assert!(!is_next_urgent(&far).unwrap(), "the end is none");
    }
}
