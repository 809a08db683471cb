//! Why a message is refused, and the status that says so. Nothing here reads bytes.

use http::StatusCode;

/// Why a message is not forwarded. Whatever two recipients could read differently is refused rather
/// than repaired (RFC 9112 §2.2, §6.3 and §11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The first line is not `METHOD SP TARGET SP VERSION`.
    #[error("the request line is malformed")]
    RequestLine,
    /// The first line is not `VERSION SP STATUS SP REASON`.
    #[error("the status line is malformed")]
    StatusLine,
    /// A version other than HTTP/1.0 and HTTP/1.1, for instance the preface of HTTP/2.
    #[error("the protocol version is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// The connection ended within a head.
    #[error("the head ends before its empty line")]
    HeadIncomplete,
    /// The head exceeds its byte limit.
    #[error("the head is too large")]
    HeadTooLarge,
    /// The head has more field lines than allowed.
    #[error("the head has too many fields")]
    TooManyFields,
    /// The request target exceeds its byte limit.
    #[error("the request target is too long")]
    TargetTooLong,
    /// A carriage return that no line feed follows.
    #[error("a carriage return stands alone")]
    BareCr,
    /// A line feed that no carriage return precedes.
    #[error("a line feed stands alone")]
    BareLf,
    /// A control byte other than the tab.
    #[error("a control byte stands in the head")]
    ControlByte,
    /// A field continued on the next line.
    #[error("a field is folded over several lines")]
    ObsFold,
    /// A field line without a colon, with a space before it, or with a byte no field may hold.
    #[error("a field line is malformed")]
    Field,
    /// The target is in none of the four forms, or holds a byte that no URI may hold.
    #[error("the request target is malformed")]
    Target,
    /// A scheme other than http and https.
    #[error("the scheme of the request target is not supported")]
    Scheme,
    /// `user:password@` in an authority.
    #[error("the request target carries user information")]
    UserInfo,
    /// A host that is neither a name nor an address, or a port out of range.
    #[error("the host or port is malformed")]
    Authority,
    /// The form of the target does not belong to the method.
    #[error("the form of the request target does not fit the method")]
    TargetForm,
    /// HTTP/1.1 without a Host field.
    #[error("the host field is missing")]
    HostMissing,
    /// More than one Host field.
    #[error("there is more than one host field")]
    HostRepeated,
    /// A Content-Length that is no number, or too large to count.
    #[error("the content-length is malformed")]
    ContentLength,
    /// More than one Content-Length, equal or not.
    #[error("there is more than one content-length")]
    ContentLengthRepeated,
    /// Content-Length beside Transfer-Encoding.
    #[error("content-length and transfer-encoding contradict each other")]
    FramingConflict,
    /// A Transfer-Encoding that is not exactly one final `chunked`.
    #[error("the transfer-encoding is malformed")]
    TransferEncoding,
    /// A well-formed transfer coding other than `chunked`.
    #[error("the transfer-encoding is not supported")]
    TransferCoding,
    /// Host and `:authority` name different hosts (HTTP/2).
    #[error("host and :authority contradict each other")]
    HostConflict,
    /// A request for another host than the one that the connection was opened to.
    #[error("the request is for another host than its connection")]
    Misdirected,
    /// CONNECT inside a connection to an origin.
    #[error("connect is not supported inside a connection to an origin")]
    ConnectWithin,
    /// An extended CONNECT (RFC 8441) for a protocol other than WebSocket.
    #[error("the protocol of the extended connect is not supported")]
    Protocol,
    /// A WebSocket asked for without a key (HTTP/1.1).
    #[error("the sec-websocket-key is missing")]
    WebSocketKey,
    /// A body on a CONNECT request.
    #[error("a connect request has a body")]
    ConnectBody,
    /// A body on a TRACE request.
    #[error("a trace request has a body")]
    TraceBody,
    /// An expectation other than `100-continue`.
    #[error("the expectation is not supported")]
    Expectation,
    /// A Max-Forwards that is no single number, where it counts.
    #[error("max-forwards is malformed")]
    MaxForwards,
    /// A chunk size that is not hexadecimal or too large to count.
    #[error("a chunk size is malformed")]
    ChunkSize,
    /// Chunk extensions beyond any use.
    #[error("the chunk extensions are malformed or too long")]
    ChunkExtension,
    /// A chunk that does not end in CRLF.
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    /// A trailer field that would change framing, routing or authentication.
    #[error("a trailer holds a field that belongs into the head")]
    Trailer,
    /// The connection ended within a body.
    #[error("the body ends before its length")]
    BodyIncomplete,
}

impl Refusal {
    /// The status that tells a client of this refusal.
    pub fn status(self) -> StatusCode {
        match self {
            Refusal::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            // RFC 9112 §3: a target longer than the server wishes to parse.
            Refusal::TargetTooLong => StatusCode::URI_TOO_LONG,
            // RFC 6585 §5.
            Refusal::HeadTooLarge | Refusal::TooManyFields => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            // RFC 9112 §6.1: a transfer coding that the server does not understand.
            Refusal::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            // RFC 9110 §15.5.18.
            Refusal::Expectation => StatusCode::EXPECTATION_FAILED,
            // RFC 9110 §15.5.20.
            Refusal::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            // RFC 9110 §9.3.6; RFC 9220 §3 says the same of extended CONNECT.
            Refusal::ConnectWithin | Refusal::Protocol => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}
