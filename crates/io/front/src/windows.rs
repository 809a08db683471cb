//! HTTP/2 windows that follow what is measured beyond the peer, on connections that are open, too: [`Windows`] is the room that
//! fits now, [`Given`] brings one connection to it. Which room fits is for others to say.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::{Buf, Bytes};
use farhop_tuning::Room;
use farhop_units::Bytes as Size;
use tokio::io::{AsyncRead, AsyncWrite};

/// The room that fits now. Clones are the same.
#[derive(Debug, Clone)]
pub struct Windows(Arc<[AtomicU64; 2]>);

impl Windows {
    /// This fits, for a start.
    pub fn new(room: Room) -> Windows {
        Windows(Arc::new([room.stream.0.into(), room.connection.0.into()]))
    }

    /// This fits from now on. New connections have it; open ones are given what is more than they have, at the next sign of life.
    pub fn fit(&self, room: Room) {
        self.0[0].store(room.stream.0, Relaxed);
        self.0[1].store(room.connection.0, Relaxed);
    }

    /// The room that fits now.
    pub fn now(&self) -> Room {
        let [stream, connection] = self.0.each_ref().map(|size| Size(size.load(Relaxed)));
        Room { stream, connection }
    }
}

/// The room that the peer of one connection was given. It only grows: what was given may have been used already.
#[derive(Debug)]
pub struct Given(Room);

/// What of an HTTP/2 connection can be changed while it is open.
pub trait Roomy {
    /// The window of the whole.
    fn set_connection_window(&mut self, size: u32);

    /// The windows of all streams, open ones among them (RFC 9113 §6.9.2).
    ///
    /// # Errors
    /// The peer has not acknowledged the last settings.
    fn set_stream_window(&mut self, size: u32) -> Result<(), h2::Error>;
}

impl Given {
    /// What the connection began with.
    pub fn new(room: Room) -> Given {
        Given(room)
    }

    /// What it has now.
    pub fn room(&self) -> Room {
        self.0
    }

    /// Gives what `fits` more than it has. To be called ahead of each poll of the connection: on one that is not polled nothing
    /// comes, and what cannot be told yet is told then.
    pub fn grow(&mut self, fits: Room, connection: &mut impl Roomy) {
        if fits.connection > self.0.connection {
            connection.set_connection_window(window(fits.connection));
            self.0.connection = fits.connection;
        }
        if fits.stream > self.0.stream && connection.set_stream_window(window(fits.stream)).is_ok() {
            self.0.stream = fits.stream;
        }
    }
}

/// A size as a window of HTTP/2, of which none exceeds 2^31 - 1 (RFC 9113 §6.9.1).
pub fn window(size: Size) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

impl<T: AsyncRead + AsyncWrite + Unpin> Roomy for h2::client::Connection<T, Bytes> {
    fn set_connection_window(&mut self, size: u32) {
        self.set_target_window_size(size);
    }

    fn set_stream_window(&mut self, size: u32) -> Result<(), h2::Error> {
        self.set_initial_window_size(size)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin, B: Buf> Roomy for h2::server::Connection<T, B> {
    fn set_connection_window(&mut self, size: u32) {
        self.set_target_window_size(size);
    }

    fn set_stream_window(&mut self, size: u32) -> Result<(), h2::Error> {
        self.set_initial_window_size(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1 << 10;

    fn room(stream: u64, connection: u64) -> Room {
        Room { stream: Size(stream * KB), connection: Size(connection * KB) }
    }

    /// A connection that notes what it is told, and refuses as long as a settings frame is on its way.
    #[derive(Default)]
    struct Noted {
        told: Vec<(&'static str, u32)>,
        pending: bool,
    }

    impl Roomy for Noted {
        fn set_connection_window(&mut self, size: u32) {
            self.told.push(("connection", size));
        }

        fn set_stream_window(&mut self, size: u32) -> Result<(), h2::Error> {
            if self.pending {
                return Err(h2::Reason::INTERNAL_ERROR.into());
            }
            self.told.push(("stream", size));
            Ok(())
        }
    }

    #[test]
    fn a_connection_is_given_what_is_more_once_and_never_less() {
        let (mut given, mut connection) = (Given::new(room(256, 1024)), Noted::default());
        given.grow(room(256, 1024), &mut connection);
        given.grow(room(128, 512), &mut connection);
        assert_eq!(connection.told, []);
        given.grow(room(512, 2048), &mut connection);
        given.grow(room(512, 2048), &mut connection);
        assert_eq!(connection.told, [("connection", 2048 << 10), ("stream", 512 << 10)]);
    }

    #[test]
    fn what_cannot_be_told_yet_is_told_later_as_it_is_then() {
        let (mut given, mut connection) = (Given::new(room(256, 1024)), Noted::default());
        connection.pending = true;
        given.grow(room(512, 1024), &mut connection);
        assert_eq!((given.room(), connection.told.len()), (room(256, 1024), 0));
        connection.pending = false;
        given.grow(room(768, 1024), &mut connection);
        assert_eq!(
            (given.room(), connection.told.as_slice()),
            (room(768, 1024), &[("stream", 768 << 10)][..])
        );
    }

    #[test]
    fn no_window_is_larger_than_http_2_has_them() {
        assert_eq!(
            [window(Size(5)), window(Size(1 << 31)), window(Size(1 << 40))],
            [5, i32::MAX as u32, i32::MAX as u32]
        );
    }
}
