//! Privilege kept apart: a helper process that alone may change networks and takes a closed list of commands, so that
//! the end which reads what strangers send has no right that they could make use of.
//!
//! The helper undoes what it did when its owner is gone, however that ended: the kernel closes the owner's end of their
//! socket.

mod command;
mod helper;
mod wire;

pub use helper::serve_privileged;

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use farhop_packets::Complaint;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::divert::Divert;
use crate::intake::Intake;
use crate::{Error, Tun, capability};

/// The helper, as its owner holds it. Dropping it undoes all that was asked of it and waits until that is done.
#[derive(Debug)]
pub struct Privileged {
    socket: Mutex<Option<OwnedFd>>,
    child: Child,
    /// Its end is what its owner wants.
    is_over: Arc<AtomicBool>,
}

impl Privileged {
    /// Starts `program`, which has to call [`serve_privileged`], and gives up the right to change networks in the calling
    /// thread and those that it starts: call it before there are others. `what` opens the sentence that says who needs
    /// that right.
    ///
    /// # Errors
    /// This process does not have the right, or the program can't be started.
    pub fn start(mut program: Command, what: &str) -> Result<Self, Error> {
        capability::require_net_admin(what)?;
        let (near, far) = wire::pair().map_err(Error::system("make a socket for the helper"))?;
        let child = program
            .stdin(Stdio::from(far))
            .stdout(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn()
            .map_err(Error::system("start the helper that changes networks"))?;
        let privileged = Privileged { socket: Mutex::new(Some(near)), child, is_over: Arc::default() };
        capability::give_up_net_admin()?;
        Ok(privileged)
    }

    /// A listener at this loopback address that takes connections which were diverted to it: their local address is where
    /// they were to lead.
    ///
    /// # Errors
    /// The system has no such address or refuses.
    pub fn listen(&self, address: IpAddr) -> Result<TcpListener, Error> {
        let listener = self.ask(&command::Command::Listen(address))?;
        listener.map(TcpListener::from).ok_or_else(|| Error::Helper("the helper gave no listener".into()))
    }

    /// A TCP socket that is bound to `address`, which need not be this machine's, and has not connected yet. What is sent there
    /// in answer comes back to it while a diversion is in force.
    ///
    /// # Errors
    /// It is no host's address, or the system refuses.
    pub fn speak(&self, address: IpAddr) -> Result<OwnedFd, Error> {
        let socket = self.ask(&command::Command::Speak(address))?;
        socket.ok_or_else(|| Error::Helper("the helper gave no socket".into()))
    }

    /// A socket at this loopback address for datagrams that are diverted to it, for [`crate::receive_diverted`].
    ///
    /// # Errors
    /// The system has no such address or refuses.
    pub fn take(&self, address: IpAddr) -> Result<UdpSocket, Error> {
        let socket = self.ask(&command::Command::Take(address))?;
        socket.map(UdpSocket::from).ok_or_else(|| Error::Helper("the helper gave no socket".into()))
    }

    /// A UDP socket that is `from`, which need not be this machine's, and speaks with `to` alone.
    ///
    /// # Errors
    /// They are no hosts' addresses, or the system refuses.
    pub fn answer(&self, from: SocketAddr, to: SocketAddr) -> Result<UdpSocket, Error> {
        let socket = self.ask(&command::Command::Answer(from, to))?;
        socket.map(UdpSocket::from).ok_or_else(|| Error::Helper("the helper gave no socket".into()))
    }

    /// Lets `client` hear by ICMP what becomes of its datagrams to `to`. Without CAP_NET_RAW it hears alone that nobody listens, and only
    /// when it sends there again within seconds.
    ///
    /// # Errors
    /// There is no such right and nothing is diverted, or the kernel cannot.
    pub fn complain(&self, what: Complaint, to: SocketAddr, client: SocketAddr) -> Result<(), Error> {
        self.ask(&command::Command::Complain(what, to, client)).map(drop)
    }

    /// Puts a diversion into force, in place of the one before, which has the same mark.
    ///
    /// # Errors
    /// `nft` or `ip` is missing or refuses, or another process diverts by this mark.
    pub fn divert(&self, divert: &Divert) -> Result<(), Error> {
        self.ask(&command::Command::Divert(divert.clone())).map(drop)
    }

    /// Gives TCP connections to `address` that begin from now on a first window of so many segments, by the way that leads there now. Ask
    /// again where that may have changed.
    ///
    /// # Errors
    /// It is no other host's address, there is a route to it alone already, or `ip` is missing or refuses.
    pub fn set_first_window(&self, address: IpAddr, segments: u32) -> Result<(), Error> {
        self.ask(&command::Command::FirstWindow(address, segments)).map(drop)
    }

    /// Makes a TUN device, to which nothing is routed before [`Privileged::reroute`].
    ///
    /// # Errors
    /// There is a device of that name, no TUN driver, or `ip` refuses.
    pub fn route(&self, intake: &Intake) -> Result<Tun, Error> {
        let device = self.ask(&command::Command::Route(intake.clone()))?;
        let device = device.ok_or_else(|| Error::Helper("the helper gave no device".into()))?;
        Ok(Tun::of(device, &intake.device))
    }

    /// Has these packets routed into the device that [`Privileged::route`] has made, in place of those before.
    ///
    /// # Errors
    /// `ip` refuses.
    pub fn reroute(&self, intake: &Intake) -> Result<(), Error> {
        self.ask(&command::Command::Route(intake.clone())).map(drop)
    }

    /// The helper's process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Has `tell` called, in a thread of its own, with how the helper has ended, should it do so before it is dropped here. Whatever
    /// is asked of it after that fails.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn watch(&self, tell: impl FnOnce(&str) + Send + 'static) -> Result<(), Error> {
        let (helper, is_over) = (Pid::from_raw(self.child.id().cast_signed()), Arc::clone(&self.is_over));
        let watch = move || {
            // Its end is only looked at: whoever drops the helper waits for it too.
            let ended = waitid(Id::Pid(helper), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
            if !is_over.load(Ordering::SeqCst) {
                tell(&match ended {
                    Ok(WaitStatus::Signaled(_, signal, _)) => format!("ended by {signal}"),
                    Ok(WaitStatus::Exited(_, status)) => format!("ended with status {status}"),
                    Ok(other) => format!("ended: {other:?}"),
                    Err(error) => format!("gone: {error}"),
                });
            }
        };
        let thread = thread::Builder::new().name("helper".into()).spawn(watch);
        thread.map(drop).map_err(Error::system("watch the helper that changes networks"))
    }

    fn ask(&self, command: &command::Command) -> Result<Option<OwnedFd>, Error> {
        let socket = self.socket();
        let gone = || Error::Helper("the helper that changes networks has ended".into());
        let socket = socket.as_ref().ok_or_else(gone)?;
        wire::send(socket, &command.to_string(), None).map_err(Error::system("reach the helper"))?;
        let answer = wire::receive(socket).map_err(Error::system("hear the helper"))?;
        match answer.ok_or_else(gone)? {
            (text, descriptor) if text == helper::DONE => Ok(descriptor),
            (reason, _) => Err(Error::Helper(reason)),
        }
    }

    fn socket(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Privileged {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        drop(self.socket().take());
        // It cannot fail in a way that we could mend: what is left the next start removes.
        let _ = self.child.wait();
    }
}
