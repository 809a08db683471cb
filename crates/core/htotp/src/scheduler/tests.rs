//! The order and the pace of grants, in virtual time.

use super::pace::{LARGEST_GRANT, SMALLEST_GRANT, STRETCH, STRETCH_WITHOUT_RATE};
use super::*;
use farhop_units::BitRate;

const START: Duration = Duration::ZERO;

fn place(class: Class, user: u64, urgency: u8, incremental: bool) -> Place {
    Place { class, user, priority: Priority { urgency, incremental }, asked: true }
}

/// Opens a stream with `size` bytes queued.
fn fill(scheduler: &mut Scheduler, id: u64, place: Place, size: usize) -> StreamId {
    scheduler.open(StreamId(id), place);
    scheduler.enqueue(StreamId(id), Bytes::from(vec![0; size]));
    StreamId(id)
}

/// Takes everything in order and counts bytes per stream until `most` are taken.
fn order(scheduler: &mut Scheduler, now: Duration, most: usize) -> Vec<(u64, usize)> {
    let (mut taken, mut all) = (0, Vec::<(u64, usize)>::new());
    while let Some(grant) = scheduler.poll_grant(now) {
        let size: usize = grant.segments.iter().map(Bytes::len).sum();
        match all.last_mut() {
            Some((id, sum)) if *id == grant.stream.0 => *sum += size,
            _ => all.push((grant.stream.0, size)),
        }
        scheduler.written(grant.stream);
        taken += size;
        if taken >= most {
            break;
        }
    }
    all
}

#[test]
fn a_more_urgent_stream_goes_first_and_equals_go_in_turn() {
    let mut s = Scheduler::new(START, Pace::default());
    fill(&mut s, 1, place(Class::Web, 1, 5, false), 100_000);
    fill(&mut s, 2, place(Class::Web, 1, 1, false), 100_000);
    fill(&mut s, 3, place(Class::Web, 1, 5, false), 100_000);
    assert_eq!(order(&mut s, START, usize::MAX), [(2, 100_000), (1, 100_000), (3, 100_000)]);
}

#[test]
fn incremental_streams_share() {
    let mut s = Scheduler::new(START, Pace::default());
    fill(&mut s, 1, place(Class::Web, 1, 5, true), 64 * 1024);
    fill(&mut s, 2, place(Class::Web, 1, 5, true), 64 * 1024);
    let turns: Vec<u64> = order(&mut s, START, usize::MAX).into_iter().map(|(id, _)| id).collect();
    assert_eq!(turns, [1, 2].repeat(64 * 1024 / LARGEST_GRANT));
}

#[test]
fn what_is_asked_later_waits_for_half_a_second_of_a_long_download_and_not_for_its_end() {
    let rate = BitRate::kbit(64);
    let mut s = Scheduler::new(START, Pace { rate: Some(rate), ..Pace::default() });
    fill(&mut s, 1, place(Class::Web, 1, 3, false), 300_000);
    let (mut now, mut before) = (START, 0);
    while before < 50_000 {
        now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
        before += order(&mut s, now, usize::MAX).iter().map(|(_, size)| size).sum::<usize>();
    }
    fill(&mut s, 2, place(Class::Web, 1, 3, false), 500);
    let asked = now;
    while s.queued(StreamId(2)) > 0 {
        now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
        order(&mut s, now, usize::MAX);
    }
    assert!(now - asked <= STRETCH + Duration::from_millis(250), "{:?}", now - asked);
}

#[test]
fn users_of_a_class_share_whatever_their_number_of_streams() {
    let mut s = Scheduler::new(START, Pace::default());
    for id in 0..50 {
        fill(&mut s, id, place(Class::Web, 1, 3, false), 100_000);
    }
    fill(&mut s, 99, place(Class::Web, 2, 3, false), 200_000);
    let second: usize =
        order(&mut s, START, 400_000).iter().filter(|(id, _)| *id == 99).map(|(_, size)| size).sum();
    assert!((150_000..=200_000).contains(&second), "{second} of 400000");
}

#[test]
fn a_class_waits_for_the_classes_before_it() {
    let mut s = Scheduler::new(START, Pace::default());
    fill(&mut s, 1, place(Class::Bulk, 1, 0, false), 100_000);
    fill(&mut s, 2, place(Class::Web, 1, 7, false), 100_000);
    assert_eq!(order(&mut s, START, usize::MAX)[0].0, 2);
}

