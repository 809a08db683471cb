//! A WebSocket at ground: the handshake with the origin on a connection of its own, then bytes both ways as they come. An
//! origin that answers anything but 101 is answered for like any other.

use std::io::ErrorKind;
use std::time::Duration;

use bytes::BytesMut;
use farhop_events::Event;
use farhop_htotp::frame::Coding;
use farhop_origin::UpgradedStream;
use farhop_transport::hop::{Receiver, Sender};
use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::exchange::Exchange;
use crate::head;
use crate::origins::Upgraded;
use crate::tunnel::{Broken, Watch, last_words, small, up};

/// Read at once. Words are short; what is longer comes in several.
const CHUNK: usize = 16 * 1024;
/// How long an origin has to end first. RFC 6455 §7.1.1 has it so, and origins take a client that ends for one that is gone, without an
/// answer to its Close; browsers over HTTP/2 end their stream with that Close (RFC 8441 §5), and wait about as long.
const GOODBYE: Duration = Duration::from_secs(10);

impl Exchange {
    /// Asks the origin for a WebSocket, and carries it until both sides have ended. `note` is told of the fields that come.
    pub(crate) async fn converse(self, sender: Sender, receiver: Receiver, note: impl Fn(&HeaderMap)) {
        let started = Instant::now();
        let upgraded = tokio::select! {
            biased;
            upgraded = self.carrier.ground.origins.upgrade(&self.owner, self.id, &self.request, self.version) => upgraded,
            _ = sender.gone() => return,
        };
        match upgraded {
            Ok(Upgraded::Switched { fields, stream }) => {
                note(&fields);
                self.carry(fields, stream, sender, receiver, started).await;
            }
            Ok(Upgraded::Answered(response)) => {
                note(&response.fields);
                let answer = self.treat(response);
                self.deliver(sender, answer, None, None, started).await;
            }
            Err(failure) => self.fail(sender, failure),
        }
    }

    async fn carry(
        &self,
        fields: HeaderMap,
        stream: UpgradedStream,
        mut sender: Sender,
        mut receiver: Receiver,
        started: Instant,
    ) {
        let head = head::towards_remote(StatusCode::SWITCHING_PROTOCOLS, fields, self.id);
        sender.answer(&head, Coding::Identity, None);
        let watch = Watch::new();
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut bytes = 0;
        let outcome = tokio::select! {
            // Whichever side broke, dropping all of it breaks the other.
            outcome = async {
                let (heard_out, origin_ended) = oneshot::channel::<()>();
                let goodbye = async { drop(timeout(GOODBYE, origin_ended).await) };
                tokio::try_join!(
                    async {
                        let ended = down(&mut reader, &mut sender, &watch, &mut bytes).await;
                        drop(heard_out);
                        ended
                    },
                    up(&mut receiver, &mut writer, None, &watch, goodbye),
                )
            } => outcome.map(drop),
            () = watch.idle() => Err(Broken::Hop),
        };
        if let Err(Broken::Far) = outcome {
            last_words(&sender).await;
        }
        let ground = &self.carrier.ground;
        ground.bus.emit(Event::Fetched {
            exchange: self.id,
            unasked: false,
            url: ground.bus.url(&self.request.url()),
            status: StatusCode::SWITCHING_PROTOCOLS.as_u16(),
            origin_bytes: bytes,
            crossed_bytes: bytes,
            spared_bytes: 0,
            taught: false,
            total_ms: started.elapsed().as_millis() as u64,
        });
    }
}

/// From the origin to the hop.
async fn down(
    reader: &mut ReadHalf<UpgradedStream>,
    sender: &mut Sender,
    watch: &Watch,
    bytes: &mut u64,
) -> Result<(), Broken> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK);
        let read = tokio::select! {
            read = reader.read_buf(&mut buffer) => read,
            _ = sender.gone() => return Err(Broken::Hop),
        };
        match read {
            // Many origins close without TLS's own goodbye: whether the conversation is over, its frames have told
            // (RFC 6455 §7.1.1), and what came before must not be lost.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return ended(sender, watch),
            Ok(0) => return ended(sender, watch),
            Ok(count) => {
                *bytes += count as u64;
                watch.moved();
                sender.write(small(buffer.split()).freeze()).await.map_err(|_| Broken::Hop)?;
            }
            Err(_) => return Err(Broken::Far),
        }
    }
}

fn ended(sender: &mut Sender, watch: &Watch) -> Result<(), Broken> {
    sender.finish(None);
    watch.half_closed();
    Ok(())
}
