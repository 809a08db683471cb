//! Why each parameter is what it is, in a sentence for people. The numbers are `parameters`'.

use std::time::Duration;

use farhop_units::{BitRate, Bytes, format_duration, three_digits};

use crate::decision::{Applies, Decision, Sending, Value, ms};
use crate::neighbours::BEYOND;
use crate::parameters::{ACK_DELAY, Acknowledged, GROUND_STREAMS, MOST, REMOTE_STREAMS};
use crate::{End, Fact, Parameters, Path, Set, Source, WRITE_AHEAD};

/// Every parameter with its reason. `first` is what the carrier began with; `sending` how it is driven at the moment.
pub(crate) fn decisions(
    set: &Set,
    path: &Path,
    now: &Parameters,
    first: &Parameters,
    driven: Option<&Sending>,
) -> Vec<Decision> {
    let rtt = path.round_trip;
    let sending = path.sending.source;
    let quicker = path.quicker();
    let larger = quicker.source;
    let mut rows = windows(path, now, (first.stream_window, Applies::NextCarrier), now.carrier_window);
    rows.extend([
        row(
            "send window",
            sizes(driven.map_or(now.send_window, |driven| driven.send_window)),
            sizes(driven.map_or(now.send_window, |driven| driven.send_window)),
            if driven.is_some() { Source::Measured } else { worst(rtt.source, sending) },
            Applies::Now,
            format!(
                "what the congestion controller has in flight and {} more, two packets at the least, up to {}",
                time_in_words(WRITE_AHEAD),
                short(now.send_most)
            ),
        ),
        unread(path, now),
        row(
            "streams",
            Value::Streams(now.streams),
            Value::Streams(now.streams),
            worst(rtt.source, larger),
            Applies::Now,
            format!(
                "one for each 4 KiB on the way, {} at the least, and twice what is open",
                if set.end == End::Ground { GROUND_STREAMS } else { REMOTE_STREAMS }
            ),
        ),
        row(
            "acknowledge after",
            Value::Packets(now.ack_packets),
            Value::Packets(first.ack_packets),
            worst(rtt.source, sending),
            Applies::NextCarrier,
            match rtt.source {
                Source::Assumed => "the least there is, as long as the round trip is not known".into(),
                _ => format!(
                    "what leaves in 1/64 of {}, 9 at the least{}",
                    length(rtt),
                    spared(path).map(|why| format!("; up to 1/16, {why}")).unwrap_or_default()
                ),
            },
        ),
        row(
            "acknowledge within",
            times(now.ack_delay),
            times(first.ack_delay),
            rtt.source,
            Applies::NextCarrier,
            match spared(path).filter(|_| now.ack_delay > ACK_DELAY.1) {
                Some(why) => format!("1/16 of {} at the most, beyond 25 ms {why}", length(rtt)),
                None => format!("1/16 of {}, between 2 and 25 ms", length(rtt)),
            },
        ),
        row(
            "lost when overtaken by",
            Value::Packets(now.packet_threshold),
            Value::Packets(first.packet_threshold),
            worst(rtt.source, sending),
            Applies::NextCarrier,
            match (rtt.source, set.repairs) {
                (Source::Assumed, _) => "RFC 9002, as long as the round trip is not known".into(),
                (_, true) => {
                    format!("what leaves in 1/8 of {}: a repair may bring it back meanwhile", length(rtt))
                }
                (_, false) => {
                    format!("what leaves in 1/32 of {}: modems reorder by a frame or two", length(rtt))
                }
            },
        ),
        row(
            "lost after",
            Value::RoundTrips(now.time_threshold as f64 / 1e3),
            Value::RoundTrips(first.time_threshold as f64 / 1e3),
            rtt.source,
            Applies::NextCarrier,
            "9/8 (RFC 9002), and 30 ms beyond the round trip at the least".into(),
        ),
        row(
            "first round trip",
            times(now.initial_round_trip),
            times(first.initial_round_trip),
            rtt.source,
            Applies::NextCarrier,
            match rtt.source {
                Source::Assumed => "RFC 9002, as long as it is not known".into(),
                _ => format!("a tenth above {}, so that no handshake is repeated in vain", length(rtt)),
            },
        ),
        row(
            "idle timeout",
            times(now.idle),
            times(first.idle),
            Source::Fixed,
            Applies::NextCarrier,
            "outlives the longest cut that the session holds on through".into(),
        ),
        row(
            "call timeout",
            times(now.handshake),
            times(now.handshake),
            rtt.source,
            Applies::NextCarrier,
            match rtt.source {
                Source::Assumed => {
                    "three round trips to the moon, as long as the round trip is not known".into()
                }
                _ => format!(
                    "six times {}, 3 s at the least: a fresh call is back sooner than a late one",
                    length(rtt)
                ),
            },
        ),
        row(
            "socket buffers",
            sizes(now.socket_buffer),
            sizes(now.socket_buffer),
            if larger == Source::Assumed { larger } else { worst(rtt.source, larger) },
            Applies::Now,
            match larger {
                Source::Assumed => "what an unknown path may bring while this process is busy".into(),
                _ => format!(
                    "twice what fills {} × {}, which comes while this process is busy, between 1 and 32 MiB; they only grow",
                    speed(quicker),
                    length(rtt)
                ),
            },
        ),
    ]);
    if set.end == End::Remote {
        rows.insert(
            9,
            row(
                "keep alive after",
                times(now.keep_alive),
                times(first.keep_alive),
                rtt.source,
                Applies::NextCarrier,
                format!("six times {}, between 5 and 15 s: routers forget after half a minute", length(rtt)),
            ),
        );
    }
    rows.extend(driven.map(in_flight));
    rows
}

