//! Flows of datagrams on a full carrier: a call beside bulk, as datagrams and on streams.

use std::time::Duration;

use farhop_congestion::Choice;
use farhop_htotp::datagram::Form;
use farhop_htotp::frame::Class;
use farhop_orbit::Profile;
use farhop_transport::hop::{Arrival, Hop, Incoming};
use farhop_transport::path::PathPlan;
use farhop_units::{BitRate, Bytes as Size};
use tokio::time::{Instant, sleep, timeout};

use crate::ends::{Carrier, ends};

/// Numbers of the flows.
const CALL: u64 = 1;
const DOWNLOAD: u64 = 2;
/// G.729 with two frames in a packet (RFC 3551 §4.5.6): ten seconds of it.
const PACKET_TIME: Duration = Duration::from_millis(20);
const SPOKEN: usize = 500;
/// 20 bytes of speech behind RTP's 12.
const SPEECH: usize = 32;
const LARGE: usize = 1_200;
/// So many of them are sent in a row, twice as fast as the link takes them.
const AT_ONCE: u32 = 10;
/// Before the call the carrier becomes full, and after it what is under way arrives.
const FILLS: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(18);

/// Packets of a call until what had gone ahead has left, and how much that is.
const BEGINS: usize = 5;
const AHEAD: Duration = Duration::from_millis(50);

/// What came in that time.
struct Heard {
    /// How long each packet of the call took, in the order of their coming.
    speech: Vec<Duration>,
    /// Bytes of bulk datagrams.
    bulk: usize,
}

/// A call of this class from ground, beside more datagrams of bulk than the link takes, and a download on a stream if `streams`.
async fn call(profile: &Profile, class: Class, streams: bool) -> Heard {
    let mut ends = ends(profile, PathPlan::for_profile(profile).with_repair(0), Choice::Rate, None, 1);
    let carrier = ends.call().await;
    let reading = streams.then(|| {
        let mut bulk = carrier.ask(100_000_000, 5);
        tokio::spawn(async move { while !matches!(bulk.next().await, Arrival::Ended) {} })
    });
    let (start, far) = (Instant::now(), carrier.far.clone());
    let gap = profile.forward.rate.unwrap().time_for(Size(LARGE as u64));
    let pouring = tokio::spawn(async move {
        loop {
            for _ in 0..2 * AT_ONCE {
                far.send_datagram(DOWNLOAD, Form::Plain, 1, Class::Bulk, &[7; LARGE]);
            }
            // A timer counts milliseconds: several gaps in one.
            sleep(AT_ONCE * gap).await;
        }
    });
    let far = carrier.far.clone();
    let speaking = tokio::spawn(async move {
        sleep(FILLS).await;
        for _ in 0..SPOKEN {
            let mut packet = [0; SPEECH];
            packet[..8].copy_from_slice(&(start.elapsed().as_micros() as u64).to_be_bytes());
            assert!(far.send_datagram(CALL, Form::Plain, 2, class, &packet));
            sleep(PACKET_TIME).await;
        }
    });
    let mut heard = Heard { speech: Vec::new(), bulk: 0 };
    let listening = async {
        while let Some(incoming) = carrier.near.accept().await {
            let Incoming::Datagram { flow, payload, .. } = incoming else { continue };
            if flow == DOWNLOAD {
                heard.bulk += payload.len();
            } else {
                let sent = u64::from_be_bytes(payload[..8].try_into().unwrap());
                heard.speech.push(start.elapsed() - Duration::from_micros(sent));
            }
        }
    };
    assert!(timeout(WHOLE, listening).await.is_err(), "the carrier is there");
    speaking.await.unwrap();
    pouring.abort();
    if let Some(reading) = reading {
        reading.abort();
    }
    heard
}

fn profiles() -> [Profile; 2] {
    let slow = BitRate::kbit(256);
    [
        Profile::named("geo-hylas2").unwrap(),
        Profile::symmetric_delay("slow", slow, slow, Duration::from_millis(300)),
    ]
}

