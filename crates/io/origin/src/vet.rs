//! Vets what an origin sends on an HTTP/1 connection, below hyper, which takes more than has one reading: line feeds
//! alone, blanks behind chunk sizes, anything in chunk extensions, trailers that frame. Bytes pass as they came for as
//! long as `farhop_front::h1` has a reading for them; at the first that have none the connection fails.
//!
//! ```text
//! Idle ──expect──► Head ─┬► Length ┐
//!   ▲               ▲ │  ├► Chunks ┼─► Idle, or Over
//!   │               └─┘  └► Rest   │
//!   └──────────────1xx─────────────┘
//! ```

use bytes::BytesMut;
use farhop_front::h1::{
    BodyDecoder, Decoded, Framing, HeadLimits, HeadScanner, Refusal, ResponseHead, Section,
};
use farhop_units::Bytes;
use http::{Method, StatusCode, Version};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::settings::{FLOOD, Settings};

/// What every status line begins with (RFC 9112 §2.3).
const VERSION: &[u8] = b"HTTP/";

/// Why a connection fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// What came has no reading, or two.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What came begins like no response at all.
    #[error("what answers there speaks no HTTP")]
    NotHttp,
    /// Nobody has asked for it: what follows a response could be taken for the answer to the next request.
    #[error("there are bytes that belong to no response")]
    Stray,
    /// Informational responses without end. Whoever reads them takes turn after turn while more come, and nobody else has one.
    #[error("there are too many informational responses")]
    Flood,
}

/// Tells a [`Vetted`] connection what is asked on it.
#[derive(Debug, Clone)]
pub(crate) struct Vetting(Arc<Mutex<Vet>>);

impl Vetting {
    /// A request of this method is sent next.
    pub(crate) fn expect(&self, method: &Method) {
        let mut vet = self.vet();
        (vet.method, vet.informed, vet.cut) = (method.clone(), 0, false);
        if matches!(vet.phase, Phase::Idle) {
            vet.phase = Phase::head();
        }
    }

    /// Whether the last body ended with a connection whose TLS did not say so: it may have been cut off by anybody.
    pub(crate) fn was_cut(&self) -> bool {
        self.vet().cut
    }

    /// The state is valid between any two of its functions, so that a panic elsewhere does not spoil it.
    fn vet(&self) -> MutexGuard<'_, Vet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection whose incoming bytes are vetted.
#[derive(Debug)]
pub(crate) struct Vetted<T> {
    io: T,
    vetting: Vetting,
}

impl<T> Vetted<T> {
    pub(crate) fn new(io: T, settings: &Settings) -> (Vetted<T>, Vetting) {
        let limits = HeadLimits { head: settings.head, target: Bytes(0), fields: settings.fields };
        let vet = Vet { limits, method: Method::GET, informed: 0, phase: Phase::Idle, cut: false };
        let vetting = Vetting(Arc::new(Mutex::new(vet)));
        (Vetted { io, vetting: vetting.clone() }, vetting)
    }
}

#[derive(Debug)]
struct Vet {
    limits: HeadLimits,
    /// Informational responses before the final one, so far.
    informed: usize,
    method: Method,
    phase: Phase,
    cut: bool,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is asked, so nothing may come.
    Idle,
    Head {
        scanner: HeadScanner,
        head: BytesMut,
    },
    /// So many bytes, then what is to come after them.
    Length(u64, After),
    Chunks {
        decoder: BodyDecoder,
        buffer: BytesMut,
        after: After,
    },
    /// All that comes: a body that only the connection ends …
    UntilClose,
    /// … or a protocol that is not HTTP any more.
    Rest,
    /// The last response was complete: the connection has ended, whatever the origin does with it.
    Over,
    Failed(Fault),
}

/// What a complete response leaves behind.
#[derive(Debug, Clone, Copy)]
enum After {
    Idle,
    Over,
}

impl From<After> for Phase {
    fn from(after: After) -> Phase {
        match after {
            After::Idle => Phase::Idle,
            After::Over => Phase::Over,
        }
    }
}

impl Phase {
    fn head() -> Phase {
        Phase::Head { scanner: HeadScanner::new(Section::Response), head: BytesMut::new() }
    }

    /// What follows this head.
    fn behind(head: &ResponseHead, limits: &HeadLimits) -> Phase {
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Phase::Rest;
        }
        if head.status.is_informational() {
            return Phase::head();
        }
        // RFC 9112 §9.3: a proxy keeps no connection to what speaks HTTP/1.0, which may not know what it promises.
        let after = if head.version == Version::HTTP_11 { After::Idle } else { After::Over };
        match head.framing {
            Framing::None => after.into(),
            Framing::Length(bytes) => Phase::Length(bytes, after),
            Framing::Chunked => Phase::Chunks {
                decoder: BodyDecoder::new(head.framing, *limits),
                buffer: BytesMut::new(),
                after,
            },
            Framing::UntilClose => Phase::UntilClose,
        }
    }
}