#[test]
fn no_more_than_fifty_milliseconds_of_link_time_go_ahead() {
    let rate = BitRate::mbit(8);
    let mut s = Scheduler::new(START, Pace { rate: Some(rate), ..Pace::default() });
    fill(&mut s, 1, place(Class::Web, 1, 3, false), 10_000_000);
    let ahead: usize = order(&mut s, START, usize::MAX).iter().map(|(_, size)| size).sum();
    assert!(ahead <= 50_000 + LARGEST_GRANT, "{ahead}");
    let (mut now, mut sent) = (START, 0);
    while now < Duration::from_secs(5) {
        now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
        sent += order(&mut s, now, usize::MAX).iter().map(|(_, size)| size).sum::<usize>();
    }
    let rate = sent as f64 * 8.0 / 5.0 / 8e6;
    assert!((0.94..=0.96).contains(&rate), "{rate} of the link's rate");
}

#[test]
fn on_a_slow_link_another_users_first_bytes_wait_for_about_one_packet() {
    let rate = BitRate::kbit(64);
    let mut s = Scheduler::new(START, Pace { rate: Some(rate), ..Pace::default() });
    fill(&mut s, 1, place(Class::Web, 1, 3, false), 300_000);
    let (mut now, mut before) = (START, 0);
    while before < 20_000 {
        now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
        before += order(&mut s, now, usize::MAX).iter().map(|(_, size)| size).sum::<usize>();
    }
    fill(&mut s, 2, place(Class::Web, 2, 3, false), 500);
    let asked = now;
    while s.queued(StreamId(2)) > 0 {
        now = s.next_wakeup(now).unwrap().max(now + Duration::from_micros(100));
        order(&mut s, now, usize::MAX);
    }
    // One that has left already, and the first user's turn.
    let packet = rate.time_for(ByteCount(1452));
    assert!(now - asked <= 2 * packet + packet / 10, "{:?}", now - asked);
}

#[test]
fn pieces_and_turns_follow_what_the_link_takes_where_no_rate_is_kept_to() {
    let sizes = |about| {
        let mut s = Scheduler::new(START, Pace { about, ..Pace::default() });
        fill(&mut s, 1, place(Class::Web, 1, 3, false), 1_000_000);
        fill(&mut s, 2, place(Class::Web, 1, 3, false), 1_000_000);
        let first: usize = s.poll_grant(START).unwrap().segments.iter().map(Bytes::len).sum();
        s.written(StreamId(1));
        (first, first + order(&mut s, START, 500_000).first().map_or(0, |(_, size)| *size))
    };
    assert_eq!(sizes(None), (LARGEST_GRANT, STRETCH_WITHOUT_RATE as usize));
    // Half a second of 64 kbit/s are 4,000 bytes, whole packets.
    assert_eq!(sizes(Some(BitRate::kbit(64))), (SMALLEST_GRANT, 3 * SMALLEST_GRANT));
    assert_eq!(sizes(Some(BitRate::mbit(1))).0, 5_600);
    assert_eq!(sizes(Some(BitRate::mbit(100))), (LARGEST_GRANT, STRETCH_WITHOUT_RATE as usize));
}

#[test]
fn while_someone_speaks_pieces_on_a_slow_link_are_less_than_packets() {
    let piece = |rate, speaks: bool| {
        let mut s = Scheduler::new(START, Pace { rate: Some(rate), ..Pace::default() });
        if speaks {
            s.push(START, 9, place(Class::Expedited, 2, 0, false), Bytes::from_static(b"speech"));
            assert!(s.poll_datagram(START).is_some());
        }
        fill(&mut s, 1, place(Class::Web, 1, 3, false), 1_000_000);
        s.poll_grant(START).unwrap().segments.iter().map(Bytes::len).sum::<usize>()
    };
    let pieces = |rate| (piece(rate, false), piece(rate, true));
    assert_eq!(pieces(BitRate::kbit(64)), (SMALLEST_GRANT, 500));
    assert_eq!(pieces(BitRate::kbit(512)), (2_800, 640));
    assert_eq!(pieces(BitRate::mbit(8)), (LARGEST_GRANT, 10_000));
}

#[test]
fn a_stream_is_not_granted_twice_before_the_carrier_took_it() {
    let mut s = Scheduler::new(START, Pace::default());
    fill(&mut s, 1, place(Class::Web, 1, 3, false), 100_000);
    assert!(s.poll_grant(START).is_some());
    assert_eq!(s.poll_grant(START), None);
    s.written(StreamId(1));
    assert!(s.poll_grant(START).is_some());
}

