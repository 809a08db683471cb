//! A page loader of our own, for what browsers no longer do or do not let one set: a connection for each object, persistent
//! connections in any number, pipelining, full, resumed and 0-RTT handshakes, HTTP/2 with pushes taken or refused, HTTP/3; the timer
//! that opens connections anew, the receive buffer, the limit of streams, the idle timeout, TCP Fast Open.
//!
//! A [`PageGraph`] says which objects a page has and which names which; a [`Loader`] loads it as [`Settings`] say, over
//! connections that a [`Connect`] of the caller makes, so that it runs between two kernels as well as in virtual time. It
//! runs no scripts and paints nothing. [`server`] is the other side for what stock servers do not do: pushes of a share of a
//! page, and answers to 0-RTT in the first flight.

mod body;
mod connect;
mod course;
mod dns;
mod fields;
mod graph;
mod h1;
mod http3;
mod lane;
mod loader;
mod multiplexed;
mod open;
mod result;
pub mod server;
mod settings;
mod tls;

pub use connect::{Binding, BoxStream, Connect, Connecting, SocketOptions, Stream, TcpConnector};
pub use dns::Names;
pub use graph::{GraphError, Kind, Named, Object, PageGraph};
pub use loader::{Loader, LoaderError};
pub use result::{ConnectionResult, Loaded, ObjectResult};
pub use settings::{Handshake, Persistence, Protocol, Push, Settings, Windows};
