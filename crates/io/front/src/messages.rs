//! Messages of clients, each with its answer, over UDP and over TCP with a length in front of each (RFC 1035 §4.2). What they
//! say is the caller's.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// RFC 7766 §6.2.3: how long a connection stays open on which nothing is asked, or an answer is not taken.
const IDLE: Duration = Duration::from_secs(10);
/// Messages that are being answered at a time.
const MOST: usize = 1024;
/// Connections of one client.
const CONNECTIONS_OF_ONE: u32 = 16;
/// A datagram that asks is far shorter.
const LARGEST_DATAGRAM: usize = 4096;
/// How long is waited for a descriptor where there is none left.
const PAUSE: Duration = Duration::from_millis(100);

/// How a message came, and its answer will go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// UDP: short answers, and one that is lost is asked for again.
    Datagrams,
    /// TCP: answers of up to 65,535 bytes.
    Connections,
}

/// A port on which messages come. Clones share it.
#[derive(Clone)]
pub struct Messages(Arc<Shared>);

struct Shared {
    datagrams: UdpSocket,
    connections: TcpListener,
    places: Arc<Semaphore>,
    /// Connections of each client.
    open: Mutex<HashMap<IpAddr, u32>>,
}

impl Messages {
    /// Listens at `address`, over UDP and TCP. Call it inside a runtime.
    ///
    /// # Errors
    /// Somebody else does, or the address is not this machine's.
    pub fn bind(address: SocketAddr) -> io::Result<Messages> {
        let datagrams = std::net::UdpSocket::bind(address)?;
        // The same port, also where the system chose it.
        let connections = std::net::TcpListener::bind(datagrams.local_addr()?)?;
        datagrams.set_nonblocking(true)?;
        connections.set_nonblocking(true)?;
        Ok(Messages(Arc::new(Shared {
            datagrams: UdpSocket::from_std(datagrams)?,
            connections: TcpListener::from_std(connections)?,
            places: Arc::new(Semaphore::new(MOST)),
            open: Mutex::default(),
        })))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.connections.local_addr()
    }

    /// Gives each message to `answer` and sends what comes of it, until the future is dropped. Messages do not wait for each
    /// other, also on one connection (RFC 7766 §6.2.1.1); beyond a bound those over UDP are lost.
    pub async fn serve<A, F>(self, answer: A)
    where
        A: Fn(IpAddr, Vec<u8>, Over) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Option<Vec<u8>>> + Send + 'static,
    {
        tokio::join!(self.take_datagrams(answer.clone()), self.take_connections(answer));
    }

    async fn take_datagrams<A, F>(&self, answer: A)
    where
        A: Fn(IpAddr, Vec<u8>, Over) -> F,
        F: Future<Output = Option<Vec<u8>>> + Send + 'static,
    {
        let mut buffer = vec![0; LARGEST_DATAGRAM];
        loop {
            // An error is that of an earlier answer whose client is gone.
            let Ok((length, client)) = self.0.datagrams.recv_from(&mut buffer).await else { continue };
            let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() else { continue };
            let answer = answer(client.ip().to_canonical(), buffer[..length].to_vec(), Over::Datagrams);
            let shared = Arc::clone(&self.0);
            tokio::spawn(async move {
                if let Some(reply) = answer.await {
                    let _ = shared.datagrams.send_to(&reply, client).await;
                }
                drop(place);
            });
        }
    }

    async fn take_connections<A, F>(&self, answer: A)
    where
        A: Fn(IpAddr, Vec<u8>, Over) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Option<Vec<u8>>> + Send + 'static,
    {
        loop {
            let Ok((stream, client)) = self.0.connections.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let client = client.ip().to_canonical();
            if let Some(counted) = Counted::enter(&self.0, client) {
                let answer = answer.clone();
                tokio::spawn(async move { counted.attend(stream, client, answer).await });
            }
        }
    }
}

/// A connection, counted until it is dropped.
struct Counted(Arc<Shared>, IpAddr);

impl Counted {
    fn enter(shared: &Arc<Shared>, client: IpAddr) -> Option<Counted> {
        let mut open = lock(shared);
        let count = open.entry(client).or_insert(0);
        (*count < CONNECTIONS_OF_ONE).then(|| {
            *count += 1;
            Counted(Arc::clone(shared), client)
        })
    }

    /// Until its client is done, or silent for too long.
    async fn attend<A, F>(self, stream: TcpStream, client: IpAddr, answer: A)
    where
        A: Fn(IpAddr, Vec<u8>, Over) -> F,
        F: Future<Output = Option<Vec<u8>>> + Send + 'static,
    {
        let (mut reader, writer) = stream.into_split();
        let writer = Arc::new(tokio::sync::Mutex::new(writer));
        while let Ok(Ok(length)) = timeout(IDLE, reader.read_u16()).await {
            let mut message = vec![0; usize::from(length)];
            let Ok(Ok(_)) = timeout(IDLE, reader.read_exact(&mut message)).await else { return };
            let Ok(place) = Arc::clone(&self.0.places).acquire_owned().await else { return };
            let (answer, writer) = (answer(client, message, Over::Connections), Arc::clone(&writer));
            tokio::spawn(async move {
                let Some(reply) = answer.await else { return };
                let write = async {
                    let length = u16::try_from(reply.len()).unwrap_or_default().to_be_bytes();
                    writer.lock().await.write_all(&[&length[..], &reply].concat()).await
                };
                // A client that is gone asks no more, which its connection's end tells.
                let _ = timeout(IDLE, write).await;
                drop(place);
            });
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = lock(&self.0);
        if let Some(count) = open.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.1);
            }
        }
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
    shared.open.lock().unwrap_or_else(PoisonError::into_inner)
}