/// One packet is under way, one that QUIC was given, and one that stands in the link's queue.
fn most(profile: &Profile) -> Duration {
    let packet = profile.forward.rate.unwrap().time_for(Size(1480));
    profile.forward.one_way() + 3 * packet + Duration::from_millis(30)
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_no_bulk_of_datagrams_or_streams() {
    for profile in profiles() {
        for streams in [false, true] {
            let heard = call(&profile, Class::Expedited, streams).await;
            let name = format!("{} {streams}", profile.name);
            assert_eq!(heard.speech.len(), SPOKEN, "{name}: none is lost");
            // What had gone ahead of the link before the call has to leave first.
            let (first, later) = heard.speech.split_at(BEGINS);
            let (longest, most) = (later.iter().max().unwrap(), most(&profile));
            assert!(*longest <= most, "{name}: {longest:?} of {most:?}");
            let (longest, most) = (first.iter().max().unwrap(), most + AHEAD);
            assert!(*longest <= most, "{name}, the first: {longest:?} of {most:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_sends_little_loses_nothing_to_who_pours_as_much_as_the_class_takes() {
    for profile in profiles() {
        // Both are of the class of bulk, and of different users.
        let heard = call(&profile, Class::Bulk, false).await;
        let (name, could) = (&profile.name, profile.forward.rate.unwrap().bytes_in(WHOLE).0);
        assert_eq!(heard.speech.len(), SPOKEN, "{name}");
        let (longest, most) = (*heard.speech.iter().max().unwrap(), most(&profile) + AHEAD);
        assert!(longest <= most, "{name}: {longest:?} of {most:?}");
        assert!(heard.bulk as u64 > could / 2, "{name}: {} of {could}", heard.bulk);
    }
}

#[tokio::test(start_paused = true)]
async fn datagrams_use_what_the_link_has_and_leave_it_to_streams_that_are_more_urgent() {
    for profile in profiles() {
        let could = profile.forward.rate.unwrap().bytes_in(WHOLE).0 as f64;
        // Headers of IP, UDP and QUIC, and the call, leave nine tenths where the link is quick.
        let least = if could > 1e6 { 0.85 } else { 0.6 };
        let alone = call(&profile, Class::Expedited, false).await.bulk as f64;
        assert!(alone > least * could, "{}: {alone} of {could}", profile.name);
        let beside = call(&profile, Class::Expedited, true).await.bulk as f64;
        // A twentieth, until the download has shown that it is no page: 8 MB, then both are bulk and share.
        assert!(beside < 0.35 * alone, "{}: {beside} of {alone}", profile.name);
    }
}

/// So many calls at a time, whose headers are made short.
const CALLS: u64 = 10;
const SHORT: usize = 23;

/// So many calls of ground's, spread evenly over a packet's time; how long each of their packets took.
async fn speech(carrier: &Carrier, calls: u64) -> Vec<Duration> {
    let (start, far) = (Instant::now(), carrier.far.clone());
    let speaking = tokio::spawn(async move {
        sleep(FILLS).await;
        for spoken in 0..SPOKEN as u64 * calls {
            let mut packet = [0; SHORT];
            packet[..8].copy_from_slice(&(start.elapsed().as_micros() as u64).to_be_bytes());
            assert!(far.send_datagram(1 + spoken % calls, Form::Plain, 2, Class::Expedited, &packet));
            sleep(PACKET_TIME / calls as u32).await;
        }
    });
    let mut took = Vec::new();
    let listening = async {
        while let Some(incoming) = carrier.near.accept().await {
            let Incoming::Datagram { flow, payload, .. } = incoming else { continue };
            if (1..=calls).contains(&flow) {
                let sent = u64::from_be_bytes(payload[..8].try_into().unwrap());
                took.push(start.elapsed() - Duration::from_micros(sent));
            }
        }
    };
    assert!(timeout(WHOLE, listening).await.is_err(), "the carrier is there");
    speaking.await.unwrap();
    took
}

#[tokio::test(start_paused = true)]
async fn calls_share_packets_on_a_slow_link_and_wait_little_for_it() {
    let mut profile = Profile::named("geo-hylas2").unwrap();
    std::mem::swap(&mut profile.forward, &mut profile.return_);
    let rate = profile.forward.rate.unwrap();
    let mut measured = Vec::new();
    for calls in [1, CALLS] {
        let mut ends = ends(&profile, PathPlan::for_profile(&profile).with_repair(0), Choice::Rate, None, 1);
        let carrier = ends.call().await;
        let before = ends.crossed();
        let took = speech(&carrier, calls).await;
        let packets = SPOKEN as u64 * calls;
        assert_eq!(took.len() as u64, packets, "none is lost");
        measured.push(((ends.crossed() - before) / packets, took.into_iter().max().unwrap()));
    }
    let [(alone, least), (shared, longest)] = measured[..] else { unreachable!("two were measured") };
    // Two thirds of a packet that goes alone are no speech.
    assert!(alone > 70 && shared * 10 <= alone * 6, "{shared} bytes in place of {alone}");
    let most = least + Duration::from_millis(5) + rate.time_for(Size(3 * alone));
    assert!(longest <= most, "{longest:?} of {most:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_that_take_most_of_a_slow_link_wait_neither_for_bulk_nor_for_acknowledgements() {
    let mut profile = Profile::named("geo-hylas2").unwrap();
    std::mem::swap(&mut profile.forward, &mut profile.return_);
    // With the layer that repairs, whose own headers are beneath what QUIC counts.
    let mut ends = ends(&profile, PathPlan::for_profile(&profile), Choice::Rate, None, 1);
    let carrier = ends.call().await;
    let pour = |hop: Hop, rate: BitRate| {
        tokio::spawn(async move {
            loop {
                for _ in 0..AT_ONCE {
                    hop.send_datagram(DOWNLOAD + CALLS, Form::Plain, 1, Class::Bulk, &[7; LARGE]);
                }
                sleep(AT_ONCE * rate.time_for(Size(LARGE as u64))).await;
            }
        })
    };
    let pouring = [
        pour(carrier.far.clone(), profile.forward.rate.unwrap()),
        pour(carrier.near.clone(), profile.return_.rate.unwrap()),
    ];
    let took = speech(&carrier, CALLS).await;
    pouring.iter().for_each(|it| it.abort());
    assert_eq!(took.len(), SPOKEN * CALLS as usize, "none is lost");
    let longest = took.iter().skip(took.len() / 10).max().unwrap();
    let most = most(&profile);
    assert!(*longest <= most, "{longest:?} of {most:?}");
}
