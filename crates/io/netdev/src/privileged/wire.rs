//! Messages between a process and its helper: a line of text, and with it at most one descriptor (unix(7), `SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg,
    socketpair,
};

/// The longest message; some thousand address ranges fit.
const LONGEST: usize = 64 * 1024;

/// The two ends of a conversation, each message whole.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

pub(super) fn send(socket: &impl AsFd, text: &str, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    if text.len() > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "more than fits into one command"));
    }
    let descriptor = descriptor.map(|descriptor| [descriptor.as_raw_fd()]);
    let control: Vec<_> = descriptor.iter().map(|it| ControlMessage::ScmRights(it)).collect();
    let parts = [IoSlice::new(text.as_bytes())];
    loop {
        match sendmsg::<()>(socket.as_fd().as_raw_fd(), &parts, &control, MsgFlags::MSG_NOSIGNAL, None) {
            Err(Errno::EINTR) => {}
            result => return Ok(result.map(drop)?),
        }
    }
}

/// The next message; `None` once the other end has gone.
pub(super) fn receive(socket: &impl AsFd) -> io::Result<Option<(String, Option<OwnedFd>)>> {
    let mut buffer = vec![0; LONGEST];
    let mut control = nix::cmsg_space!(libc::c_int);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let message = loop {
        let socket = socket.as_fd().as_raw_fd();
        match recvmsg::<()>(socket, &mut parts, Some(&mut control), MsgFlags::MSG_CMSG_CLOEXEC) {
            Err(Errno::EINTR) => {}
            result => break result?,
        }
    };
    let mut descriptor = None;
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            for number in numbers {
                // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
                descriptor = Some(unsafe { OwnedFd::from_raw_fd(number) });
            }
        }
    }
    let length = message.bytes;
    if length == 0 {
        return Ok(None);
    }
    let text = String::from_utf8(buffer[..length].to_vec());
    text.map(|text| Some((text, descriptor))).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read as _;

    #[test]
    fn a_message_brings_its_descriptor_and_the_end_is_seen() {
        let (near, far) = pair().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        send(&near, "take this", Some(reader.as_fd())).unwrap();
        drop(reader);
        drop(near);
        let (text, descriptor) = receive(&far).unwrap().unwrap();
        assert_eq!(text, "take this");
        io::Write::write_all(&mut { writer }, b"hello").unwrap();
        let mut heard = String::new();
        File::from(descriptor.unwrap()).read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
        assert!(receive(&far).unwrap().is_none());
    }
}
