//! The ways in which origins misbehave, by name. Only scripts: `hostile` plays them.

use bytes::Bytes;

use crate::hostile::Step;

/// How an origin behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manners {
    /// Nobody listens.
    Refuses,
    /// Accepts and never answers.
    Hangs,
    /// Closes as soon as it has the request.
    ClosesWithoutAnswer,
    /// Breaks the connection off as soon as it has the request.
    ResetsWithoutAnswer,
    /// Stops in the middle of a status line.
    StopsInHead,
    /// Sends half of the body it announced, then nothing.
    StallsInBody,
    /// Sends half of the body it announced, then closes.
    ClosesInBody,
    /// Sends half of the body it announced, then breaks off.
    ResetsInBody,
    /// Sends more than it announced.
    SendsTooMuch,
    /// Two lengths that differ.
    TwoLengths,
    /// A length that is no number.
    LengthIsNoNumber,
    /// A length and chunks (RFC 9112 §6.3: an error to be refused in a response from outside).
    LengthAndChunks,
    /// A chunk size that is no number.
    BadChunkSize,
    /// A chunk size that overflows 64 bits.
    HugeChunkSize,
    /// Chunks that end without the last one.
    ChunksWithoutEnd,
    /// Not HTTP at all.
    Garbage,
    /// A status line with a status of two digits.
    BadStatus,
    /// A field line without a colon.
    BadField,
    /// A bare carriage return within a field value.
    BareReturn,
    /// One field of 4 MB.
    HugeField,
    /// Fields without end.
    EndlessFields,
    /// A field without end.
    EndlessField,
    /// 1xx responses without end.
    EndlessInformational,
    /// A body without end or length.
    EndlessBody,
    /// Chunks of one byte without end.
    EndlessTinyChunks,
    /// Trailer fields without end.
    EndlessTrailers,
}

impl Manners {
    /// Every kind of bad manners.
    pub const ALL: [Manners; 26] = [
        Manners::Refuses,
        Manners::Hangs,
        Manners::ClosesWithoutAnswer,
        Manners::ResetsWithoutAnswer,
        Manners::StopsInHead,
        Manners::StallsInBody,
        Manners::ClosesInBody,
        Manners::ResetsInBody,
        Manners::SendsTooMuch,
        Manners::TwoLengths,
        Manners::LengthIsNoNumber,
        Manners::LengthAndChunks,
        Manners::BadChunkSize,
        Manners::HugeChunkSize,
        Manners::ChunksWithoutEnd,
        Manners::Garbage,
        Manners::BadStatus,
        Manners::BadField,
        Manners::BareReturn,
        Manners::HugeField,
        Manners::EndlessFields,
        Manners::EndlessField,
        Manners::EndlessInformational,
        Manners::EndlessBody,
        Manners::EndlessTinyChunks,
        Manners::EndlessTrailers,
    ];

    /// Whether the response must not reach a client as if it were whole. The others are slow or endless, or
    /// (bytes after the announced length) whole with something behind them.
    pub fn is_never_whole(self) -> bool {
        !matches!(self, Manners::SendsTooMuch)
    }

    /// What the origin does on each connection. [`Manners::Refuses`] has no connection: its script is empty.
    pub fn script(self) -> Vec<Step> {
        let send = |text: &str| Step::Send(Bytes::copy_from_slice(text.as_bytes()));
        let forever = |text: &str| Step::SendForever(Bytes::from(text.repeat(64)));
        let half = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 20\r\n\r\n0123456789";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let acts = match self {
            Manners::Refuses => return Vec::new(),
            Manners::Hangs => vec![Step::Hang],
            Manners::ClosesWithoutAnswer => vec![Step::Close],
            Manners::ResetsWithoutAnswer => vec![Step::Reset],
            Manners::StopsInHead => vec![send("HTTP/1.1 20"), Step::Close],
            Manners::StallsInBody => vec![send(half), Step::Hang],
            Manners::ClosesInBody => vec![send(half), Step::Close],
            Manners::ResetsInBody => vec![send(half), Step::Reset],
            Manners::SendsTooMuch => {
                vec![send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n0123456789"), Step::Close]
            }
            Manners::TwoLengths => {
                vec![
                    send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n01234"),
                    Step::Close,
                ]
            }
            Manners::LengthIsNoNumber => {
                vec![send("HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\n0123"), Step::Close]
            }
            Manners::LengthAndChunks => vec![
                send(
                    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n0\r\n\r\n",
                ),
                Step::Close,
            ],
            Manners::BadChunkSize => {
                vec![send(chunked), send("4\r\n0123\r\nxyz\r\n0123\r\n0\r\n\r\n"), Step::Close]
            }
            Manners::HugeChunkSize => {
                vec![send(chunked), send("10000000000000004\r\n0123\r\n0\r\n\r\n"), Step::Close]
            }
            Manners::ChunksWithoutEnd => vec![send(chunked), send("4\r\n0123\r\n"), Step::Close],
            Manners::Garbage => vec![send("\0\x01\x02 this is no HTTP\r\n\r\n"), Step::Close],
            Manners::BadStatus => vec![send("HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"), Step::Close],
            Manners::BadField => {
                vec![send("HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 0\r\n\r\n"), Step::Close]
            }
            Manners::BareReturn => {
                vec![
                    send("HTTP/1.1 200 OK\r\nX-A: b\rSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n"),
                    Step::Close,
                ]
            }
            Manners::HugeField => vec![
                send("HTTP/1.1 200 OK\r\nX-Long: "),
                Step::Send(Bytes::from(vec![b'a'; 4 << 20])),
                send("\r\nContent-Length: 0\r\n\r\n"),
                Step::Close,
            ],
            Manners::EndlessFields => vec![send("HTTP/1.1 200 OK\r\n"), forever("X-More: and more\r\n")],
            Manners::EndlessField => vec![send("HTTP/1.1 200 OK\r\nX-Long: "), forever("aaaaaaaaaaaaaaaa")],
            Manners::EndlessInformational => vec![forever("HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n")],
            Manners::EndlessBody => vec![send("HTTP/1.1 200 OK\r\n\r\n"), forever("and more and more and ")],
            Manners::EndlessTinyChunks => vec![send(chunked), forever("1\r\nx\r\n")],
            Manners::EndlessTrailers => vec![send(chunked), send("0\r\n"), forever("X-More: and more\r\n")],
        };
        std::iter::once(Step::ReadHead).chain(acts).collect()
    }
}
