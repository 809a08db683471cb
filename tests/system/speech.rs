//! Calls through both ends: their RTP crosses with small headers and comes out as it went in. Needs root; without it each test says so
//! and passes.

use std::collections::HashSet;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

use crate::support::rough::Rough;
use crate::support::routed::{Routed, SERVER};
use crate::support::until;
use crate::udp::{answered, echo};

/// Where speech goes, and where the same is nobody's speech.
const VOICE: u16 = 4000;
const OTHER: u16 = 4010;
/// Of a datagram of RTP: 12 of headers and 20 of speech.
const HEADERS: usize = 12;
/// Quicker than speech, so that the test is.
const GAP: Duration = Duration::from_millis(5);

/// G.729 with two frames in a packet, with a talkspurt's marker now and then.
fn rtp(number: u16) -> Vec<u8> {
    let marker = u8::from(number.is_multiple_of(50)) << 7;
    // Both numbers come around on the way.
    let (sequence, timestamp) = (number.wrapping_add(65_300), u32::from(number) * 160);
    let mut datagram = vec![0x80, 18 | marker];
    datagram.extend(sequence.to_be_bytes());
    datagram.extend(timestamp.wrapping_add(u32::MAX - 20_000).to_be_bytes());
    datagram.extend([1, 2, 3, 4]);
    datagram.extend((0..20).map(|at| (number.wrapping_mul(31) >> 3) as u8 ^ at));
    datagram
}

/// Both ends with a way between them that is as rough as it is told to be.
struct Call {
    routed: Routed,
    rough: Rough,
    _ends: [crate::support::Program; 2],
}

impl Call {
    async fn new() -> Option<Call> {
        let routed = Routed::new()?;
        let settings = routed.settings_of("ground");
        let elsewhere =
            std::fs::read_to_string(&settings).unwrap().replace("10.79.2.2:4433", "10.79.2.2:4434");
        std::fs::write(settings, elsewhere).unwrap();
        let at = |port: u16| format!("10.79.2.2:{port}").parse().unwrap();
        let rough = Rough::start(&routed.internet, at(4433), at(4434));
        let voice = format!("udp.voice_ports={VOICE}");
        let sets = ["--set", &voice, "--set", "carrier=quic", "--set", "link.fec=off"];
        let ends = [routed.remote(&sets).await, routed.ground()];
        routed.joined().await;
        Some(Call { routed, rough, _ends: ends })
    }

    /// The bytes of a datagram of the carrier that has one of RTP to this port, and nothing else.
    async fn carried(&self, port: u16) -> usize {
        let (server, client) = (self.routed.hear(SERVER[0], port), self.routed.speak_with(SERVER[0], port));
        let mut buffer = [0; 100];
        // The flow stands.
        until("a datagram arrives", async || {
            client.send(&rtp(0)).await.unwrap();
            timeout(Duration::from_secs(1), server.recv(&mut buffer)).await.ok()
        })
        .await
        .unwrap();
        self.rough.take_sizes();
        for number in 1..=200 {
            client.send(&rtp(number)).await.unwrap();
            sleep(GAP).await;
        }
        let mut sizes = self.rough.take_sizes();
        sizes.sort_unstable();
        // On a busy machine several leave together, and acknowledgements beside them.
        let alone = sizes.chunk_by(|one, other| one == other).find(|same| same.len() >= 5);
        alone.unwrap()[0]
    }
}

/// Speaks these packets while it hears what is said back; all that was heard.
async fn talk(client: &UdpSocket, numbers: std::ops::Range<u16>) -> HashSet<Vec<u8>> {
    let speak = async {
        for number in numbers {
            client.send(&rtp(number)).await.unwrap();
            sleep(GAP).await;
        }
        sleep(Duration::from_millis(500)).await;
    };
    let mut heard = HashSet::new();
    let mut buffer = [0; 2048];
    let hear = async {
        loop {
            let length = client.recv(&mut buffer).await.unwrap();
            heard.insert(buffer[..length].to_vec());
        }
    };
    tokio::select! {
        () = speak => {}
        () = hear => {}
    }
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_of_a_call_takes_nine_bytes_less_than_what_nobody_speaks() {
    let Some(call) = Call::new().await else { return };
    let (other, voice) = (call.carried(OTHER).await, call.carried(VOICE).await);
    println!("a datagram of the carrier: {other} bytes, with small headers {voice}");
    assert_eq!(other - voice, HEADERS - 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_packet_that_comes_out_is_one_that_went_in_however_rough_the_way_is() {
    let Some(call) = Call::new().await else { return };
    let echoing = echo(call.routed.hear(SERVER[0], VOICE));
    let client = call.routed.speak_with(SERVER[0], VOICE);
    answered(&client, &rtp(0)).await;
    call.rough.be_rough();
    let heard = talk(&client, 1..800).await;
    let sent: HashSet<Vec<u8>> = (0..800).map(rtp).collect();
    assert!(heard.is_subset(&sent), "{:?}", heard.difference(&sent).next());
    // One in eleven is lost on either way.
    assert!(heard.len() > 500, "{} of 800", heard.len());
    echoing.abort();
}

/// All that tells the other end what headers are like is lost: it asks for it again.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_lost_the_headers_asks_for_them() {
    let Some(call) = Call::new().await else { return };
    let echoing = echo(call.routed.hear(SERVER[0], VOICE));
    let client = call.routed.speak_with(SERVER[0], VOICE);
    // By the flow's stream, and with what is no speech.
    answered(&client, b"are you there?").await;
    call.rough.cut(true);
    talk(&client, 0..30).await;
    call.rough.cut(false);
    let heard = talk(&client, 30..400).await;
    let sent: HashSet<Vec<u8>> = (0..400).map(rtp).collect();
    assert!(heard.is_subset(&sent), "{:?}", heard.difference(&sent).next());
    // Nobody sends whole headers by himself before five seconds are over.
    assert!(heard.len() > 150, "{} of 370", heard.len());
    echoing.abort();
}
