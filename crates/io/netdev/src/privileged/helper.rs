//! The helper itself: does what it is asked until its owner is gone, however that ended, and undoes it then. Nothing of
//! its owner is with it but the one socket.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};

use farhop_packets::Complaint;
use nix::sys::signal::{SigHandler, Signal, signal};

use super::{command::Command, wire};
use crate::divert::{Diversion, Divert};
use crate::first_window::FirstWindows;
use crate::intake::{Intake, Routed};
use crate::{Error, capability, datagrams, icmp, transparent};

/// What an answer begins with.
pub(super) const DONE: &str = "done";

/// What the helper does, as the process that [`super::Privileged::start`] started: serves the socket that is its standard
/// input until the other end is gone.
///
/// # Errors
/// Its standard input is no such socket.
pub fn serve_privileged() -> Result<(), Error> {
    // Its owner says when it ends; a terminal or a service manager that tells all of them would come too early.
    for number in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        // SAFETY: ignoring a signal runs no code of ours.
        let _ = unsafe { signal(number, SigHandler::SigIgn) };
    }
    // SAFETY: nothing in this process has opened a descriptor yet; those that are open its owner did not close in time.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    capability::pass_net_admin_on();
    let owner = io::stdin();
    let mut done = Done::default();
    let result = loop {
        match wire::receive(&owner) {
            Ok(Some((text, _))) => {
                let answered = match done.perform(&text) {
                    Ok(listener) => {
                        let descriptor = listener.as_ref().map(|listener| listener.as_fd());
                        wire::send(&owner, DONE, descriptor)
                    }
                    Err(reason) => wire::send(&owner, &reason, None),
                };
                // Whoever does not hear the answer is gone, which the next receive tells.
                let _ = answered;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(Error::system("hear the owner of this helper")(error)),
        }
    };
    done.undo();
    result
}

/// What it has done.
#[derive(Default)]
struct Done {
    diversion: Option<Diversion>,
    routed: Option<Routed>,
    first_windows: FirstWindows,
}

impl Done {
    fn perform(&mut self, text: &str) -> Result<Option<OwnedFd>, String> {
        let command = text.parse().map_err(|()| format!("'{text}' is no command of this helper"))?;
        let done = match command {
            Command::Listen(address) => transparent::listen(address).map(TcpListener::into).map(Some),
            Command::Speak(address) => transparent::speak(address).map(Some),
            Command::Take(address) => datagrams::take(address).map(OwnedFd::from).map(Some),
            Command::Answer(from, to) => datagrams::answer(from, to).map(OwnedFd::from).map(Some),
            Command::Complain(what, to, client) => {
                complain(what, to, client, self.diversion.as_ref()).map(|()| None)
            }
            Command::Divert(divert) => put(&mut self.diversion, &divert).map(|()| None),
            Command::FirstWindow(address, segments) => {
                self.first_windows.put(address, segments).map(|()| None)
            }
            Command::Route(intake) => route(&mut self.routed, &intake),
        };
        done.map_err(|error| error.to_string())
    }

    fn undo(self) {
        self.diversion.iter().for_each(Diversion::end);
        self.routed.iter().for_each(Routed::end);
        self.first_windows.end();
    }
}

/// The device, where this makes it.
fn route(routed: &mut Option<Routed>, intake: &Intake) -> Result<Option<OwnedFd>, Error> {
    if let Some(routed) = routed {
        return routed.set(intake).map(|()| None);
    }
    let (made, device) = Routed::start(intake)?;
    *routed = Some(made);
    Ok(Some(device))
}

/// Says so, or where that needs a right that this process does not have, lets the kernel say so when the client sends again.
fn complain(
    what: Complaint,
    to: SocketAddr,
    client: SocketAddr,
    diversion: Option<&Diversion>,
) -> Result<(), Error> {
    match (icmp::complain(what, to, client), diversion) {
        (Err(Error::NoNetRaw { .. }), Some(diversion)) if what == Complaint::PortUnreachable => {
            diversion.refuse(to, client)
        }
        (said, _) => said,
    }
}

fn put(diversion: &mut Option<Diversion>, divert: &Divert) -> Result<(), Error> {
    match diversion {
        Some(diversion) => diversion.set(divert),
        None => {
            *diversion = Some(Diversion::start(divert)?);
            Ok(())
        }
    }
}
