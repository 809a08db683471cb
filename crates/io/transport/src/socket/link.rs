//! A satellite link inside the process: two sockets joined by the path model of `core/orbit`, so that
//! `farhop local` and tests cross the same QUIC code as two machines would. It moves datagrams at the
//! times that the model says and must not decide any of them itself. Time is tokio's, so a paused
//! runtime plays it in virtual time.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use farhop_orbit::{Counters, Path, Profile, Way};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::inbox::{INBOX, Inbox, SEGMENTS};
use super::{Meter, Traffic};
use crate::path::End;

/// IPv4 and UDP headers, which the link carries with each datagram.
const HEADERS: usize = 28;
/// Larger packets do not pass, as on any Ethernet.
const MTU: usize = 1500;
/// Addresses that no one owns (RFC 5737): they show in logs and must mislead nobody.
const GROUND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4433);
const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 4433);

/// The place of what is `end`'s.
fn index(end: End) -> usize {
    match end {
        End::Ground => 0,
        End::Remote => 1,
    }
}

/// The way on which `end` sends.
fn way(end: End) -> Way {
    match end {
        End::Ground => Way::Forward,
        End::Remote => Way::Return,
    }
}

fn receiver(way: Way) -> End {
    match way {
        Way::Forward => End::Remote,
        Way::Return => End::Ground,
    }
}

/// Handle on a link, to watch it and to disturb it.
#[derive(Debug, Clone)]
pub struct Link(Arc<Shared>);

/// One end of a link.
#[derive(Debug)]
pub struct LinkSocket {
    end: End,
    shared: Arc<Shared>,
    meter: Meter,
}

#[derive(Debug)]
struct Shared {
    epoch: Instant,
    state: Mutex<State>,
    /// Rings when the driver should look at the clock again.
    rearm: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    path: Path<Bytes>,
    /// By [`End::index`] of who receives.
    inboxes: [Inbox; 2],
    /// When the driver will wake up by itself.
    armed: Option<Duration>,
}

/// A link of this `profile`; equal seeds lose the same packets. Gives the handle, ground's socket and
/// the remote's. Must be called inside a tokio runtime.
pub fn pair(profile: &Profile, seed: u64) -> (Link, Arc<LinkSocket>, Arc<LinkSocket>) {
    let rearm = Arc::new(Notify::new());
    let shared = Arc::new(Shared {
        epoch: Instant::now(),
        state: Mutex::new(State { path: Path::new(profile, seed), inboxes: Default::default(), armed: None }),
        rearm: rearm.clone(),
    });
    tokio::spawn(drive(Arc::downgrade(&shared), rearm));
    let socket = |end| Arc::new(LinkSocket { end, shared: shared.clone(), meter: Meter::default() });
    (Link(shared.clone()), socket(End::Ground), socket(End::Remote))
}

