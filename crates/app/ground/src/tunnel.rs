//! The tunnel component of ground: bytes between a TCP connection and a tunnel stream, both ways, with each side's end
//! and reset carried to the other, and the marks of urgent bytes. It never looks into the bytes and never holds any back.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use farhop_bundle::Place;
use farhop_events::{Event, ExchangeId};
use farhop_htotp::frame::Failure;
use farhop_transport::hop::{Arrival, Receiver, Sender};
use tokio::io::{AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::ahead::Ahead;
use crate::carrier::Carrier;
use crate::failure;
use crate::owner::Owner;

/// How long an idle tunnel is kept is for the remote to say (RFC 5382 REQ-5: at least 2 hours and 4 minutes); none may say
/// more than a week.
const IDLE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The same for one that one side has closed: the 4 minutes of RFC 5382 REQ-5.
const IDLE_HALF_CLOSED: Duration = Duration::from_secs(4 * 60);
/// Read at once; nothing is held for a tunnel that is idle.
const CHUNK: usize = 32 * 1024;

/// How long what was said before a reset may take to cross.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// A tunnel that a remote asked for.
pub(crate) struct Tunnel {
    pub(crate) carrier: Arc<Carrier>,
    pub(crate) id: ExchangeId,
    pub(crate) owner: Owner,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// In whose name to connect; in ground's own without.
    pub(crate) client: Option<IpAddr>,
}

/// Why a direction ended before its end.
pub(crate) enum Broken {
    /// The hop's side: reset, or nobody takes it.
    Hop,
    /// The connection to the far side.
    Far,
}

/// When something last moved, and how long nothing may.
pub(crate) struct Watch(Mutex<(Instant, Duration)>);

impl Tunnel {
    /// Connects and carries until both sides have ended.
    pub(crate) async fn serve(self, sender: Sender, receiver: Receiver) {
        let ground = &self.carrier.ground;
        // The client's first bytes wait in the stream's window meanwhile.
        let connected = tokio::select! {
            biased;
            connected = self.connect() => connected,
            _ = sender.gone() => return,
        };
        let stream = match connected {
            Ok(stream) => stream,
            Err(failure) => {
                ground.bus.emit(Event::Failed {
                    exchange: self.id,
                    user: self.owner.to_string(),
                    method: "CONNECT".into(),
                    url: format!("{}:{}", self.host, self.port),
                    side: failure::side(&failure),
                    error: failure.to_string(),
                    status: Some(failure.status),
                    bytes: 0,
                });
                return sender.fail(failure);
            }
        };
        sender.accept_tunnel();
        ground.bus.emit(Event::TunnelOpened { exchange: self.id, host: self.host.clone(), port: self.port });
        carry(stream, sender, receiver).await;
    }

    /// A connection that was made ahead, if there is one, or a new one.
    async fn connect(&self) -> Result<TcpStream, Failure> {
        let ground = &self.carrier.ground;
        if let Some(client) = self.client {
            return ground.origins.connect_as(self.id, &ground.names, client, &self.host, self.port).await;
        }
        let place = Place { host: self.host.to_ascii_lowercase(), port: self.port };
        let visitor = self.carrier.visitor(self.owner.user);
        match Ahead::tunnel(ground, &self.carrier.remote, visitor, &place, self.carrier.ahead()).await {
            Some(stream) => Ok(stream),
            None => ground.origins.connect(self.id, &self.host, self.port).await,
        }
    }
}

/// Copies both ways until both have ended, one is broken, or nothing moves for too long.
async fn carry(mut stream: TcpStream, mut sender: Sender, mut receiver: Receiver) {
    let watch = Watch::new();
    let (reader, mut writer) = stream.split();
    let connection = reader.as_ref();
    let outcome = tokio::select! {
        outcome = async {
            tokio::try_join!(
                down(connection, &mut sender, &watch),
                up(&mut receiver, &mut writer, connection, &watch),
            )
        } => outcome.map(drop),
        () = watch.idle() => Err(Broken::Hop),
    };
    match outcome {
        // The far client was reset, so the origin is too: an orderly end would say that all had arrived.
        Err(Broken::Hop) => drop(stream.set_zero_linger()),
        Err(Broken::Far) => last_words(&sender).await,
        Ok(()) => {}
    }
    // A sender that has not finished resets its side of the hop when it is dropped, a receiver stops its peer's.
}

/// What the far side has said before it broke is for the client, as it is over plain TCP: the reset that follows would overtake it.
pub(crate) async fn last_words(sender: &Sender) {
    let _ = timeout(LAST_WORDS, sender.heard()).await;
}

/// From the TCP connection to the hop.
async fn down(connection: &TcpStream, sender: &mut Sender, watch: &Watch) -> Result<(), Broken> {
    loop {
        tokio::select! {
            readable = connection.readable() => readable.map_err(|_| Broken::Far)?,
            _ = sender.gone() => return Err(Broken::Hop),
        }
        let mut buffer = BytesMut::with_capacity(CHUNK);
        let urgent = connection.try_io(Interest::READABLE, || farhop_netdev::is_next_urgent(connection));
        match urgent.and_then(|urgent| Ok((connection.try_read_buf(&mut buffer)?, urgent))) {
            Ok((0, _)) => {
                sender.finish(None);
                watch.half_closed();
                return Ok(());
            }
            Ok((_, urgent)) => {
                watch.moved();
                if urgent {
                    sender.mark();
                }
                sender.write(small(buffer).freeze()).await.map_err(|_| Broken::Hop)?;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(Broken::Far),
        }
    }
}

/// From the hop to the far side, and then the client's end.
async fn up(
    receiver: &mut Receiver,
    writer: &mut (impl AsyncWrite + Unpin),
    connection: &TcpStream,
    watch: &Watch,
) -> Result<(), Broken> {
    pour(receiver, writer, Some(connection), watch, |_| ()).await?;
    writer.shutdown().await.map_err(|_| Broken::Far)
}

/// From the hop to the far side until the client has ended, which the far side is not told here; each piece leaves at once, and `look`
/// is shown it. Urgent bytes are marked on `connection`, where one is given.
pub(crate) async fn pour(
    receiver: &mut Receiver,
    writer: &mut (impl AsyncWrite + Unpin),
    connection: Option<&TcpStream>,
    watch: &Watch,
    mut look: impl FnMut(&[u8]),
) -> Result<(), Broken> {
    let mut urgent = None;
    loop {
        match receiver.next().await {
            Arrival::Urgent => urgent = connection,
            Arrival::Body(mut bytes) => {
                watch.moved();
                look(&bytes);
                if let Some(connection) = urgent.take_if(|_| !bytes.is_empty()) {
                    let byte = bytes.get_u8();
                    let send = || farhop_netdev::send_urgent(connection, byte);
                    connection.async_io(Interest::WRITABLE, send).await.map_err(|_| Broken::Far)?;
                }
                writer.write_all(&bytes).await.map_err(|_| Broken::Far)?;
                writer.flush().await.map_err(|_| Broken::Far)?;
                watch.moved();
            }
            Arrival::Ended => {
                watch.half_closed();
                return Ok(());
            }
            _ => return Err(Broken::Hop),
        }
    }
}

/// A few bytes must not hold a whole buffer while they wait.
pub(crate) fn small(buffer: BytesMut) -> BytesMut {
    if buffer.len() < CHUNK / 4 { BytesMut::from(&buffer[..]) } else { buffer }
}

impl Watch {
    /// Something moves now.
    pub(crate) fn new() -> Self {
        Watch(Mutex::new((Instant::now(), IDLE)))
    }

    fn with<T>(&self, act: impl FnOnce(&mut (Instant, Duration)) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn moved(&self) {
        self.with(|state| state.0 = Instant::now());
    }

    pub(crate) fn half_closed(&self) {
        self.with(|state| *state = (Instant::now(), IDLE_HALF_CLOSED));
    }

    /// Completes once nothing has moved for too long.
    pub(crate) async fn idle(&self) {
        loop {
            let deadline = self.with(|(moved, patience)| *moved + *patience);
            if deadline <= Instant::now() {
                return;
            }
            // A half-close shortens the wait meanwhile, so no sleep is longer than the shorter patience.
            tokio::time::sleep_until(deadline.min(Instant::now() + IDLE_HALF_CLOSED)).await;
        }
    }
}
