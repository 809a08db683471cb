//! Asks the satellite modem, or the control centre beside a gateway, for return-link capacity ahead of the packets: the socket and the
//! clock around [`Asker`]. Whoever answers late, wrongly or not at all costs nothing but a datagram now and then.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_capacity::{Answer, Asker, LONGEST};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Between two looks for a modem that has no address.
const AGAIN: Duration = Duration::from_secs(60);

/// Where capacity is asked for; clones ask the same.
#[derive(Debug, Clone)]
pub struct Modem(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    asker: Mutex<Asker>,
    changed: Notify,
}

/// Bytes that are expected to be sent; what is left of them when this is dropped is expected no more.
#[derive(Debug, Default)]
pub struct Expected {
    of: Option<Modem>,
    left: u64,
}

/// The socket to a modem.
#[derive(Debug)]
pub struct Line(UdpSocket);

impl Line {
    /// To the modem at `address`, a name or an address with a port.
    ///
    /// # Errors
    /// No socket, or the name has no address.
    pub async fn open(address: &str) -> io::Result<Line> {
        let mut found = tokio::net::lookup_host(address).await?;
        let none = || io::Error::new(io::ErrorKind::NotFound, format!("{address} has no address"));
        let to = found.next().ok_or_else(none)?;
        let from: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(from).await?;
        socket.connect(to).await?;
        Ok(Line(socket))
    }
}

impl Modem {
    /// A modem that is asked for no more than `most` bytes at a time, for `terminal` where it is a centre. Nothing is said before
    /// [`Modem::speak`].
    pub fn new(most: u64, terminal: Option<u16>) -> Modem {
        Modem(Arc::new(Shared { asker: Mutex::new(Asker::new(most, terminal)), changed: Notify::new() }))
    }

    /// So many bytes are to be sent soon.
    pub fn expect(&self, bytes: u64) -> Expected {
        self.asker().expect(bytes);
        self.0.changed.notify_one();
        Expected { of: Some(self.clone()), left: bytes }
    }

    fn asker(&self) -> MutexGuard<'_, Asker> {
        // Numbers alone: whoever panicked while it held them has left them whole.
        self.0.asker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Speaks with the modem at `address` for ever; while that has no address it is looked for again and again.
    pub async fn speak_to(self, address: String) {
        let line = loop {
            match Line::open(&address).await {
                Ok(line) => break line,
                Err(error) => {
                    tracing::warn!(target: "farhop", "the modem {address} cannot be asked for capacity: {error}");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        };
        self.speak(line).await;
    }

    /// Says over `line` what is expected, whenever something is; never ends.
    pub async fn speak(self, line: Line) {
        let (Line(socket), start) = (line, Instant::now());
        let mut buffer = [0; LONGEST + 1];
        loop {
            let (datagram, next) = {
                let mut asker = self.asker();
                (asker.poll_transmit(start.elapsed()), asker.next_wakeup())
            };
            if let Some(expect) = datagram {
                // A modem that is not there is one that does not answer.
                let _ = socket.send(expect.to_string().as_bytes()).await;
                continue;
            }
            let wake = async {
                match next {
                    Some(at) => tokio::time::sleep_until(start + at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wake => {}
                () = self.0.changed.notified() => {}
                received = socket.recv(&mut buffer) => {
                    // An error is the system's word that nobody listens there: silence, too.
                    let answer = received.ok().and_then(|length| Answer::parse(buffer.get(..length)?).ok());
                    if let Some(answer) = answer {
                        if let Answer::Refused { reason, .. } = &answer {
                            tracing::info!(target: "farhop", "the modem gives no capacity for the asking: {reason}");
                        }
                        self.asker().handle_answer(start.elapsed(), &answer);
                    }
                }
            }
        }
    }
}

impl Expected {
    /// So many of them were handed over.
    pub fn sent(&mut self, bytes: u64) {
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        if let (Some(modem), 1..) = (&self.of, bytes) {
            modem.asker().sent(bytes);
            modem.0.changed.notify_one();
        }
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.sent(self.left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_capacity::Expect;

    /// A modem on loopback, and what it is told.
    async fn world(most: u64) -> (Modem, UdpSocket) {
        let centre = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let line = Line::open(&centre.local_addr().unwrap().to_string()).await.unwrap();
        let modem = Modem::new(most, Some(4));
        tokio::spawn(modem.clone().speak(line));
        (modem, centre)
    }

    /// The next datagram, answered.
    async fn told(centre: &UdpSocket) -> Expect {
        let mut buffer = [0; 300];
        let (length, from) = centre.recv_from(&mut buffer).await.unwrap();
        let expect = Expect::parse(&buffer[..length]).unwrap();
        let answer = Answer::Noted { number: expect.number };
        centre.send_to(answer.to_string().as_bytes(), from).await.unwrap();
        expect
    }

    #[tokio::test]
    async fn what_is_expected_is_told_and_taken_back_when_nobody_wants_it_any_more() {
        let (modem, centre) = world(64_000).await;
        let mut expected = modem.expect(10_000);
        let first = told(&centre).await;
        assert_eq!((first.bytes, first.terminal), (10_000, Some(4)));
        expected.sent(4_000);
        let mut later = told(&centre).await;
        // The repetition may have been under way already.
        while later.bytes != 6_000 {
            later = told(&centre).await;
        }
        drop(expected);
        while told(&centre).await.bytes != 0 {}
        assert_eq!(modem.asker().expected(), 0);
    }

    #[tokio::test]
    async fn without_a_modem_nothing_happens() {
        let mut expected = Expected::default();
        expected.sent(5);
        drop(expected);
        assert!(Line::open("127.0.0.1").await.is_err(), "there is no port");
    }
}
