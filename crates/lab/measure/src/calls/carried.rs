//! Calls inside Farhop's carrier, beside downloads and uploads inside it: the remote catches all of them. Ground sends in its own name, so
//! SIPp's media, which go to the address that SDP names, would go beside the carrier; the phones here answer to where speech comes from,
//! as RFC 4961 has it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use farhop_compare::{Ends, Keys, Stage, Tuning, Variant};
use farhop_orbit::Way;
use farhop_testbed::{Place, Testbed};

use super::heard::{Passed, fate};
use super::load::Load;
use super::{CALLS, DOWNLOADS, LINK, Line, PACKET_TIME, TAIL, TALK, UPLOADS, WARM, judged};
use crate::group::Context;
use crate::{MeasureError, Row, Verdict};

/// Of those who are called; and of callers, who have one more than the other for each call.
const CALLED: u16 = 20_000;
const CALLER: u16 = 21_000;
/// Calls alone on the link, until what each takes shows.
const ALONE: Duration = Duration::from_secs(10);
/// G.729: 20 bytes of speech in 20 ms (RFC 3551 §4.5.6), 160 of its clock.
const PAYLOAD_TYPE: u8 = 18;
const SPEECH: usize = 20;
const CLOCK: u32 = 160;
/// How soon it is seen that a call is over.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let line = Line::named("", LINK)?;
    let testbed = Testbed::up(&line.profile, 1)?;
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let keys = Keys::make(folder.path())?;
    let stage = Stage {
        testbed: &testbed,
        folder: folder.path(),
        keys: &keys,
        interception: None,
        interrupt: &context.interrupt,
    };
    let remote = format!(
        "role = \"transport\"\ntransparent.enabled = true\ntransparent.except = \"127.0.0.0/8\"\n\
         transparent.interfaces = \"lan0\"\nudp.voice_ports = \"{CALLED}-{}\"\n",
        CALLED + CALLS
    );
    let tuning = Tuning { remote, ..Tuning::default() };
    let mut ends = Ends::start_tuned(stage, Variant::FarhopTransport, &tuning)?;
    let calls = Calls::start(&testbed)?;
    // Until every flow stands.
    context.interrupt.sleep(TAIL)?;
    testbed.link().take_record();
    context.interrupt.sleep(ALONE)?;
    let record = testbed.link().take_record();
    let alone = [&record.return_, &record.forward].map(|way| way.counters.sent.bytes.0);
    let _load = Load::start(&testbed, DOWNLOADS, UPLOADS)?;
    context.interrupt.sleep(WARM)?;
    calls.begin_anew();
    context.interrupt.sleep(TALK)?;
    ends.check_alive()?;
    let until = Instant::now() - TAIL;
    let [up, down] = calls.end();
    let mut rows = vec![cost(alone, record.elapsed)];
    let shaped = |way| line.profile.leg(way).rate.unwrap_or_default();
    for (way, direction, Heard { sent, arrived }) in
        [(Way::Return, "return", up), (Way::Forward, "forward", down)]
    {
        let what = format!("{CALLS} calls inside the carrier, full {direction} link");
        let fate = fate(&sent, &arrived, until, |_| true);
        rows.push(judged(what, line.bound(way, shaped(way), CALLS), CALLS, &fate));
    }
    Ok(rows)
}

/// What a call takes on the link, all that the carrier puts around it counted.
fn cost(bytes: [u64; 2], elapsed: Duration) -> Row {
    let kbit = bytes.map(|bytes| bytes as f64 * 8.0 / 1e3 / elapsed.as_secs_f64() / f64::from(CALLS));
    Row {
        what: format!("what each of {CALLS} calls takes inside the carrier"),
        measured: format!("{:.1} kbit/s on the return link, {:.1} on the forward link", kbit[0], kbit[1]),
        bound: "none; 24 kbit/s with plain headers and nothing around them".into(),
        verdict: Verdict::Told,
    }
}

/// Packets of one direction, as they left and as they arrived.
#[derive(Debug, Default)]
struct Heard {
    sent: Passed,
    arrived: Passed,
}