/// Why acknowledgements are fewer, where the other direction is the reason.
fn spared(path: &Path) -> Option<String> {
    let answered = path.answered.filter(|_| Acknowledged::on(path, path.round_trip.value).is_spared)?;
    let (sent, back) = (speed(path.reached), speed(answered));
    Some(format!("so that those of {sent} take little of the {back} that come back"))
}

/// What repairs add to what this end sends, beneath QUIC: the share of it at present, at most `most` (none where nothing is ever
/// repaired), where so much of it is believed to be lost. Shares are between 0 and 1.
pub fn repairs(share: f64, loss: f64, most: f64) -> Decision {
    let percent = |share: f64| (share * 1e4).round() / 1e2;
    let (share, loss) = (percent(share), percent(loss));
    let most_in_words = percent(most);
    let because = match (most > 0.0, share > 0.0) {
        (false, _) => "[link] fec is off: nothing is repaired, what gets lost is sent again".into(),
        (true, true) => format!(
            "{loss} % of the packets are lost (measured); what makes that good but for rare runs, {most_in_words} % at the most (fec_most)"
        ),
        (true, false) if loss > percent(most) => format!(
            "{loss} % of the packets are lost (measured), more than {most_in_words} % of repairs (fec_most) make good"
        ),
        (true, false) => format!(
            "{loss} % of the packets are lost (measured): nothing is repaired below 0.1 %, and {most_in_words} % at the most (fec_most)"
        ),
    };
    let source = if most > 0.0 { Source::Measured } else { Source::Set };
    let value = Value::Percent(share);
    row("repairs", value, value, source, Applies::Now, because)
}

/// What the peer may send that is not read yet, on a stream, which has so much and more when that applies, and on all.
pub(crate) fn windows(path: &Path, now: &Parameters, stream: (Bytes, Applies), all: Bytes) -> Vec<Decision> {
    let (rtt, rate) = (path.round_trip, path.receiving);
    let from = worst(rtt.source, rate.source);
    let bdp = short(rate.value.bytes_in(rtt.value));
    let (spare, most) = match rate.source {
        Source::Assumed => ("a quarter more keeps it full", 256),
        _ => ("as much again lets a stream go on while a loss is repaired", 128),
    };
    let mut because =
        format!("{} × {} = {bdp} fill the path; {spare}, 1 MiB at the least", speed(rate), length(rtt));
    if now.stream_window == MOST {
        because.push_str(&format!("; no window is larger than {}", short(MOST)));
    }
    let (in_use, applies) = stream;
    vec![
        row("stream window", sizes(now.stream_window), sizes(in_use), from, applies, because),
        row(
            "carrier window",
            sizes(now.carrier_window),
            sizes(all),
            from,
            Applies::Now,
            format!("64 stream windows, between 64 and {most} MiB: streams that nobody reads stop no others"),
        ),
    ]
}

