//! Bodies as their readers see them: told once, bounded, whole or broken off.

use super::*;
use std::future::Future;
use std::task::{Context, Poll, Waker};

fn poll<F: Future>(future: F) -> Poll<F::Output> {
    std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn what_came_across_is_told_once() {
    let (mut intake, body) = Body::new(&Budget::new(100), 100);
    let (first, second) = (body.reader().unwrap(), body.reader().unwrap());
    intake.crossed(7);
    intake.push("longer than it came".into());
    assert_eq!((first.take_crossed(), second.take_crossed()), (7, 0));
    intake.crossed(3);
    intake.finish(None);
    assert_eq!((second.take_crossed(), body.reader().unwrap().take_crossed()), (3, 0));
}

fn all(reader: &Reader) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(Ok(Piece::Data(piece))) = reader.take() {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

#[test]
fn what_is_held_keeps_no_buffer_that_it_came_in() {
    let (mut intake, body) = Body::new(&Budget::new(1 << 20), 1 << 20);
    let datagrams = Bytes::from(vec![7; 64 * 1024]);
    intake.push(datagrams.slice(..2000));
    assert!(datagrams.is_unique(), "the body holds all of it");
    assert_eq!(all(&body.reader().unwrap()), [7; 2000]);
}

#[test]
fn what_trickles_past_a_slow_reader_keeps_no_buffers_that_it_came_in() {
    let (mut intake, body) = Body::new(&Budget::new(1 << 20), 0);
    let _reader = body.reader().unwrap();
    let packets: Vec<Bytes> = (0..100).map(|_| Bytes::from(vec![7; 1400])).collect();
    packets.iter().for_each(|packet| drop(intake.push(packet.slice(..1000))));
    assert!(packets.iter().all(Bytes::is_unique));
}

#[test]
fn readers_get_what_has_arrived_and_then_what_arrives() {
    let budget = Budget::new(1000);
    let (mut intake, body) = Body::new(&budget, 1000);
    let early = body.reader().unwrap();
    intake.push(Bytes::from_static(b"one"));
    assert_eq!(all(&early), b"one");
    intake.push(Bytes::from_static(b"two"));
    let late = body.reader().unwrap();
    assert_eq!(all(&late), b"onetwo");
    assert_eq!(all(&early), b"two");
    intake.finish(None);
    assert_eq!(early.take(), Some(Ok(Piece::End(None))));
    assert!(body.is_whole());
    assert_eq!(budget.used(), 6);
    drop((early, late, body));
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_body_beyond_its_limit_passes_without_growing() {
    let budget = Budget::new(1 << 30);
    let (mut intake, body) = Body::new(&budget, 100_000);
    let reader = body.reader().unwrap();
    for _ in 0..10_000 {
        assert!(poll(intake.write(Bytes::from(vec![7; 10_000]))).is_ready());
        assert_eq!(all(&reader).len(), 10_000);
        assert!(body.0.lock().pieces.len() <= 12);
    }
    assert_eq!(budget.used(), 0);
    assert!(!body.can_be_joined() && body.reader().is_none());
}

#[test]
fn a_writer_that_waits_for_a_reader_goes_on_when_that_one_has_gone() {
    let budget = Budget::new(1 << 20);
    let (mut intake, body) = Body::new(&budget, 0);
    let reader = body.reader().unwrap();
    drop(body);
    assert!(poll(intake.write(Bytes::from(vec![7; 2 * *WINDOW.end() as usize]))).is_pending());
    drop(reader);
    assert!(poll(intake.write(Bytes::from_static(b"more"))).is_ready());
    assert!(poll(intake.unwanted()).is_ready());
}

#[test]
fn a_body_that_only_passes_ends_with_its_readers_whoever_keeps_it() {
    let (mut intake, body) = Body::new(&Budget::new(1 << 20), 10);
    let reader = body.reader().unwrap();
    intake.push(Bytes::from(vec![0; 8]));
    drop(reader);
    assert!(poll(intake.unwanted()).is_pending(), "it may still be held whole");
    intake.push(Bytes::from(vec![0; 8]));
    assert!(poll(intake.unwanted()).is_ready());
    assert!(
        poll(intake.write(Bytes::from(vec![0; *WINDOW.end() as usize + 1]))).is_ready(),
        "and nothing waits"
    );
    let (mut coming, body) = Body::new(&Budget::new(1 << 20), 10);
    coming.push(Bytes::from(vec![0; 16]));
    assert!(poll(coming.unwanted()).is_pending(), "whoever was promised it may still come");
    drop(body);
    assert!(poll(coming.unwanted()).is_ready());
}

#[test]
fn what_a_slow_reader_still_needs_of_a_passing_body_stays_charged() {
    let budget = Budget::new(1 << 20);
    let (mut intake, body) = Body::new(&budget, 100_000);
    let reader = body.reader().unwrap();
    for _ in 0..11 {
        intake.push(Bytes::from(vec![7; 10_000]));
    }
    assert_eq!(budget.used(), 100_000, "the first ten pieces are still here");
    reader.take();
    assert_eq!(budget.used(), 90_000);
    assert_eq!(all(&reader).len(), 100_000);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_passing_body_waits_for_its_slowest_reader() {
    let budget = Budget::new(0);
    let (mut intake, body) = Body::new(&budget, 0);
    let reader = body.reader().unwrap();
    let mut written = 0;
    while poll(intake.write(Bytes::from(vec![7; 10_000]))).is_ready() {
        written += 10_000;
        assert!(written <= WINDOW.end() + 10_000);
    }
    assert_eq!(all(&reader).len() as u64, written + 10_000);
    assert!(poll(intake.write(Bytes::from_static(b"more"))).is_ready());
}

#[test]
fn many_passing_bodies_wait_for_their_readers_within_the_same_room() {
    const BODIES: usize = 400;
    let budget = Budget::new(0);
    let mut bodies: Vec<_> = (0..BODIES).map(|_| Body::new(&budget, 0)).collect();
    let readers: Vec<_> = bodies.iter().map(|(_, body)| body.reader().unwrap()).collect();
    bodies.iter_mut().for_each(|(intake, _)| drop(intake.push(Bytes::from_static(b"first"))));
    let mut written = 0;
    for (intake, _) in &mut bodies {
        while poll(intake.write(Bytes::from(vec![7; 1000]))).is_ready() {
            written += 1000;
        }
    }
    assert!(written <= WINDOW_OF_ALL, "{written}");
    drop((bodies, readers));
    assert_eq!(budget.window(), *WINDOW.end(), "those that are gone take no room");
}

#[test]
fn a_body_without_readers_waits_beyond_its_limit_and_keeps_its_beginning() {
    let budget = Budget::new(0);
    let (mut intake, body) = Body::new(&budget, 0);
    let mut written = 0;
    while poll(intake.write(Bytes::from(vec![7; 10_000]))).is_ready() {
        written += 10_000;
    }
    let reader = body.reader().expect("nothing was let go");
    assert_eq!(all(&reader).len(), written + 10_000);
}

#[test]
fn a_dropped_writer_breaks_the_body_after_its_bytes() {
    let budget = Budget::new(100);
    let (mut intake, body) = Body::new(&budget, 100);
    intake.push(Bytes::from_static(b"half"));
    let reader = body.reader().unwrap();
    drop(intake);
    assert_eq!(all(&reader), b"half");
    assert_eq!(reader.take(), Some(Err(Broken::GivenUp)));
}

#[test]
fn small_pieces_are_joined_unless_a_reader_has_begun_with_them() {
    let budget = Budget::new(100_000);
    let (mut intake, body) = Body::new(&budget, 100_000);
    for _ in 0..500 {
        intake.push(Bytes::from_static(b"x"));
    }
    assert_eq!(body.0.lock().pieces.len(), 1);
    let reader = body.reader().unwrap();
    assert_eq!(all(&reader).len(), 500);
    intake.push(Bytes::from_static(b"y"));
    assert_eq!(all(&reader), b"y");
}

#[test]
fn the_writer_learns_that_nobody_is_left() {
    let budget = Budget::new(100);
    let (intake, body) = Body::new(&budget, 100);
    assert!(poll(intake.unwanted()).is_pending());
    let reader = body.reader();
    drop(body);
    assert!(poll(intake.unwanted()).is_pending());
    drop(reader);
    assert!(poll(intake.unwanted()).is_ready());
}

#[test]
fn what_nobody_wants_is_given_up_before_anyone_else_can_begin_to_read_it() {
    let (mut intake, body) = Body::new(&Budget::new(1 << 20), 10);
    let reader = body.reader().unwrap();
    intake.push(Bytes::from(vec![0; 16]));
    drop(reader);
    let last = body.reader().expect("its beginning is here");
    assert!(poll(intake.unwanted()).is_pending());
    drop(last);
    assert!(poll(intake.unwanted()).is_ready());
    assert!(body.reader().is_none() && body.is_broken());
}

#[test]
fn a_body_that_is_abandoned_is_given_up_only_when_nobody_reads_it_and_then_at_once() {
    let (mut intake, body) = Body::new(&Budget::new(100), 100);
    intake.push("some".into());
    let reader = body.reader().unwrap();
    let abandon = intake.abandon();
    assert!(poll(abandon.when_unread()).is_pending());
    let second = body.reader().expect("while it comes anyone may join");
    drop(reader);
    assert!(poll(abandon.when_unread()).is_pending());
    drop(second);
    assert!(poll(abandon.when_unread()).is_ready());
    assert!(body.reader().is_none() && body.is_broken());
}

#[test]
fn what_is_whole_stays_whole_when_it_is_abandoned() {
    let (mut intake, body) = Body::new(&Budget::new(100), 100);
    intake.push("all".into());
    let abandon = intake.abandon();
    intake.finish(None);
    assert!(poll(abandon.when_unread()).is_ready());
    assert_eq!(all(&body.reader().unwrap()), b"all");
}
