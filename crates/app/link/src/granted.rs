//! Follows what the network control centre grants: whoever knows it tells (`capacity_granted`), or the modem is asked again and again
//! (docs/capacity.md). It is told in turn how much waits here, since what is held back here it would never ask capacity for.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use farhop_capacity::{Answer, Asker, LONGEST, Tell};
use farhop_units::BitRate;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::config::{GrantTerms, RateSource};
use crate::device::Device;
use crate::follow::{is_worth_it, put};
use crate::manager::Manager;
use crate::run::blocking;

/// How often the modem is asked, and told what waits: within half a round trip by satellite.
const LOOK: Duration = Duration::from_millis(300);
/// What it has said counts for so long: answers get lost.
const HOLDS: Duration = Duration::from_secs(3);
/// After a modem that cannot be asked.
const AGAIN: Duration = Duration::from_secs(5);
/// After what could not be put into force.
const SOON: Duration = Duration::from_secs(1);
/// Answers to questions before the last so many are late.
const LATE: u32 = 8;
/// Questions for what is granted are numbered from here, and those of the [`Asker`] from 0.
const FIRST: u32 = 1 << 31;

/// Puts into force what is granted, for as long as that counts; never ends.
pub(crate) async fn follow<D: Device>(manager: &Arc<Manager>, device: &Arc<D>) {
    let mut told = manager.granted.subscribe();
    let mut in_force: Option<BitRate> = None;
    loop {
        let granted = *told.borrow_and_update();
        let granted = granted.filter(|(_, until)| *until > Instant::now());
        let wanted = granted.map(|(rate, _)| manager.sent_of(rate));
        let is_new = match (in_force, wanted) {
            (Some(before), Some(now)) => is_worth_it(before, now),
            (before, now) => before != now,
        };
        let done = !is_new || put(manager, device, wanted.map(|rate| (rate, RateSource::Granted))).await;
        if is_new && done {
            in_force = wanted;
        }
        let ends = async {
            match granted {
                Some((_, until)) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = told.changed() => if changed.is_err() { return std::future::pending().await },
            () = ends => {}
            () = sleep(SOON), if !done => {}
        }
    }
}

/// Asks the modem, where there is one to ask; never ends.
pub(crate) async fn hear<D: Device>(manager: &Arc<Manager>, device: &Arc<D>) {
    let terms = manager.grant_terms().clone();
    let Some(address) = &terms.modem else { return std::future::pending().await };
    let socket = loop {
        match open(address).await {
            Ok(socket) => break socket,
            Err(error) => {
                manager
                    .set_follow_trouble(Some(format!("{address} cannot be asked what is granted: {error}")));
                sleep(AGAIN).await;
            }
        }
    };
    speak(manager, device, &terms, address, &socket).await;
}

async fn speak<D: Device>(
    manager: &Arc<Manager>,
    device: &Arc<D>,
    terms: &GrantTerms,
    address: &str,
    socket: &UdpSocket,
) {
    let began = Instant::now();
    let mut asker = Asker::new(terms.ahead, terms.terminal);
    let (mut number, mut heard) = (FIRST, began);
    let mut buffer = [0; LONGEST + 1];
    loop {
        let interface = manager.interface().to_owned();
        // A device that is not there has nothing that waits.
        let waits = blocking(device, move |device| device.waiting(&interface)).await.unwrap_or(0);
        asker.sent(asker.expected().saturating_sub(waits));
        asker.expect(waits.saturating_sub(asker.expected()));
        number = number.wrapping_add(1).max(FIRST);
        // A modem that is not there is one that does not answer.
        let tell = Tell { number, terminal: terms.terminal };
        let _ = socket.send(tell.to_string().as_bytes()).await;
        while let Some(expect) = asker.poll_transmit(began.elapsed()) {
            let _ = socket.send(expect.to_string().as_bytes()).await;
        }
        let until = Instant::now() + LOOK;
        while let Ok(received) = timeout_at(until, socket.recv(&mut buffer)).await {
            let answer = received.ok().and_then(|length| Answer::parse(buffer.get(..length)?).ok());
            match answer {
                Some(Answer::Granted { number: of, rate }) if number.wrapping_sub(of) < LATE => {
                    heard = Instant::now();
                    manager.set_follow_trouble(None);
                    manager.grant(BitRate(rate), HOLDS);
                }
                Some(Answer::Refused { number: of, reason }) if of >= FIRST => {
                    heard = Instant::now();
                    manager.set_follow_trouble(Some(format!(
                        "{address} does not say what is granted: {reason}"
                    )));
                }
                Some(answer) => asker.handle_answer(began.elapsed(), &answer),
                None => {}
            }
        }
        if heard.elapsed() > HOLDS {
            manager.set_follow_trouble(Some(format!("{address} does not say what is granted")));
        }
    }
}

/// A socket to a host with a port.
async fn open(address: &str) -> io::Result<UdpSocket> {
    let to = tokio::net::lookup_host(address).await?.next();
    let to = to.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no address"))?;
    let from: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(from).await?;
    socket.connect(to).await?;
    Ok(socket)
}
