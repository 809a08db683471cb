//! The origins of all cases: one listener that every loopback address reaches, so that the address says whose case a
//! connection belongs to. It keeps what comes, reads it strictly, and answers from the case's script or by repeating what
//! was asked.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::client;
use super::notation::Case;
use super::strict::{self, Kind, Message};
use super::text::End;

/// Paths that the runner itself asks for are answered honestly even where a case has a script.
pub(super) const OWN: &str = "/farhop-";

/// What came to one address.
#[derive(Debug, Default, Clone)]
pub(super) struct Seen {
    /// The whole requests, in order.
    pub(super) requests: Vec<Message>,
    /// What cannot be read, one line for each connection.
    pub(super) wrong: Vec<String>,
    /// Bytes of requests that never ended, one piece for each connection.
    pub(super) unfinished: Vec<Vec<u8>>,
}

/// What is said to one request.
#[derive(Clone)]
struct Answer {
    bytes: Vec<u8>,
    end: End,
    in_pieces: bool,
}

struct Shared {
    scripts: HashMap<IpAddr, Answer>,
    seen: Mutex<HashMap<IpAddr, HashMap<u64, Connection>>>,
    /// Counts connections and requests, in the order in which they come.
    count: AtomicU64,
}

#[derive(Default)]
struct Connection {
    requests: Vec<(u64, Message)>,
    left: Vec<u8>,
    wrong: Option<String>,
}

/// See the module. Ends when it is dropped.
pub(super) struct Origins {
    port: u16,
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for Origins {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Which of a case's two origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The one that the client means.
    Meant = 35,
    /// One that nobody may be led to.
    Other = 36,
}

/// All addresses are equally long when written, so that lengths in the corpus stay true.
fn host(which: Which, case: usize) -> Ipv4Addr {
    assert!(case < 1000, "there are addresses for 1000 cases");
    Ipv4Addr::new(127, which as u8, (case / 100) as u8, (100 + case % 100) as u8)
}

impl Origins {
    pub(super) async fn start(cases: &[Case]) -> Origins {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await.expect("this machine has free ports");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let address = |which, case| SocketAddr::from((host(which, case), port));
        let scripts = cases.iter().enumerate().filter_map(|(number, case)| {
            let text = case.origin.as_ref()?;
            let bytes = text.bytes(address(Which::Meant, number), address(Which::Other, number));
            Some((
                host(Which::Meant, number).into(),
                Answer { bytes, end: text.end, in_pieces: case.in_pieces },
            ))
        });
        let shared =
            Arc::new(Shared { scripts: scripts.collect(), seen: Mutex::default(), count: AtomicU64::new(0) });
        let task = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Origins { port, shared, task }
    }

    pub(super) fn address(&self, which: Which, case: usize) -> SocketAddr {
        SocketAddr::from((host(which, case), self.port))
    }

    /// What has come to an origin of a case so far.
    pub(super) fn seen(&self, which: Which, case: usize) -> Seen {
        let all = self.shared.seen();
        let mut seen = Seen::default();
        let mut requests = Vec::new();
        for connection in all.get(&IpAddr::from(host(which, case))).into_iter().flat_map(HashMap::values) {
            requests.extend(connection.requests.iter().cloned());
            seen.wrong.extend(connection.wrong.clone());
            if connection.wrong.is_none() && !connection.left.is_empty() {
                seen.unfinished.push(connection.left.clone());
            }
        }
        requests.sort_by_key(|(order, _)| *order);
        seen.requests = requests.into_iter().map(|(_, request)| request).collect();
        seen
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, HashMap<IpAddr, HashMap<u64, Connection>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, which ends every connection.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(stream, shared.clone()));
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let Ok(address) = stream.local_addr().map(|address| address.ip()) else { return };
    // A piece is a packet.
    let _ = stream.set_nodelay(true);
    let number = shared.next();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let (answers, readable) = shared.take(address, number, &buffer[..count]);
        for answer in answers {
            // Who has gone wants no answer.
            let _ = client::write(&mut stream, &answer.bytes, answer.in_pieces).await;
            match answer.end {
                End::Open => {}
                End::Closed => drop(stream.shutdown().await),
                End::Reset => {
                    let _ = stream.set_zero_linger();
                    return;
                }
            }
        }
        if !readable {
            return;
        }
    }
}

impl Shared {
    /// Keeps what came over a connection; the answers to the requests that it makes whole, and whether more can follow.
    fn take(&self, address: IpAddr, number: u64, bytes: &[u8]) -> (Vec<Answer>, bool) {
        let mut all = self.seen();
        let connection = all.entry(address).or_default().entry(number).or_default();
        connection.left.extend_from_slice(bytes);
        let mut answers = Vec::new();
        while connection.wrong.is_none() && !connection.left.is_empty() {
            match strict::read(&connection.left, Kind::Request) {
                Ok(Some(request)) => {
                    connection.left.drain(..request.length);
                    answers.push(self.answer(address, &request));
                    connection.requests.push((self.next(), request));
                }
                Ok(None) => break,
                Err(why) => connection.wrong = Some(why),
            }
        }
        (answers, connection.wrong.is_none())
    }

    fn answer(&self, address: IpAddr, request: &Message) -> Answer {
        let [method, target, _] = &request.start;
        match self.scripts.get(&address) {
            Some(script) if !target.starts_with(OWN) => script.clone(),
            _ => {
                let bytes = repeat(method, target, request.body.len());
                Answer { bytes, end: End::Open, in_pieces: false }
            }
        }
    }
}

/// The body of an honest answer.
pub(super) fn repeated(method: &str, target: &str, length: usize) -> String {
    format!("{method} {target} {length}\n")
}

fn repeat(method: &str, target: &str, length: usize) -> Vec<u8> {
    let body = repeated(method, target, length);
    let fields = "Content-Type: text/plain\r\nCache-Control: no-store\r\n";
    let mut answer =
        format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    if method != "HEAD" {
        answer.extend_from_slice(body.as_bytes());
    }
    answer
}
