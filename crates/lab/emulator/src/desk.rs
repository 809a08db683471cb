//! Where the emulated link is asked for capacity ahead of the packets (docs/capacity.md): as a terminal's modem, on the terminal's side,
//! or as the network control centre, on the gateway's.

use farhop_capacity::{Answer, Expect, LONGEST, Question};
use farhop_netdev::{Waker, wait_readable};
use farhop_orbit::{Supply, Volume};
use farhop_units::Bytes;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::LinkHandle;

/// What stands at a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// A terminal's modem; counted from 0.
    Modem(u16),
    /// The network control centre.
    Centre,
}

/// Answers at some sockets until dropped.
#[derive(Debug)]
pub struct Desk {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    waker: Waker,
    stop: AtomicBool,
}

impl Desk {
    /// Begins to answer for `link` at these sockets.
    ///
    /// # Errors
    /// Out of descriptors or threads.
    pub fn open(link: LinkHandle, counters: Vec<(UdpSocket, Counter)>) -> io::Result<Desk> {
        for (socket, _) in &counters {
            socket.set_nonblocking(true)?;
        }
        let shared = Arc::new(Shared { waker: Waker::new()?, stop: AtomicBool::new(false) });
        let serving = Arc::clone(&shared);
        let serve = move || serve(&link, &counters, &serving);
        let thread = std::thread::Builder::new().name("link-desk".into()).spawn(serve)?;
        Ok(Desk { shared, thread: Some(thread) })
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic of its own has been printed already
        }
    }
}

fn serve(link: &LinkHandle, counters: &[(UdpSocket, Counter)], shared: &Shared) {
    let sources: Vec<_> =
        counters.iter().map(|(socket, _)| socket.as_fd()).chain([shared.waker.source()]).collect();
    let mut buffer = [0; LONGEST + 1];
    while !shared.stop.load(Ordering::Relaxed) {
        if wait_readable(&sources, None).is_err() {
            return;
        }
        shared.waker.clear();
        for (socket, counter) in counters {
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                // What is no question gets no answer.
                let Ok(question) = Question::parse(buffer.get(..length).unwrap_or_default()) else {
                    continue;
                };
                let answer = take(link, *counter, question);
                let _ = socket.send_to(answer.to_string().as_bytes(), from); // one that got lost is an answer that got lost
            }
        }
    }
}

/// Takes note of what is expected, tells what is given, or says why not.
fn take(link: &LinkHandle, counter: Counter, question: Question) -> Answer {
    let number = question.number();
    let profile = link.profile();
    let volume = match &profile.return_.supply {
        Supply::OnDemand(shared) => Some(shared.entitlement.volume),
        Supply::Steady | Supply::Steps(_) | Supply::Trace(_) => None,
    };
    match (whose(counter, question.terminal(), link.terminals(), volume), question) {
        (Err(reason), _) => Answer::Refused { number, reason },
        (Ok(terminal), Question::Tell(_)) => {
            Answer::Granted { number, rate: link.granted(terminal).map_or(0, |rate| rate.0) }
        }
        (Ok(_), Question::Expect(_)) if counter == Counter::Centre && volume == Some(Volume::None) => {
            Answer::Refused { number, reason: "terminals are entitled to no volume".into() }
        }
        (Ok(terminal), Question::Expect(Expect { bytes, .. })) => {
            match counter {
                Counter::Modem(_) => link.announce(terminal, Bytes(bytes)),
                Counter::Centre => link.foretell(terminal, Bytes(bytes)),
            }
            Answer::Noted { number }
        }
    }
}

/// Whose capacity it is about; `volume` is there where capacity is given on demand.
fn whose(
    counter: Counter,
    terminal: Option<u16>,
    terminals: usize,
    volume: Option<Volume>,
) -> Result<u16, String> {
    volume.ok_or("this link's capacity is not given on demand")?;
    match (counter, terminal) {
        (Counter::Modem(own), None) => Ok(own),
        (Counter::Modem(own), Some(said)) if own == said => Ok(own),
        (Counter::Modem(own), Some(_)) => Err(format!("this is the modem of terminal {own}")),
        (Counter::Centre, None) => Err("say for which terminal".into()),
        (Counter::Centre, Some(said)) if usize::from(said) >= terminals => {
            Err(format!("there is no terminal {said}, only {terminals} from 0 on"))
        }
        (Counter::Centre, Some(said)) => Ok(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modem_speaks_for_itself_and_the_centre_for_all() {
        let (modem, centre) = (Counter::Modem(2), Counter::Centre);
        let volume = Some(Volume::Absolute);
        assert_eq!(whose(modem, None, 3, volume), Ok(2));
        assert_eq!(whose(modem, Some(2), 3, volume), Ok(2));
        assert_eq!(whose(modem, Some(1), 3, volume), Err("this is the modem of terminal 2".into()));
        assert_eq!(whose(modem, None, 3, Some(Volume::None)), Ok(2), "a rate may be asked for ahead");
        assert_eq!(whose(centre, Some(1), 3, volume), Ok(1));
        let refused =
            [whose(centre, None, 3, volume), whose(centre, Some(3), 3, volume), whose(modem, None, 3, None)];
        assert_eq!(
            refused.map(Result::unwrap_err),
            [
                "say for which terminal",
                "there is no terminal 3, only 3 from 0 on",
                "this link's capacity is not given on demand"
            ]
        );
    }
}