/// Calls that talk until they are ended.
struct Calls {
    over: Arc<AtomicBool>,
    /// From callers, and back.
    heard: [Arc<Mutex<Heard>>; 2],
}

/// One end of a call.
struct Phone {
    socket: UdpSocket,
    /// How both ends call what goes from here, and what comes.
    ends: (SocketAddr, SocketAddr),
    /// Where speech goes; whoever is called learns it from what comes.
    to: Mutex<Option<SocketAddr>>,
    says: Arc<Mutex<Heard>>,
    hears: Arc<Mutex<Heard>>,
    over: Arc<AtomicBool>,
}

impl Calls {
    fn start(testbed: &Testbed) -> Result<Calls, MeasureError> {
        let failed = MeasureError::system("a phone");
        let calls = Calls { over: Arc::default(), heard: [Arc::default(), Arc::default()] };
        let [up, down] = &calls.heard;
        for number in 0..CALLS {
            let called = SocketAddr::from((testbed.addresses.origin(number + 1), CALLED + number));
            let caller = SocketAddr::from((testbed.addresses.client, CALLER + number));
            for (place, own, other, to, says, hears) in [
                (Place::Origins, called, caller, None, down, up),
                (Place::Client, caller, called, Some(called), up, down),
            ] {
                let bind = || bound(own);
                let socket = testbed.namespace(place).run(bind).map_err(farhop_testbed::Error::from)?;
                let phone = Arc::new(Phone {
                    socket: socket.map_err(&failed)?,
                    ends: (own, other),
                    to: Mutex::new(to),
                    says: Arc::clone(says),
                    hears: Arc::clone(hears),
                    over: Arc::clone(&calls.over),
                });
                let speaker = Arc::clone(&phone);
                thread::spawn(move || speaker.speak());
                thread::spawn(move || phone.listen());
            }
        }
        Ok(calls)
    }

    /// What was heard so far counts no more.
    fn begin_anew(&self) {
        for heard in &self.heard {
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = Heard::default();
        }
    }

    fn end(self) -> [Heard; 2] {
        self.heard
            .clone()
            .map(|heard| std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
    }
}

fn bound(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

impl Phone {
    /// On time, whatever the packet before took.
    fn speak(&self) {
        let (begun, mut number) = (Instant::now(), 0u16);
        for packet in 1u32.. {
            if self.over.load(Relaxed) {
                return;
            }
            thread::sleep((PACKET_TIME * packet).saturating_sub(begun.elapsed()));
            let Some(to) = *self.to.lock().unwrap_or_else(PoisonError::into_inner) else { continue };
            let (from, other) = self.ends;
            let noted = Instant::now();
            self.says
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .sent
                .insert((from, other, number), noted);
            // One that does not leave is lost.
            let _ = self.socket.send_to(&rtp(number, packet), to);
            number = number.wrapping_add(1);
        }
    }

    fn listen(&self) {
        let mut buffer = [0; 2048];
        while !self.over.load(Relaxed) {
            let Ok((length, from)) = self.socket.recv_from(&mut buffer) else { continue };
            let noted = Instant::now();
            self.to.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(from);
            if let [_, _, high, low, ..] = buffer[..length] {
                let (own, other) = self.ends;
                let mut hears = self.hears.lock().unwrap_or_else(PoisonError::into_inner);
                hears.arrived.entry((other, own, u16::from_be_bytes([high, low]))).or_insert(noted);
            }
        }
    }
}

fn rtp(number: u16, packet: u32) -> Vec<u8> {
    let mut datagram = vec![0x80, PAYLOAD_TYPE];
    datagram.extend(number.to_be_bytes());
    datagram.extend(packet.wrapping_mul(CLOCK).to_be_bytes());
    datagram.extend(u32::from(Ipv4Addr::LOCALHOST).to_be_bytes());
    datagram.extend([b'x'; SPEECH]);
    datagram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_takes_is_told_of_each_and_of_either_way() {
        // Ten calls for ten seconds.
        let row = cost([250_000, 500_000], Duration::from_secs(10));
        assert_eq!(row.measured, "20.0 kbit/s on the return link, 40.0 on the forward link");
    }
}
