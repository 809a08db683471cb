//! The socket layer over a wire made of two queues: what goes out, what QUIC is handed.

use std::future::poll_fn;

use farhop_fec::halves::{LARGEST_WHOLE, halve};
use farhop_fec::wire::{Report, Source};
use quinn::udp::BATCH_SIZE;

use super::*;
use crate::ends::End;
use crate::identity::PublicKey;
use crate::memory::Memory;

/// Where to, what, and the size of its segments.
type Batch = (SocketAddr, Vec<u8>, Option<usize>);

/// Takes what is sent, gives what was put in.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    sent: Mutex<Vec<Batch>>,
    /// Buffers with the size of their datagrams.
    arriving: Mutex<VecDeque<(SocketAddr, Vec<u8>, usize)>>,
    full: Mutex<bool>,
}

#[derive(Debug)]
struct Never;

impl UdpPoller for Never {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncUdpSocket for Wire {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Never)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if *lock(&self.full) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        lock(&self.sent).push((transmit.destination, transmit.contents.to_vec(), transmit.segment_size));
        Ok(())
    }

    fn poll_recv(
        &self,
        _: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let Some((addr, bytes, stride)) = lock(&self.arriving).pop_front() else { return Poll::Pending };
        bufs[0][..bytes.len()].copy_from_slice(&bytes);
        let ecn = Some(EcnCodepoint::Ect0);
        meta[0] = RecvMeta { addr, len: bytes.len(), stride, ecn, dst_ip: None };
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(addr(1))
    }
}

