//! An origin that plays a script of raw bytes, whatever the protocol would want.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::manners::Manners;

/// Heads longer than this are a mistake of the test.
const LONGEST_HEAD: usize = 1 << 20;

/// One act of a script.
#[derive(Debug, Clone)]
pub enum Step {
    /// Reads one request head and keeps it for [`HostileOrigin::heads`].
    ReadHead,
    /// Sends these bytes.
    Send(Bytes),
    /// Sends these bytes again and again until the other side has gone.
    SendForever(Bytes),
    /// Says nothing until the other side has gone.
    Hang,
    /// Ends the connection in good order (FIN), once the other side has ended too or stopped sending.
    Close,
    /// Breaks the connection off (RST).
    Reset,
}

/// An origin with bad manners, on a loopback port of its own, until it is dropped.
#[derive(Debug)]
pub struct HostileOrigin {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    task: Option<AbortHandle>,
    _held: Option<TcpSocket>,
}

#[derive(Debug, Default)]
struct Seen {
    connections: usize,
    heads: Vec<String>,
}

impl HostileOrigin {
    /// An origin that behaves like this to everyone.
    pub async fn with(manners: Manners) -> HostileOrigin {
        match manners {
            Manners::Refuses => Self::refusing(),
            _ => Self::playing(vec![manners.script()]).await,
        }
    }

    /// An origin that plays the first script to its first connection, the second to its second, and the last
    /// to all that follow.
    pub async fn playing(scripts: Vec<Vec<Step>>) -> HostileOrigin {
        Self::on(TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has free ports"), scripts)
    }

    /// The same on this listener, which may live in another network namespace.
    pub fn on(listener: TcpListener, scripts: Vec<Vec<Step>>) -> HostileOrigin {
        assert!(!scripts.is_empty(), "an origin needs a script");
        let address = listener.local_addr().expect("a bound listener has an address");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let task = tokio::spawn(accept(listener, scripts, seen.clone())).abort_handle();
        HostileOrigin { address, seen, task: Some(task), _held: None }
    }

    /// Nobody listens at its port, and nobody else can: it is bound, so the system gives it to no one.
    fn refusing() -> HostileOrigin {
        let held = TcpSocket::new_v4().expect("sockets can be made");
        held.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("loopback has free ports");
        let address = held.local_addr().expect("a bound socket has an address");
        HostileOrigin { address, seen: Arc::default(), task: None, _held: Some(held) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT` and the path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many connections it has accepted.
    pub fn connections(&self) -> usize {
        self.seen().connections
    }

    /// The request heads that it has read, in order, as they came.
    pub fn heads(&self) -> Vec<String> {
        self.seen().heads.clone()
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("no holder of this lock panics")
    }
}

impl Drop for HostileOrigin {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn accept(listener: TcpListener, scripts: Vec<Vec<Step>>, seen: Arc<Mutex<Seen>>) {
    // Dropped with this task, which ends every connection.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let number = {
            let mut seen = seen.lock().expect("no holder of this lock panics");
            seen.connections += 1;
            seen.connections - 1
        };
        let script = scripts[number.min(scripts.len() - 1)].clone();
        connections.spawn(play(stream, script, seen.clone()));
    }
}

/// Plays until the script ends or the other side has gone.
async fn play(mut stream: TcpStream, script: Vec<Step>, seen: Arc<Mutex<Seen>>) {
    for step in script {
        let goes_on = match step {
            Step::ReadHead => match read_head(&mut stream).await {
                Some(head) => {
                    seen.lock().expect("no holder of this lock panics").heads.push(head);
                    true
                }
                None => false,
            },
            Step::Send(bytes) => stream.write_all(&bytes).await.is_ok(),
            Step::SendForever(bytes) => {
                while stream.write_all(&bytes).await.is_ok() {}
                false
            }
            Step::Hang => {
                drain(&mut stream).await;
                false
            }
            Step::Close => {
                // Closing with unread bytes would send RST, which can overtake what was sent before.
                let _ = stream.shutdown().await;
                drain(&mut stream).await;
                false
            }
            Step::Reset => {
                let _ = stream.set_zero_linger();
                false
            }
        };
        if !goes_on {
            return;
        }
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert!(head.len() < LONGEST_HEAD, "a request head without end came in");
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

async fn drain(stream: &mut TcpStream) {
    let mut discarded = [0; 4096];
    while stream.read(&mut discarded).await.is_ok_and(|length| length > 0) {}
}
