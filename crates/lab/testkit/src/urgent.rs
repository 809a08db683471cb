//! Urgent bytes of a TCP connection, as clients and servers say and hear them that go by the mark.

use std::io::ErrorKind;

use tokio::io::Interest;
use tokio::net::TcpStream;

/// Says one urgent byte.
///
/// # Panics
/// The connection is broken.
pub async fn say(stream: &TcpStream, byte: u8) {
    let sent = stream.async_io(Interest::WRITABLE, || farhop_netdev::send_urgent(stream, byte)).await;
    sent.expect("an urgent byte is sent");
}

/// The next `count` bytes, and the places of those that are urgent. Marks are only seen of a connection that keeps such bytes in their
/// place from the beginning ([`farhop_netdev::keep_urgent_in_place`]).
///
/// # Panics
/// The connection is broken or ends early.
pub async fn hear(stream: &TcpStream, count: usize) -> (Vec<u8>, Vec<usize>) {
    let (mut all, mut urgent) = (Vec::new(), Vec::new());
    while all.len() < count {
        stream.readable().await.expect("the connection stands");
        let mut piece = vec![0; count - all.len()];
        let next = stream.try_io(Interest::READABLE, || farhop_netdev::is_next_urgent(stream));
        match next.and_then(|next| Ok((stream.try_read(&mut piece)?, next))) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => {
                let (length, next) = read.expect("the connection stands");
                assert!(length > 0, "it ends after {all:?}");
                urgent.extend(next.then_some(all.len()));
                all.extend_from_slice(&piece[..length]);
            }
        }
    }
    (all, urgent)
}
