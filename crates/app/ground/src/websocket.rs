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
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::exchange::Exchange;
use crate::head;
use crate::origins::Upgraded;
use crate::tunnel::{Broken, Watch, last_words, pour, small};

/// Read at once. Words are short; what is longer comes in several.
const CHUNK: usize = 16 * 1024;
/// How long an origin has to end first, after a client that has said Close. RFC 6455 §7.1.1 has it so, and origins take a client that ends
/// for one that is gone, without an answer to its Close; browsers over HTTP/2 end their stream with that Close (RFC 8441 §5), and wait
/// about as long. A client that ends without is gone.
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
                let mut said = Frames::default();
                tokio::try_join!(
                    async {
                        let ended = down(&mut reader, &mut sender, &watch, &mut bytes).await;
                        drop(heard_out);
                        ended
                    },
                    async {
                        pour(&mut receiver, &mut writer, None, &watch, |bytes| said.see(bytes)).await?;
                        if said.is_close() {
                            let _ = timeout(GOODBYE, origin_ended).await;
                        }
                        writer.shutdown().await.map_err(|_| Broken::Far)
                    },
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

/// Follows the frames of one side (RFC 6455 §5.2) as far as to know whether the last of them is a Close.
#[derive(Default)]
struct Frames {
    /// What of a frame's header has come.
    header: [u8; LONGEST_HEADER],
    come: usize,
    /// Bytes of its payload that are still to come.
    payload: u64,
}

/// Two bytes, the longest form of a length, and a mask.
const LONGEST_HEADER: usize = 14;
const CLOSE: u8 = 8;

impl Frames {
    fn see(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.payload > 0 {
                let skipped = self.payload.min(bytes.len() as u64);
                self.payload -= skipped;
                bytes = &bytes[skipped as usize..];
                continue;
            }
            if self.come == self.header_length() {
                self.come = 0;
            }
            self.header[self.come] = bytes[0];
            self.come += 1;
            bytes = &bytes[1..];
            if self.come == self.header_length() {
                self.payload = self.payload_length();
            }
        }
    }

    /// As far as it is known.
    fn header_length(&self) -> usize {
        if self.come < 2 {
            return 2;
        }
        let extended = match self.header[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + extended + if self.header[1] & 0x80 != 0 { 4 } else { 0 }
    }

    fn payload_length(&self) -> u64 {
        let big_endian = |bytes: &[u8]| bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
        match self.header[1] & 0x7f {
            126 => big_endian(&self.header[2..4]),
            127 => big_endian(&self.header[2..10]),
            short => u64::from(short),
        }
    }

    fn is_close(&self) -> bool {
        self.come >= 2 && self.header[0] & 0x0f == CLOSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_is_known_in_whatever_pieces_it_comes() {
        let frame = |opcode: u8, masked: bool, payload: &[u8]| -> Vec<u8> {
            let mask = if masked { 0x80 } else { 0 };
            let mut frame = vec![0x80 | opcode];
            match payload.len() {
                length @ 0..126 => frame.push(mask | length as u8),
                length @ 126..0x1_0000 => {
                    frame.push(mask | 126);
                    frame.extend((length as u16).to_be_bytes());
                }
                length => {
                    frame.push(mask | 127);
                    frame.extend((length as u64).to_be_bytes());
                }
            }
            frame.extend(&[1, 2, 3, 4][..if masked { 4 } else { 0 }]);
            frame.extend(payload);
            frame
        };
        // What looks like a Close within a payload is none.
        let lengths = [0, 1, 125, 126, 127, 300, 65_535, 65_536, 70_000];
        let talk: Vec<u8> =
            lengths.iter().flat_map(|length| frame(2, length % 2 == 0, &vec![0x88; *length])).collect();
        for (last, expected) in [(frame(CLOSE, true, &[3, 232]), true), (frame(9, true, &[]), false)] {
            let said = [&talk[..], &last].concat();
            for pieces in [1, 2, 3, 5, 1_000, said.len()] {
                let mut frames = Frames::default();
                said.chunks(pieces).for_each(|piece| frames.see(piece));
                assert_eq!(frames.is_close(), expected, "in pieces of {pieces}");
            }
        }
        assert!(!Frames::default().is_close());
    }
}