#[test]
fn the_end_comes_with_the_last_bytes_or_alone() {
    let mut s = Scheduler::new(START, Pace::default());
    let id = fill(&mut s, 1, place(Class::Web, 1, 3, false), 10);
    s.finish(id);
    assert!(s.poll_grant(START).unwrap().end);
    s.open(StreamId(2), place(Class::Web, 1, 3, false));
    s.finish(StreamId(2));
    let grant = s.poll_grant(START).unwrap();
    assert!(grant.end && grant.segments.is_empty());
    s.written(StreamId(2));
    assert_eq!(s.poll_grant(START), None);
}

#[test]
fn a_full_carrier_is_given_only_what_is_more_urgent() {
    let rate = Some(BitRate::mbit(8));
    let mut s = Scheduler::new(START, Pace { rate, ..Pace::default() });
    fill(&mut s, 1, place(Class::Web, 1, 3, false), 10);
    s.set_floor(Some((Class::Web, 3)));
    assert_eq!(s.poll_grant(START), None);
    assert_eq!(s.next_wakeup(START), None, "asked again and again while the carrier is full");
    fill(&mut s, 2, place(Class::Web, 1, 1, false), 10);
    assert_eq!(s.poll_grant(START).unwrap().stream, StreamId(2));
    s.set_floor(None);
    assert_eq!(s.poll_grant(START).unwrap().stream, StreamId(1));
}

#[test]
fn a_closed_stream_leaves_nothing_behind() {
    let mut s = Scheduler::new(START, Pace::default());
    let id = fill(&mut s, 1, place(Class::Web, 1, 3, false), 10);
    s.close(id);
    assert_eq!(s.poll_grant(START), None);
    assert!(s.turns.is_empty() && s.streams.is_empty());
}

