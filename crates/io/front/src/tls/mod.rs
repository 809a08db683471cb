//! TLS towards browsers, inside a CONNECT: what a client wants is read from its hello without taking anything away
//! ([`open`]), and where it is to be intercepted, the handshake is answered with a leaf of the operator's own
//! authority ([`accept`]). Who is intercepted is decided elsewhere. The hello of a QUIC connection that only passes is read, too
//! ([`Initials`]).

mod accept;
mod hello;
mod open;
mod quic;
mod sessions;

pub use accept::{HandshakeError, accept};
#[doc(hidden)]
pub use hello::fuzz_hello;
pub use hello::{ClientHello, Reading, read_hello, speaks_http};
pub use open::{Opening, open};
pub use quic::Initials;
#[doc(hidden)]
pub use quic::fuzz_initials;
pub use sessions::Sessions;
