//! A way between the two ends of [`super::routed`] that loses datagrams, lets them overtake each other, and counts their bytes.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farhop_netdev::Namespace;

/// Of so many datagrams one is lost, and of so many one is overtaken by the next.
const LOST: usize = 11;
const OVERTAKEN: usize = 5;
/// How soon it is seen that all is over.
const LOOK: Duration = Duration::from_millis(200);

/// Ends when it is dropped.
pub(crate) struct Rough(Arc<Shared>);

#[derive(Default)]
struct Shared {
    is_rough: AtomicBool,
    is_cut: AtomicBool,
    is_over: AtomicBool,
    client: Mutex<Option<SocketAddr>>,
    /// Of each datagram from who calls.
    sizes: Mutex<Vec<usize>>,
}

impl Rough {
    /// Between who calls `at` and `to`, in that place.
    pub(crate) fn start(place: &Namespace, at: SocketAddr, to: SocketAddr) -> Rough {
        let sockets = place.run(|| {
            let (near, far) = (UdpSocket::bind(at).unwrap(), UdpSocket::bind((at.ip(), 0)).unwrap());
            far.connect(to).unwrap();
            [near, far].map(|socket| {
                socket.set_read_timeout(Some(LOOK)).unwrap();
                Arc::new(socket)
            })
        });
        let [near, far] = sockets.unwrap();
        let shared = Arc::new(Shared::default());
        for (from, is_up) in [(&near, true), (&far, false)] {
            let (from, near, far, shared) =
                (Arc::clone(from), Arc::clone(&near), Arc::clone(&far), Arc::clone(&shared));
            std::thread::spawn(move || {
                let send = |datagram: &[u8]| {
                    let client = *shared.client.lock().unwrap();
                    let _ = match client {
                        _ if is_up => far.send(datagram),
                        Some(client) => near.send_to(datagram, client),
                        None => return,
                    };
                };
                pass(&from, is_up, &shared, send);
            });
        }
        Rough(shared)
    }

    /// From now on it loses some, and some are overtaken.
    pub(crate) fn be_rough(&self) {
        self.0.is_rough.store(true, Relaxed);
    }

    /// Whether nothing passes from now on.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.0.is_cut.store(is_cut, Relaxed);
    }

    /// The sizes of what has come from who calls since this was asked last.
    pub(crate) fn take_sizes(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.sizes.lock().unwrap())
    }
}

impl Drop for Rough {
    fn drop(&mut self) {
        self.0.is_over.store(true, Relaxed);
    }
}

fn pass(from: &UdpSocket, is_up: bool, shared: &Shared, send: impl Fn(&[u8])) {
    let (mut buffer, mut held, mut number) = (vec![0; 65_536], None::<Vec<u8>>, 0usize);
    while !shared.is_over.load(Relaxed) {
        let Ok((length, sender)) = from.recv_from(&mut buffer) else { continue };
        let datagram = &buffer[..length];
        if is_up {
            *shared.client.lock().unwrap() = Some(sender);
            shared.sizes.lock().unwrap().push(length);
        }
        number += 1;
        let is_rough = shared.is_rough.load(Relaxed);
        if shared.is_cut.load(Relaxed) || is_rough && number.is_multiple_of(LOST) {
            continue;
        }
        if is_rough && held.is_none() && number.is_multiple_of(OVERTAKEN) {
            held = Some(datagram.to_vec());
            continue;
        }
        send(datagram);
        if let Some(held) = held.take() {
            send(&held);
        }
    }
}
