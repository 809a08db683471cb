//! A link between two sockets in virtual time: what crosses, when, and what does not.

use std::future::poll_fn;
use std::io::{self, IoSliceMut};

use farhop_units::BitRate;
use quinn::AsyncUdpSocket;
use quinn::udp::{RecvMeta, Transmit};

use super::socket::HEADERS;
use super::*;
use crate::socket::inbox::SEGMENTS;

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
