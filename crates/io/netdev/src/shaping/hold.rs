//! Who may change what a device's egress is divided into: one process at a time. Two that did so at once would undo each other's
//! work, and neither would hear of it.
//!
//! What is held is a name among the abstract Unix sockets (unix(7)): each network namespace has its own, as it has its own devices,
//! and whatever ends the process gives it back. Who holds it for a moment has the name and no more; who holds it for as long as
//! it runs listens there, so that others learn at once who that is, and need not wait.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, shutdown, socket,
};

use super::{require, rules};
use crate::Error;

/// How long one that changes a device waits for another to be done: a few programs are run.
const PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(20);
/// How long a keeper may take to say who it is.
const ANSWER: Duration = Duration::from_secs(1);
/// What it says is a line for people; what is longer is cut.
const LONGEST: usize = 300;
/// After an accept that failed, so that a lack of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The right to change what a device's egress is divided into; nobody else has it in this network namespace.
#[derive(Debug)]
pub struct Hold {
    interface: String,
    socket: OwnedFd,
    /// Tells whoever asks who keeps it.
    answers: Option<JoinHandle<()>>,
}

impl Hold {
    /// Waits a moment for one that is at work on the device; not for one that keeps it.
    ///
    /// # Errors
    /// No right to change networks, no name of a device, somebody keeps it, or is at work on it for longer than is usual.
    pub fn take(interface: &str) -> Result<Hold, Error> {
        require()?;
        if !rules::is_device_name(interface) {
            return Err(Error::NoInterface { interface: interface.into() });
        }
        let failed = || Error::system(format!("ask who else shapes {interface}"));
        let address = address(interface).map_err(failed())?;
        let began = Instant::now();
        loop {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None).map_err(failed())?;
            match bind(socket.as_raw_fd(), &address) {
                Ok(()) => return Ok(Hold { interface: interface.into(), socket, answers: None }),
                Err(Errno::EADDRINUSE) => {}
                Err(error) => return Err(failed()(error)),
            }
            if let Some(keeper) = keeper(socket, &address) {
                return Err(Error::Kept { interface: interface.into(), keeper });
            }
            if began.elapsed() > PATIENCE {
                return Err(Error::Busy { interface: interface.into() });
            }
            thread::sleep(AGAIN);
        }
    }

    /// Keeps it for as long as this lives: others need not wait for it, and are told `word`, such as where to ask.
    ///
    /// # Errors
    /// Out of descriptors or threads.
    pub fn keep(mut self, word: &str) -> Result<Hold, Error> {
        let word = word.to_owned();
        let begin = || -> io::Result<JoinHandle<()>> {
            listen(&self.socket, Backlog::MAXCONN)?;
            let listener = UnixListener::from(self.socket.try_clone()?);
            listener.set_nonblocking(false)?;
            thread::Builder::new().name("keeps".into()).spawn(move || answer(&listener, &word))
        };
        self.answers = Some(begin().map_err(Error::system(format!("keep {}", self.interface)))?);
        Ok(self)
    }

    /// The device.
    pub fn interface(&self) -> &str {
        &self.interface
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(answers) = self.answers.take() {
            // Nobody is accepted from now on, which ends the thread; the name goes with its descriptor.
            let _ = shutdown(self.socket.as_raw_fd(), nix::sys::socket::Shutdown::Both);
            let _ = answers.join();
        }
    }
}

fn address(interface: &str) -> nix::Result<UnixAddr> {
    UnixAddr::new_abstract(format!("farhop-link/{interface}").as_bytes())
}

fn answer(listener: &UnixListener, word: &str) {
    for asked in listener.incoming() {
        match asked {
            // It is little enough for the kernel to take at once. Who has left has no use for it.
            Ok(mut stream) => drop(stream.write_all(word.as_bytes())),
            // As shutdown(2) has it for a socket that listens.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            Err(_) => thread::sleep(ACCEPT_PAUSE),
        }
    }
}

/// Who keeps it, for people; `None` where nobody does, or for a moment only.
fn keeper(socket: OwnedFd, address: &UnixAddr) -> Option<String> {
    match connect(socket.as_raw_fd(), address) {
        Ok(()) => {}
        Err(Errno::ECONNREFUSED) => return None,
        // It has been asked more often than it answers.
        Err(_) => return Some("another process".into()),
    }
    let pid = getsockopt(&socket, PeerCredentials).map_or(0, |it| it.pid());
    // One in another pid namespace has no number here.
    let process = if pid > 0 { format!("process {pid}") } else { "a process outside this container".into() };
    match told(UnixStream::from(socket)) {
        word if word.is_empty() => Some(process),
        word => Some(format!("{process}, {word}")),
    }
}

/// Anybody on this machine may have made such a socket: what it says is not believed to be a word for a terminal.
fn told(stream: UnixStream) -> String {
    let mut word = Vec::new();
    let read = || -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.shutdown(Shutdown::Write)?;
        stream.take(LONGEST as u64).read_to_end(&mut word).map(drop)
    };
    // What has come until then is as good.
    let _ = read();
    String::from_utf8_lossy(&word).chars().filter(|it| !it.is_control()).collect()
}