/// What may wait for clients or origins that are slow to read.
pub(crate) fn unread(path: &Path, now: &Parameters) -> Decision {
    row(
        "unread",
        sizes(now.unread),
        sizes(now.unread),
        worst(path.round_trip.source, path.sending.source),
        Applies::Now,
        "six times what fills the path, 32 MiB at the least, of all streams together: a user may have as much as \
         nobody uses, a stream as much as its user may have beyond that"
            .into(),
    )
}

/// What concerns browsers or origins. All of it is in force at once.
pub(crate) fn beyond(set: &Set, path: &Path, now: &Parameters) -> Vec<Decision> {
    let (rtt, sending) = (path.round_trip, path.sending);
    let (name, because) = match set.end {
        End::Remote => (
            "browser",
            format!(
                "what {} on the return link carry in {}; open connections only grow",
                speed(sending),
                time_in_words(rtt.value.max(BEYOND))
            ),
        ),
        End::Ground => (
            "origin",
            format!(
                "twice what {} on the forward link take in {}, or in an origin's own round trip; open connections only grow",
                speed(sending),
                time_in_words(BEYOND)
            ),
        ),
    };
    let at_once = |parameter: &str, value: Value, from: Source, because: String| {
        row(parameter, value, value, from, Applies::Now, because)
    };
    let timer = match set.end {
        End::Remote => at_once(
            "outage outlasted",
            times(now.outage),
            rtt.source,
            "two minutes and five calls, 150 s at the least, unless [timeouts] outage says otherwise".into(),
        ),
        End::Ground => at_once(
            "made ahead waits for",
            times(now.ahead),
            rtt.source,
            format!("twice {}, and 6 s that a browser may take", length(rtt)),
        ),
    };
    let room = now.neighbours;
    vec![
        at_once(&format!("{name} stream window"), sizes(room.stream), sending.source, because),
        at_once(
            &format!("{name} connection window"),
            sizes(room.connection),
            sending.source,
            match room.streams() {
                1 => "as much as memory allows: one stream may have all of it".into(),
                streams => format!("{streams} of these, so that one that is slow stops no others"),
            },
        ),
        timer,
    ]
}

/// Which controller drives what this end sends, and what it makes of the path.
fn in_flight(driven: &Sending) -> Decision {
    let Sending { controller, kept, window, .. } = *driven;
    let because = match kept {
        Some(rate) => format!(
            "{controller}: what is sent keeps to {}; this is more than fills the path",
            rate.in_words()
        ),
        None => format!("{controller}: what it takes the path to carry in a round trip; no rate is kept to"),
    };
    let (window, from) = (sizes(window), if kept.is_some() { Source::Set } else { Source::Measured });
    row("in flight", window, window, from, Applies::Now, because)
}

fn row(
    parameter: &str,
    value: Value,
    in_use: Value,
    from: Source,
    applies: Applies,
    because: String,
) -> Decision {
    Decision { parameter: parameter.into(), value, in_use, from, applies, because }
}

fn sizes(size: Bytes) -> Value {
    Value::Bytes(size.0)
}

fn times(time: Duration) -> Value {
    Value::Ms(ms(time))
}

/// Of two sources the one that is less sure.
fn worst(one: Source, other: Source) -> Source {
    one.max(other)
}

fn speed(rate: Fact<BitRate>) -> String {
    format!("{}{}", rate.value.in_words(), word(rate.source))
}

fn length(rtt: Fact<Duration>) -> String {
    format!("{}{}", time_in_words(rtt.value), word(rtt.source))
}

fn word(source: Source) -> &'static str {
    match source {
        Source::Set => " (set)",
        Source::Measured => " (measured)",
        Source::Assumed => " (assumed)",
        Source::Fixed => "",
    }
}

/// A size as people say it.
pub(crate) fn short(size: Bytes) -> String {
    Bytes(three_digits(size.0)).to_string()
}

/// A time as people say it: milliseconds below ten seconds, microseconds below one of them.
pub fn time_in_words(time: Duration) -> String {
    if !time.is_zero() && time < Duration::from_millis(1) {
        return format!("{} µs", time.as_micros());
    }
    let whole = if time < Duration::from_secs(10) {
        Duration::from_millis((time.as_secs_f64() * 1e3).round() as u64)
    } else {
        Duration::from_secs(time.as_secs_f64().round() as u64)
    };
    format_duration(whole)
}