impl Vet {
    /// Nothing more can be read. Many servers leave without a word of TLS where the end of the connection is the end of
    /// the body; RFC 9112 §9.8 lets that be taken for an end, as browsers do, if it is remembered that it may be none.
    fn broken_off(&mut self, error: io::Error) -> io::Result<()> {
        self.cut = error.kind() == io::ErrorKind::UnexpectedEof && matches!(self.phase, Phase::UntilClose);
        if self.cut { Ok(()) } else { Err(error) }
    }

    /// How many of the bytes that came may pass. When some may not, it has failed.
    fn take(&mut self, fresh: &[u8]) -> usize {
        let mut passed = 0;
        while passed < fresh.len() {
            match self.step(&fresh[passed..]) {
                Ok(count) => passed += count,
                Err(fault) => {
                    self.phase = Phase::Failed(fault);
                    break;
                }
            }
        }
        passed
    }

    /// Takes at least one of the bytes.
    fn step(&mut self, fresh: &[u8]) -> Result<usize, Fault> {
        match &mut self.phase {
            Phase::Failed(fault) => Err(*fault),
            Phase::Idle | Phase::Over => Err(Fault::Stray),
            Phase::UntilClose | Phase::Rest => Ok(fresh.len()),
            Phase::Length(rest, after) => {
                let count = usize::try_from(*rest).unwrap_or(usize::MAX).min(fresh.len());
                *rest -= count as u64;
                if *rest == 0 {
                    self.phase = (*after).into();
                }
                Ok(count)
            }
            Phase::Head { scanner, head } => {
                let before = head.len();
                head.extend_from_slice(fresh);
                let begin = head.len().min(VERSION.len());
                // Blanks and empty lines before the status line break a rule of HTTP, which is another matter.
                if head[..begin] != VERSION[..begin] && !head[0].is_ascii_whitespace() {
                    return Err(Fault::NotHttp);
                }
                let Some(range) = scanner.scan(head, &self.limits)? else { return Ok(fresh.len()) };
                let count = range.end - before;
                let head = ResponseHead::parse(&head[range], &self.method, &self.limits)?;
                self.informed += usize::from(head.status.is_informational());
                if self.informed > FLOOD {
                    return Err(Fault::Flood);
                }
                self.phase = Phase::behind(&head, &self.limits);
                Ok(count)
            }
            Phase::Chunks { decoder, buffer, after } => {
                buffer.extend_from_slice(fresh);
                loop {
                    match decoder.decode(buffer)? {
                        Decoded::Data(_) => {}
                        Decoded::NeedMore => return Ok(fresh.len()),
                        Decoded::End(_) => {
                            let count = fresh.len() - buffer.len();
                            self.phase = (*after).into();
                            return Ok(count);
                        }
                    }
                }
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Vetted<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Vetted { io, vetting } = self.get_mut();
        match vetting.vet().phase {
            Phase::Failed(fault) => return Poll::Ready(Err(failure(fault))),
            Phase::Over => return Poll::Ready(Ok(())),
            _ => {}
        }
        let before = out.filled().len();
        if let Err(error) = ready!(Pin::new(io).poll_read(cx, out)) {
            return Poll::Ready(vetting.vet().broken_off(error));
        }
        let fresh = &out.filled()[before..];
        if fresh.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut vet = vetting.vet();
        let passed = vet.take(fresh);
        out.set_filled(before + passed);
        match vet.phase {
            // What passed is told first: it may be the end of a response that is whole.
            Phase::Failed(fault) if passed == 0 => Poll::Ready(Err(failure(fault))),
            _ => Poll::Ready(Ok(())),
        }
    }
}

fn failure(fault: Fault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Vetted<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    /// What passes of `text` when it comes in pieces of `size` bytes, and why no more.
    async fn vetted(method: Method, text: &str, size: usize) -> (String, Option<Fault>) {
        let mut source = pieces(text, size);
        let (io, vetting) = Vetted::new(&mut source, &Settings::default());
        vetting.expect(&method);
        let mut io = io;
        let mut passed = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match io.read(&mut buffer).await {
                Ok(0) => return (String::from_utf8(passed).unwrap(), None),
                Ok(count) => passed.extend_from_slice(&buffer[..count]),
                Err(error) => {
                    let fault = *error.get_ref().unwrap().downcast_ref::<Fault>().unwrap();
                    return (String::from_utf8(passed).unwrap(), Some(fault));
                }
            }
        }
    }

    /// A reader that gives `size` bytes at a time.
    fn pieces(text: &str, size: usize) -> Pieces {
        Pieces { left: text.as_bytes().to_vec(), size }
    }

    struct Pieces {
        left: Vec<u8>,
        size: usize,
    }

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            out: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let count = self.size.min(self.left.len()).min(out.remaining());
            let piece: Vec<u8> = self.left.drain(..count).collect();
            out.put_slice(&piece);
            Poll::Ready(Ok(()))
        }
    }

    const SIZES: [usize; 5] = [1, 2, 3, 7, 1000];

    #[tokio::test]
    async fn responses_of_every_framing_pass_as_they_came() {
        let sized =
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n";
        let closing = "HTTP/1.1 200 OK\r\n\r\nhello";
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\n\0\r";
        for size in SIZES {
            for text in [sized, chunked, closing, upgrade] {
                assert_eq!(
                    vetted(Method::GET, text, size).await,
                    (text.to_owned(), None),
                    "{text:?} by {size}"
                );
            }
            assert_eq!(vetted(Method::HEAD, head, size).await, (head.to_owned(), None));
        }
    }

    #[tokio::test]
    async fn what_follows_a_response_passes_to_nobody() {
        for (method, text) in [
            (Method::GET, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            (Method::GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n"),
            (Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"),
        ] {
            for size in SIZES {
                let (passed, fault) =
                    vetted(method.clone(), &format!("{text}HTTP/1.1 200 OK\r\n"), size).await;
                assert_eq!((passed.as_str(), fault), (text, Some(Fault::Stray)), "by {size}");
            }
        }
    }

    #[tokio::test]
    async fn a_connection_of_http_1_0_ends_with_its_response() {
        let text = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok";
        for size in SIZES {
            let (passed, fault) = vetted(Method::GET, &format!("{text}HTTP/1.1 200 OK"), size).await;
            assert_eq!(passed, text);
            assert!(fault.is_none() || fault == Some(Fault::Stray), "{fault:?}");
        }
    }

    #[tokio::test]
    async fn what_hyper_would_take_fails() {
        let ok = "HTTP/1.1 200 OK\r\n";
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (start, rest, refusal) in [
            ("", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", Refusal::BareLf),
            (ok, "X: y\nContent-Length: 2\r\n\r\nok", Refusal::BareLf),
            (ok, "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", Refusal::ContentLengthRepeated),
            (ok, "X: y\r\n z\r\n\r\n", Refusal::ObsFold),
            (chunks, "5 \r\nhello\r\n0\r\n\r\n", Refusal::ChunkSize),
            (chunks, "5;a=\"\r\nhello\r\n0\r\n\r\n", Refusal::ChunkExtension),
            (chunks, "0\r\nContent-Length: 2\r\n\r\n", Refusal::Trailer),
            (chunks, "0\r\nX: y\nZ: z\r\n\r\n", Refusal::BareLf),
        ] {
            for size in SIZES {
                let (passed, fault) = vetted(Method::GET, &format!("{start}{rest}"), size).await;
                assert_eq!(fault, Some(Fault::Refused(refusal)), "{rest:?} by {size}");
                assert!(passed.len() < start.len() + rest.len(), "{rest:?} by {size}");
            }
        }
    }

    #[tokio::test]
    async fn informational_responses_pass_up_to_their_bound_for_each_request() {
        let most = FLOOD;
        let (informed, last) = ("HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n");
        let within = informed.repeat(most) + last;
        for size in SIZES {
            assert_eq!(vetted(Method::GET, &within, size).await, (within.clone(), None), "by {size}");
            let (passed, fault) = vetted(Method::GET, &informed.repeat(most + 9), size).await;
            assert_eq!(fault, Some(Fault::Flood), "by {size}");
            assert!(passed.len() < informed.len() * (most + 1), "by {size}");
        }
        let mut source = pieces(&within.repeat(2), within.len());
        let (mut io, vetting) = Vetted::new(&mut source, &Settings::default());
        for _ in 0..2 {
            vetting.expect(&Method::GET);
            assert_eq!(io.read(&mut vec![0; within.len()]).await.unwrap(), within.len());
        }
    }

    #[tokio::test]
    async fn bytes_before_any_request_are_nobodys() {
        let mut source = pieces("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1000);
        let (mut io, vetting) = Vetted::new(&mut source, &Settings::default());
        assert!(io.read(&mut [0; 100]).await.is_err());
        vetting.expect(&Method::GET);
        assert!(io.read(&mut [0; 100]).await.is_err(), "and it stays so");
    }
}