fn addr(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

const PEER: u16 = 7;
const RTT: Duration = Duration::from_millis(600);

/// Both ends' secrets.
fn secrets() -> (Secret, Secret) {
    let near = Secret { own: [1; 8], theirs: [2; 8], first_sent: 100, first_received: 500 };
    (near, Secret { own: near.theirs, theirs: near.own, first_sent: 500, first_received: 100 })
}

/// Of a connection that nobody knows.
fn ties() -> Ties {
    Ties { surcharge: Surcharge::default(), ends: Ends::default(), recall: Recall::nothing() }
}

/// A socket with a layer towards [`PEER`], and the peer's own end of it.
struct Scene {
    wire: Arc<Wire>,
    socket: Arc<FecSocket>,
    peer: Layer,
}

const TERMS: Terms = Terms { most: 0.25, loud: false };

impl Scene {
    fn new() -> Scene {
        let wire = Arc::new(Wire::default());
        let socket = FecSocket::new(wire.clone(), TERMS);
        socket.protect(addr(PEER), &secrets().0, RTT, ties());
        Scene { wire, socket, peer: Layer::new(Duration::ZERO, &secrets().1, TERMS, RTT) }
    }

    /// What the peer would send by itself now.
    fn peer_says(&mut self) -> Vec<Vec<u8>> {
        let mut said = Vec::new();
        let mut datagram = Vec::new();
        while self.peer.poll_transmit(Duration::ZERO, &mut datagram) {
            said.push(std::mem::take(&mut datagram));
        }
        said
    }

    /// The two have greeted each other.
    async fn met() -> Scene {
        let mut scene = Scene::new();
        for hello in scene.peer_says() {
            assert!(scene.receive(PEER, &[&hello]).await.is_empty());
        }
        for (_, hello, _) in std::mem::take(&mut *lock(&scene.wire.sent)) {
            scene.peer.handle(Duration::ZERO, &hello);
        }
        scene
    }

    /// What QUIC is handed when one buffer of datagrams, all of one size but the last, comes from that port: each
    /// datagram and its mark.
    async fn receive(&self, port: u16, datagrams: &[&[u8]]) -> Vec<(Vec<u8>, Option<EcnCodepoint>)> {
        let stride = datagrams[0].len();
        assert!(datagrams.iter().rev().skip(1).all(|datagram| datagram.len() == stride));
        lock(&self.wire.arriving).push_back((addr(port), datagrams.concat(), stride));
        let mut handed = Vec::new();
        loop {
            let mut storage = vec![vec![0; 4096]; BATCH_SIZE];
            let mut bufs: Vec<IoSliceMut<'_>> = storage.iter_mut().map(|buf| IoSliceMut::new(buf)).collect();
            let mut meta = [RecvMeta::default(); BATCH_SIZE];
            let received = poll_fn(|cx| match self.socket.poll_recv(cx, &mut bufs, &mut meta) {
                Poll::Ready(received) => Poll::Ready(Some(received.unwrap())),
                Poll::Pending => Poll::Ready(None),
            });
            let Some(received) = received.await else { return handed };
            drop(bufs);
            for (buf, meta) in storage.iter().zip(&meta[..received]) {
                assert_eq!(meta.addr, addr(port));
                let datagrams = buf[..meta.len].chunks(meta.stride);
                handed.extend(datagrams.map(|datagram| (datagram.to_vec(), meta.ecn)));
            }
        }
    }

    fn send(&self, contents: &[u8], segment_size: Option<usize>) -> io::Result<()> {
        let destination = addr(PEER);
        self.socket.try_send(&Transmit { destination, ecn: None, contents, segment_size, src_ip: None })
    }

    fn sent(&self) -> Vec<Batch> {
        std::mem::take(&mut *lock(&self.wire.sent))
    }
}

fn packet(salt: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![salt; len];
    packet[0] = 0x40 | (salt & 0x3f);
    packet
}

fn bare(datagrams: Vec<(Vec<u8>, Option<EcnCodepoint>)>) -> Vec<Vec<u8>> {
    datagrams.into_iter().map(|(datagram, _)| datagram).collect()
}

fn source(sequence: u32, packet: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    Datagram::Source(Source { sequence, kept: true, packet }).encode(&mut datagram);
    datagram
}

#[tokio::test(start_paused = true)]
async fn before_the_peer_has_said_hello_packets_go_out_as_they_are() {
    let scene = Scene::new();
    scene.send(&packet(1, 200), None).unwrap();
    assert_eq!(scene.sent(), [(addr(PEER), packet(1, 200), None)]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_stays_a_batch_and_each_of_its_packets_gets_a_number() {
    let scene = Scene::met().await;
    let batch = [packet(1, 300), packet(2, 300), packet(3, 100)].concat();
    for (first, header) in [(100, 9), (103, 5)] {
        scene.send(&batch, Some(300)).unwrap();
        let [(_, framed, Some(stride))] = &scene.sent()[..] else { panic!("one batch") };
        assert_eq!(*stride, 300 + header, "room is made sure of once");
        let read: Vec<_> =
            framed.chunks(*stride).map(|datagram| Datagram::decode(datagram).unwrap()).collect();
        for ((index, packet), read) in (0..).zip(batch.chunks(300)).zip(read) {
            assert_eq!(read, Datagram::Source(Source { sequence: first + index, kept: false, packet }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_not_taken_is_sent_later_under_the_same_numbers() {
    let scene = Scene::met().await;
    *lock(&scene.wire.full) = true;
    assert_eq!(scene.send(&packet(1, 200), None).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    *lock(&scene.wire.full) = false;
    scene.send(&packet(1, 200), None).unwrap();
    let sent = scene.sent();
    let Some(Datagram::Source(source)) = Datagram::decode(&sent[0].1) else { panic!("a source") };
    assert_eq!((source.sequence, source.packet.len()), (100, 200));
}

#[tokio::test(start_paused = true)]
async fn handshakes_and_small_packets_are_left_alone() {
    let scene = Scene::met().await;
    let mut long_header = packet(1, 1200);
    long_header[0] = 0xc3;
    let mixed = [packet(1, 100), long_header[..100].to_vec()].concat();
    for (contents, stride) in [(long_header, None), (packet(2, 40), None), (mixed, Some(100))] {
        scene.send(&contents, stride).unwrap();
        assert_eq!(scene.sent(), [(addr(PEER), contents, stride)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_buffer_of_joined_datagrams_is_handed_over_without_its_frames() {
    let scene = Scene::met().await;
    let packets = [packet(1, 300), packet(2, 300), packet(3, 90)];
    let framed: Vec<Vec<u8>> = (500..).zip(&packets).map(|(number, packet)| source(number, packet)).collect();
    let framed: Vec<&[u8]> = framed.iter().map(Vec::as_slice).collect();
    assert_eq!(bare(scene.receive(PEER, &framed).await), packets);
    // A stranger's too: its connection may just have changed its address.
    assert_eq!(bare(scene.receive(99, &framed).await), packets);
    assert!(scene.socket.counters(addr(99)).is_none(), "and nothing is kept of it");
}

#[tokio::test(start_paused = true)]
async fn packets_of_several_sizes_in_one_buffer_all_arrive() {
    let scene = Scene::met().await;
    // A plain packet that is as long as the frame of another.
    let (plain, framed) = (packet(1, 305), source(500, &packet(2, 300)));
    let longer = packet(3, 305);
    let mut handed = bare(scene.receive(PEER, &[&plain, &framed, &longer]).await);
    handed.sort();
    assert_eq!(handed, [plain, packet(2, 300), longer]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_packet_is_handed_over_as_if_it_had_come() {
    for (loud, mark) in [(false, EcnCodepoint::Ect0), (true, EcnCodepoint::Ce)] {
        let scene = Scene::met().await;
        let mut encoder = farhop_fec::encoder::Encoder::new(500);
        for number in 500..510 {
            let packet = packet(number as u8, 200);
            encoder.push(Duration::ZERO, number, &packet);
            if number != 504 {
                scene.receive(PEER, &[&source(number, &packet)]).await;
            }
        }
        let mut repair = Vec::new();
        Datagram::Repair(encoder.repair(loud).unwrap()).encode(&mut repair);
        assert_eq!(scene.receive(PEER, &[&repair]).await, [(packet(504_u32 as u8, 200), Some(mark))]);
        assert!(scene.receive(PEER, &[&repair]).await.is_empty(), "once");
        assert_eq!(scene.socket.counters(addr(PEER)).unwrap().received.recovered, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hello_that_comes_before_its_handshake_is_through_is_kept_for_it() {
    let mut scene = Scene::new();
    let hello = scene.peer_says().remove(0);
    let socket = FecSocket::new(scene.wire.clone(), TERMS);
    let early = Scene { socket: socket.clone(), ..scene };
    assert!(early.receive(PEER, &[&hello]).await.is_empty());
    for port in 100..150 {
        early.receive(port, &[&[&[0x0f, 0][..], &[9; 8]].concat()]).await;
    }
    socket.protect(addr(PEER), &secrets().0, RTT, ties());
    early.sent();
    early.send(&packet(1, 200), None).unwrap();
    assert!(matches!(Datagram::decode(&early.sent()[0].1), Some(Datagram::Source(_))));
}

#[tokio::test(start_paused = true)]
async fn a_layer_goes_where_quic_sends_and_nowhere_that_a_hello_comes_from() {
    let mut scene = Scene::met().await;
    let other = Secret { own: [3; 8], theirs: [4; 8], first_sent: 0, first_received: 0 };
    let surcharge = Surcharge::default();
    scene.socket.protect(addr(99), &other, RTT, Ties { surcharge: surcharge.clone(), ..ties() });
    scene.peer = Layer::new(Duration::ZERO, &secrets().1, TERMS, RTT);
    let hello = scene.peer_says().remove(0);
    for port in [99, 100] {
        scene.receive(port, &[&hello]).await;
    }
    surcharge.set(0.25);
    let at = |port| scene.socket.counters(addr(port)).is_some();
    assert_eq!([PEER, 99, 100].map(at), [true, true, false], "it may be another's who has heard it");
    let rate = farhop_units::BitRate::mbit(8);
    assert_ne!(surcharge.relieve(rate), rate);
    scene.socket.follow(addr(PEER), addr(100), &[9; 8]);
    assert_eq!([PEER, 99, 100].map(at), [true, true, false], "the layer there is another's");
    scene.socket.follow(addr(PEER), addr(99), &secrets().0.theirs);
    assert_eq!([PEER, 99, 100].map(at), [false, true, false]);
    assert_eq!(surcharge.relieve(rate), rate, "nothing is sent beside the other connection any more");
    let rest = scene.socket.peers.read().unwrap().values().next().cloned().unwrap();
    assert!(lock(&rest.state).layer.knows(&secrets().0.theirs));
    assert_eq!(lock(&rest.state).addr, addr(99));
}

#[tokio::test(start_paused = true)]
#[expect(clippy::await_holding_lock, reason = "this is what is tested")]
async fn what_strangers_say_takes_no_lock_that_layers_need() {
    let scene = Scene::met().await;
    let peer = scene.socket.peer(addr(PEER)).unwrap();
    let (_peers, _state) = (scene.socket.peers.read().unwrap(), lock(&peer.state));
    let forged = [&[0x0f, 0][..], &[9; 8]].concat();
    // With either it would wait for ever.
    scene.receive(99, &[&forged]).await;
}

/// The datagrams of batches, one by one.
fn datagrams(batches: Vec<Batch>) -> Vec<Vec<u8>> {
    let cut = |(_, bytes, stride): Batch| {
        let stride = stride.unwrap_or(bytes.len());
        bytes.chunks(stride).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    batches.into_iter().flat_map(cut).collect()
}

#[tokio::test(start_paused = true)]
async fn what_goes_in_halves_is_small_and_arrives_as_it_was() {
    let plain = Scene::new();
    for (scene, framed) in [(Scene::met().await, true), (plain, false)] {
        scene.sent();
        scene.socket.halving().begin(Instant::now().into_std(), addr(PEER), RTT, 1400);
        let packets = [packet(1, 1400), packet(2, 1400), packet(3, 700)];
        scene.send(&packets.concat(), Some(1400)).unwrap();
        let sent = datagrams(scene.sent());
        assert_eq!(sent.len(), 5);
        assert!(sent.iter().all(|datagram| datagram.len() <= LARGEST_WHOLE));
        let mut handed = Vec::new();
        for datagram in &sent {
            handed.extend(bare(scene.receive(99, &[datagram]).await));
        }
        assert_eq!(handed, packets, "framed: {framed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_for_larger_packets_and_what_comes_after_a_while_goes_whole() {
    let scene = Scene::met().await;
    scene.socket.halving().begin(Instant::now().into_std(), addr(PEER), RTT, 1300);
    let sent = async |len: usize, after: u64| {
        tokio::time::sleep(Duration::from_secs(after)).await;
        scene.send(&packet(1, len), None).unwrap();
        let is_half = |datagram: &Vec<u8>| matches!(Datagram::decode(datagram), Some(Datagram::Half(_)));
        datagrams(scene.sent()).iter().filter(|datagram| is_half(datagram)).count()
    };
    assert_eq!([sent(1300, 0).await, sent(1301, 0).await, sent(1300, 3).await], [2, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_socket_without_room_takes_no_half() {
    let scene = Scene::met().await;
    scene.socket.halving().begin(Instant::now().into_std(), addr(PEER), RTT, 1400);
    *lock(&scene.wire.full) = true;
    assert_eq!(scene.send(&packet(1, 1400), None).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    *lock(&scene.wire.full) = false;
    scene.send(&packet(1, 1400), None).unwrap();
    assert_eq!(scene.sent().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_half_of_a_half_is_nobodys() {
    let scene = Scene::met().await;
    let [inner, _] = halve(&packet(1, 1400), 1);
    for half in halve(&inner, 2) {
        assert!(scene.receive(PEER, &[&half]).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_peer_is_forgotten_and_one_in_use_is_not() {
    let scene = Scene::met().await;
    for _ in 0..10 {
        tokio::time::sleep(IDLE / 2).await;
        scene.send(&packet(1, 40), None).unwrap();
    }
    assert!(scene.socket.counters(addr(PEER)).is_some(), "small packets count as use");
    tokio::time::sleep(IDLE + Duration::from_secs(1)).await;
    assert!(scene.socket.counters(addr(PEER)).is_none());
}

#[tokio::test(start_paused = true)]
async fn strangers_leave_nothing_behind() {
    let scene = Scene::met().await;
    let mut repair = vec![0x0c, 0, 0, 0, 1, 1, 0];
    repair.extend([7; 100]);
    for port in 1000..3000 {
        for datagram in
            [&source(1, &packet(1, 100)), &repair, &vec![0x0e; 17], &[&[0x0f, 1][..], &[9; 8]].concat()]
        {
            scene.receive(port, &[datagram]).await;
        }
    }
    assert!(scene.sent().is_empty(), "nor are they answered");
    assert!(lock(&scene.socket.early).len() <= 64);
    let peers = scene.socket.peers.read().unwrap();
    assert_eq!(peers.keys().collect::<Vec<_>>(), [&addr(PEER)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_after_a_move_is_filed_under_no_path() {
    let folder = tempfile::tempdir().unwrap();
    let recall = Recall::from(&Memory::open(folder.path().join("paths")).unwrap());
    recall.identify(&PublicKey::from_bytes([1; 32]), addr(PEER).ip(), None);
    recall.note_loss(0.5);
    let socket = FecSocket::new(Arc::new(Wire::default()), TERMS);
    socket.protect(addr(PEER), &secrets().0, RTT, Ties { recall, ..ties() });
    let kept_at = |at: SocketAddr| lock(&socket.peer(at).unwrap().state).ties.recall.loss();
    let elsewhere = SocketAddr::from(([192, 0, 2, 2], PEER));
    for (from, to, kept) in [(addr(PEER), addr(8), 0.5), (addr(8), elsewhere, 0.0)] {
        socket.follow(from, to, &secrets().0.theirs);
        assert_eq!(kept_at(to), kept, "{to}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_ends_in_a_download_is_repaired_at_once() {
    for told in [false, true] {
        let mut scene = Scene::new();
        let ends = Ends::default();
        scene.peer = Layer::new(Duration::ZERO, &secrets().1, TERMS, RTT);
        scene.socket.protect(addr(PEER), &secrets().0, RTT, Ties { ends: ends.clone(), ..ties() });
        for hello in scene.peer_says() {
            scene.receive(PEER, &[&hello]).await;
        }
        for (_, hello, _) in scene.sent() {
            scene.peer.handle(Duration::ZERO, &hello);
        }
        // One packet in a hundred gets lost, as the peer reports.
        let report = |newest, lost| Report { newest, lost, runs: lost, recovered: 0 };
        for _ in 0..200 {
            scene.send(&packet(1, 200), None).unwrap();
        }
        let mut reported = Vec::new();
        Datagram::Report(report(299, 2)).encode(&mut reported);
        scene.receive(PEER, &[&reported]).await;
        scene.sent();
        scene.send(&packet(2, 1000), None).unwrap();
        if told {
            ends.tell(End { bytes: 1500, urgent: true });
        }
        let mut repairs = Vec::new();
        for count in 0..3 {
            scene.send(&packet(3, 1000), None).unwrap();
            let is_repair =
                |(_, bytes, _): &Batch| matches!(Datagram::decode(bytes), Some(Datagram::Repair(_)));
            if scene.sent().iter().any(is_repair) {
                repairs.push(count);
            }
        }
        assert_eq!(repairs, if told { vec![1] } else { vec![] }, "with its second packet");
    }
}