#[test]
fn classes_go_before_one_another_whoever_they_are_of() {
    let classes =
        [Class::Expedited, Class::Interactive, Class::Web, Class::Streaming, Class::Bulk, Class::Background];
    let mut s = Scheduler::new(START, Pace::default());
    for (id, class) in classes.into_iter().enumerate().rev() {
        fill(&mut s, id as u64, place(class, 9 - id as u64, 7 - id as u8, false), 20_000);
    }
    let turns: Vec<u64> = order(&mut s, START, usize::MAX).into_iter().map(|(id, _)| id).collect();
    assert_eq!(turns, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn what_a_user_has_left_of_a_turn_is_forgotten_with_the_user() {
    let mut s = Scheduler::new(START, Pace::default());
    for user in 1..=50 {
        let id = fill(&mut s, user, place(Class::Web, user, 3, false), 40_000);
        s.finish(id);
    }
    order(&mut s, START, usize::MAX);
    for user in 1..=50 {
        s.close(StreamId(user));
    }
    assert!(s.turns.is_empty() && s.turns.remembers_nobody());
}

/// Bytes of each of these streams that go out within `time`, at the moments that the scheduler asks for.
fn within(s: &mut Scheduler, from: Duration, time: Duration, ids: &[u64]) -> Vec<usize> {
    let (mut now, mut sent) = (from, vec![0; ids.len()]);
    while now < from + time {
        while let Some(grant) = s.poll_grant(now) {
            let bytes: usize = grant.segments.iter().map(Bytes::len).sum();
            if let Some(at) = ids.iter().position(|id| StreamId(*id) == grant.stream) {
                sent[at] += bytes;
            }
            s.written(grant.stream);
        }
        let Some(next) = s.next_wakeup(now) else { break };
        now = next.max(now + Duration::from_micros(100));
    }
    sent
}

#[test]
fn a_class_never_exceeds_its_ceiling_and_others_have_the_rest() {
    let pace = Pace { rate: Some(BitRate::mbit(8)), ..Pace::default() };
    let mut s = Scheduler::new(Duration::ZERO, pace);
    s.set_ceilings(Duration::ZERO, &[(Class::Backups, BitRate::kbit(200)), (Class::Bulk, BitRate::mbit(1))]);
    let classes = [Class::Bulk, Class::Background, Class::Backups, Class::Backups];
    for (id, class) in classes.into_iter().enumerate() {
        fill(&mut s, id as u64, place(class, id as u64, 3, true), 20_000_000);
    }
    let sent = within(&mut s, Duration::ZERO, Duration::from_secs(10), &[0, 1, 2, 3]);
    let near = |bytes: usize, wanted: usize| bytes.abs_diff(wanted) <= wanted / 50 + 16_384;
    assert!(near(sent[0], 1_250_000), "{sent:?}");
    // They stand behind what never ends: a part of what they may have, and each of them one.
    let behind = sent[2] + sent[3];
    assert!(behind <= 250_000 + 16_384 && sent[2].min(sent[3]) > 20_000, "{sent:?}");
    assert!(near(sent.iter().sum(), 9_500_000), "nothing of the link is left unused: {sent:?}");
    // The night begins.
    s.set_ceilings(Duration::from_secs(10), &[]);
    let later = within(&mut s, Duration::from_secs(10), Duration::from_secs(10), &[0, 1, 2, 3]);
    assert!(later[0] > 8_500_000, "{later:?}");
}

#[test]
fn a_class_alone_waits_for_its_ceiling_and_what_the_ends_tell_each_other_does_not() {
    let mut s = Scheduler::new(Duration::ZERO, Pace::default());
    s.set_ceilings(Duration::ZERO, &[(Class::Background, BitRate::kbit(8)), (Class::PeerToPeer, BitRate(0))]);
    fill(&mut s, 1, place(Class::Background, 1, 3, true), 1_000_000);
    fill(&mut s, 2, place(Class::PeerToPeer, 1, 3, true), 1_000_000);
    fill(&mut s, 3, place(Class::Background, 1, 3, true), 1_000_000);
    s.exempt(StreamId(3));
    let sent = within(&mut s, Duration::ZERO, Duration::from_secs(60), &[1, 2, 3]);
    assert!((56_000..=64_000).contains(&sent[0]), "{sent:?}");
    assert!(sent[1] <= 1_400, "what was saved up: {sent:?}");
    assert_eq!(sent[2], 1_000_000);
    // Closed in the middle, it is forgotten.
    s.close(StreamId(1));
    s.close(StreamId(2));
    assert_eq!(s.next_wakeup(Duration::from_secs(60)), None);
}

/// The frames that wait on a stream whose frames of data are `added` after it was given out to the carrier, and what is in them.
fn waiting_frames(added: &[&'static [u8]]) -> Vec<Bytes> {
    let mut s = Scheduler::new(START, Pace::default());
    let id = fill(&mut s, 1, place(Class::Web, 1, 3, false), 10);
    s.poll_grant(START).unwrap();
    added.iter().for_each(|data| s.enqueue_data(id, Bytes::from_static(data)));
    s.written(id);
    let grant = s.poll_grant(START).unwrap();
    assert_eq!(s.queued(id), 0);
    grant.segments
}

#[test]
fn a_body_that_comes_byte_by_byte_waits_in_one_frame() {
    assert_eq!(waiting_frames(&[b"a", b"b", b"c"]), [data_header(3), Bytes::from_static(b"abc")]);
    let large = [7; SMALL];
    let large: &'static [u8] = Box::leak(Box::new(large));
    let two = [data_header(1), Bytes::from_static(b"a"), data_header(SMALL), Bytes::from_static(large)];
    assert_eq!(waiting_frames(&[b"a", large]), two, "what is large is not copied");
}

#[test]
fn frames_of_data_that_grow_stay_whole_and_in_order_whatever_goes_out_between() {
    use crate::frame::{Frame, FrameReader};
    let mut s = Scheduler::new(START, Pace { rate: Some(BitRate::kbit(64)), ..Pace::default() });
    let id = fill(&mut s, 1, place(Class::Web, 1, 3, false), 0);
    let (mut now, mut state) = (START, 1_u64);
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // Bytes of bodies; `None` is a frame of another kind.
    let (mut added, mut sent) = (Vec::<Option<u8>>::new(), Vec::<u8>::new());
    for step in 0..20_000 {
        match random(20) {
            0 => {
                s.enqueue(id, Frame::Urgent.encode());
                added.push(None);
            }
            kind => {
                let length = if kind == 1 { 1 + random(3_000) } else { 1 + random(9) };
                let data: Vec<u8> = (0..length).map(|at| (step + at) as u8).collect();
                added.extend(data.iter().copied().map(Some));
                s.enqueue_data(id, data.into());
            }
        }
        now += Duration::from_millis(random(30));
        while random(3) == 0
            && let Some(grant) = s.poll_grant(now)
        {
            sent.extend(grant.segments.concat());
            s.written(id);
        }
    }
    while s.queued(id) > 0 {
        now += Duration::from_secs(1);
        if let Some(grant) = s.poll_grant(now) {
            sent.extend(grant.segments.concat());
            s.written(id);
        }
    }
    let (mut reader, mut input, mut read) = (FrameReader::default(), Bytes::from(sent), Vec::new());
    while let Some(frame) = reader.next(&mut input).unwrap() {
        match frame {
            Frame::Data(data) => read.extend(data.into_iter().map(Some)),
            other => {
                assert_eq!(other, Frame::Urgent);
                read.push(None);
            }
        }
    }
    assert!(reader.is_between());
    assert!(
        read == added,
        "of {} bytes and frames {} came as they were",
        added.len(),
        read.iter().zip(&added).take_while(|(one, other)| one == other).count()
    );
}