/// Delivers what is due, until both sockets and the handle are gone.
async fn drive(shared: Weak<Shared>, rearm: Arc<Notify>) {
    loop {
        let next = match shared.upgrade() {
            Some(shared) => shared.deliver_and_arm(),
            None => return,
        };
        let rung = rearm.notified();
        match next {
            Some(at) => tokio::select! {
                () = tokio::time::sleep_until(at) => (),
                () = rung => (),
            },
            None => rung.await,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.rearm.notify_one();
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave a half-moved datagram behind: every step is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `change` act on the state and delivers what is due.
    fn with<T>(&self, change: impl FnOnce(&mut State, Duration) -> T) -> T {
        let now = self.now();
        let mut state = self.lock();
        let result = change(&mut state, now);
        let woken = state.deliver(now);
        let sooner = match (state.path.next_wakeup(), state.armed) {
            (Some(next), Some(armed)) => next < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        drop(state);
        if sooner {
            self.rearm.notify_one();
        }
        woken.into_iter().for_each(Waker::wake);
        result
    }

    fn deliver_and_arm(&self) -> Option<Instant> {
        let mut state = self.lock();
        let woken = state.deliver(self.now());
        state.armed = state.path.next_wakeup();
        let next = state.armed.map(|due| self.epoch + due);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        next
    }
}

impl State {
    /// Moves what is due into the inboxes; gives the tasks to be woken once the lock is released.
    fn deliver(&mut self, now: Duration) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some((way, arrived)) = self.path.poll_transmit(now) {
            let inbox = &mut self.inboxes[index(receiver(way))];
            woken.extend(inbox.push(arrived.packet));
        }
        for sender in [End::Ground, End::Remote] {
            self.release_writers(sender, &mut woken);
        }
        woken
    }

    /// Adds who waits to send from `sender` to `woken` if there is room now.
    fn release_writers(&mut self, sender: End, woken: &mut Vec<Waker>) {
        let waiting = !self.inboxes[index(sender.opposite())].writers.is_empty();
        if waiting && self.has_room(sender) {
            woken.append(&mut self.inboxes[index(sender.opposite())].writers);
        }
    }

    /// Whether `sender` may send. A link with a rate drops what its queue cannot hold; one without
    /// would take everything, so there the sender waits for the receiver.
    fn has_room(&self, sender: End) -> bool {
        let direction = self.path.direction(way(sender));
        let unread = self.inboxes[index(sender.opposite())].bytes;
        direction.leg().rate.is_some() || unread + direction.under_way() * MTU < INBOX / 2
    }
}

impl Link {
    /// Cuts both directions: what is sent or would arrive from now on is lost.
    pub fn cut(&self) {
        self.0.with(|state, now| state.path.cut(now));
    }

    /// Cuts one direction, as a terminal that receives but may not send sees it.
    pub fn cut_way(&self, way: Way) {
        self.0.with(|state, now| state.path.direction_mut(way).cut(now));
    }

    /// Ends a cut of either kind.
    pub fn restore(&self) {
        self.0.with(|state, now| state.path.restore(now));
    }

    /// Goes over to another profile while datagrams are under way.
    pub fn switch(&self, profile: &Profile) {
        self.0.with(|state, now| state.path.switch(now, profile));
        // What was due late may be due soon now.
        self.0.rearm.notify_one();
    }

    /// Counters of one way since the start or the last [`Link::take_counters`], IP and UDP headers
    /// included.
    pub fn counters(&self, way: Way) -> Counters {
        self.0.with(|state, _| state.path.counters(way))
    }

    /// Reads the counters of one way and starts them afresh.
    pub fn take_counters(&self, way: Way) -> Counters {
        self.0.with(|state, _| state.path.take_counters(way))
    }

    /// Datagrams that arrived and found the receiver's buffer full.
    pub fn overflowed(&self, way: Way) -> u64 {
        self.0.with(|state, _| state.inboxes[index(receiver(way))].overflowed)
    }
}

impl LinkSocket {
    /// What has passed this socket so far.
    pub fn traffic(&self) -> Traffic {
        self.meter.traffic()
    }

    /// The address under which this end is called.
    pub fn addr(&self) -> SocketAddr {
        match self.end {
            End::Ground => GROUND,
            End::Remote => REMOTE,
        }
    }

    fn peer_addr(&self) -> SocketAddr {
        match self.end {
            End::Ground => REMOTE,
            End::Remote => GROUND,
        }
    }
}

impl AsyncUdpSocket for LinkSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Room(self))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if transmit.destination != self.peer_addr() {
            return Ok(()); // nobody else lives on this link; UDP would not tell either
        }
        let contents = transmit.contents;
        let segment = transmit.segment_size.unwrap_or(contents.len()).max(1);
        let sent = self.shared.with(|state, now| {
            if !state.has_room(self.end) {
                return false;
            }
            let whole = Bytes::copy_from_slice(contents);
            for start in (0..whole.len()).step_by(segment) {
                let datagram = whole.slice(start..whole.len().min(start + segment));
                let size = datagram.len() + HEADERS;
                if size <= MTU {
                    let size = farhop_units::Bytes(size as u64);
                    state.path.handle_packet(now, way(self.end), size, datagram);
                }
            }
            true
        });
        if !sent {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.meter.count_sent(contents.len(), segment);
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut writers = Vec::new();
        let received = {
            let mut state = self.shared.lock();
            let inbox = &mut state.inboxes[index(self.end)];
            let mut filled = 0;
            for (buf, meta) in bufs.iter_mut().zip(meta.iter_mut()) {
                let Some((len, stride)) = inbox.fill(buf) else { break };
                *meta = RecvMeta { addr: self.peer_addr(), len, stride, ecn: None, dst_ip: None };
                self.meter.count_received(len, stride);
                filled += 1;
            }
            if filled == 0 {
                inbox.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            state.release_writers(self.end.opposite(), &mut writers);
            filled
        };
        writers.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(received))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addr())
    }

    fn max_transmit_segments(&self) -> usize {
        SEGMENTS
    }

    fn max_receive_segments(&self) -> usize {
        SEGMENTS
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

/// Waits until the link takes datagrams again.
#[derive(Debug)]
struct Room(Arc<LinkSocket>);

impl UdpPoller for Room {
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = &self.0;
        let mut state = socket.shared.lock();
        if state.has_room(socket.end) {
            return Poll::Ready(Ok(()));
        }
        let writers = &mut state.inboxes[index(socket.end.opposite())].writers;
        if !writers.iter().any(|waker| waker.will_wake(cx.waker())) {
            writers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::BitRate;
    use std::future::poll_fn;

    /// What one call of `poll_recv` gives: per buffer its bytes and the size of one datagram.
    async fn receive(socket: &LinkSocket) -> Vec<(Vec<u8>, usize)> {
        let mut storage = vec![vec![0; SEGMENTS * MTU]; 4];
        let mut meta = [RecvMeta::default(); 4];
        let mut bufs: Vec<IoSliceMut<'_>> = storage.iter_mut().map(|buf| IoSliceMut::new(buf)).collect();
        let received = poll_fn(|cx| socket.poll_recv(cx, &mut bufs, &mut meta)).await.unwrap();
        drop(bufs);
        (0..received).map(|index| (storage[index][..meta[index].len].to_vec(), meta[index].stride)).collect()
    }

    fn send(socket: &LinkSocket, contents: &[u8], segment_size: Option<usize>) -> io::Result<()> {
        let destination = socket.peer_addr();
        socket.try_send(&Transmit { destination, ecn: None, contents, segment_size, src_ip: None })
    }

    fn hylas() -> Profile {
        Profile::named("geo-hylas2").unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_datagram_arrives_after_its_delay_and_counts_with_its_headers() {
        let (link, ground, remote) = pair(&hylas(), 1);
        let start = Instant::now();
        send(&ground, &[7; 972], None).unwrap(); // 1000 bytes with headers: 1 ms at 8 Mbit/s
        assert_eq!(receive(&remote).await, [(vec![7; 972], 972)]);
        assert_eq!(start.elapsed(), Duration::from_millis(326));
        let forward = link.counters(Way::Forward).delivered;
        assert_eq!((forward.packets, forward.bytes.0), (1, 1000));
        assert_eq!(remote.traffic().received, farhop_units::Bytes(972));
    }

    #[tokio::test(start_paused = true)]
    async fn segments_cross_as_datagrams_of_their_own_and_are_handed_over_together() {
        let (link, ground, remote) = pair(&Profile::named("none").unwrap(), 1);
        let contents: Vec<u8> = (0..2500).map(|index| index as u8).collect();
        send(&ground, &contents, Some(1000)).unwrap();
        assert_eq!(receive(&remote).await, [(contents, 1000)]);
        assert_eq!(link.counters(Way::Forward).delivered.packets, 3);
        assert_eq!(ground.traffic().sent_datagrams, 3);
        assert_eq!(remote.traffic().received_datagrams, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn larger_datagrams_are_not_joined_to_smaller_ones() {
        let (_link, ground, remote) = pair(&Profile::named("none").unwrap(), 1);
        send(&ground, &[1; 100], None).unwrap();
        send(&ground, &[2; 200], None).unwrap();
        send(&ground, &[3; 50], None).unwrap();
        let second = [[2; 200].as_slice(), &[3; 50]].concat();
        assert_eq!(receive(&remote).await, [(vec![1; 100], 100), (second, 200)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_exceeds_the_mtu_does_not_pass() {
        let (link, ground, remote) = pair(&Profile::named("none").unwrap(), 1);
        send(&ground, &[1; MTU - HEADERS + 1], None).unwrap();
        send(&ground, &[2; MTU - HEADERS], None).unwrap();
        assert_eq!(receive(&remote).await, [(vec![2; MTU - HEADERS], MTU - HEADERS)]);
        assert_eq!(link.counters(Way::Forward).sent.packets, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_loses_what_is_under_way_and_what_is_sent_until_it_ends() {
        let (link, ground, remote) = pair(&hylas(), 1);
        send(&ground, b"under way", None).unwrap();
        link.cut();
        send(&ground, b"sent into the cut", None).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        link.restore();
        send(&ground, b"after", None).unwrap();
        assert_eq!(receive(&remote).await, [(b"after".to_vec(), 5)]);
        assert_eq!(link.counters(Way::Forward).cut_drops.packets, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_profile_switched_to_while_datagrams_fly_applies_to_them() {
        let (link, ground, remote) = pair(&hylas(), 1);
        let start = Instant::now();
        send(&ground, b"far", None).unwrap();
        link.switch(&Profile::named("none").unwrap());
        receive(&remote).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_the_sender_waits_for_the_reader_instead_of_filling_memory() {
        let (link, ground, remote) = pair(&Profile::named("none").unwrap(), 1);
        let mut sent = 0;
        while send(&ground, &[0; 1000], None).is_ok() {
            sent += 1000;
        }
        assert!((INBOX / 2..INBOX).contains(&sent), "{sent}");
        let mut room = ground.clone().create_io_poller();
        let mut waiting = tokio::spawn(async move { poll_fn(|cx| room.as_mut().poll_writable(cx)).await });
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut waiting).await.is_err());
        receive(&remote).await;
        waiting.await.unwrap().unwrap();
        assert_eq!((link.overflowed(Way::Forward), link.counters(Way::Forward).drops()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn with_a_rate_the_queue_drops_and_an_unread_socket_overflows() {
        let fast = Profile::symmetric_delay("fast", BitRate::mbit(10_000), BitRate::mbit(1), Duration::ZERO);
        let (link, ground, _remote) = pair(&fast, 1);
        for _ in 0..200 {
            send(&ground, &[0; 1000], None).unwrap();
        }
        assert_eq!(link.counters(Way::Forward).queue_drops.packets, 200 - 64_000 / 1028);
        for _ in 0..INBOX / 1000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            send(&ground, &[0; 1000], None).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(link.overflowed(Way::Forward) > 0);
    }
}
