//! One end's side of a flow of datagrams: beside the streams of the carrier while that takes them, else on the flow's own stream while
//! that is not behind. The RTP headers of speech are made small for the hop, and whole again here.

use std::time::Duration;

use bytes::Bytes;
use farhop_header_compression::{Compressor, Decompressor, Dropped};
use farhop_htotp::datagram::{Form, patience};
use farhop_htotp::flow::Record;
use farhop_htotp::frame::Class;
use farhop_transport::hop::{Hop, Sender};
use tokio::time::{Instant, timeout};

/// What was asked for is on its way for so long at least: once more would bring it twice.
const ASKED_AGAIN: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub struct Datagrams {
    number: u64,
    user: u64,
    class: Class,
    began: Instant,
    small: Compressor,
    whole: Decompressor,
    /// When whole headers were asked for.
    asked: Option<Instant>,
}

impl Datagrams {
    /// Of a flow that begins.
    pub fn new(number: u64, user: u64, class: Class) -> Datagrams {
        let (small, whole) = (Compressor::default(), Decompressor::default());
        Datagrams { number, user, class, began: Instant::now(), small, whole, asked: None }
    }

    /// Sends one to the other end; it may get lost.
    pub async fn send(&mut self, hop: &Hop, sender: &mut Sender, payload: &[u8]) {
        if self.send_beside(hop, payload) {
            return;
        }
        if let Ok(Ok(())) = timeout(patience(self.class), sender.room()).await {
            // Its end is heard of by who reads.
            let _ = sender.write(Record::Datagram(Bytes::copy_from_slice(payload)).encode()).await;
        }
    }

    fn send_beside(&mut self, hop: &Hop, payload: &[u8]) -> bool {
        let is_speech = self.class == Class::Expedited && hop.takes_small_headers();
        let small = is_speech.then(|| self.small.compress(self.began.elapsed(), payload)).flatten();
        let (form, payload) = small.as_deref().map_or((Form::Plain, payload), |small| (Form::Small, small));
        hop.send_datagram(self.number, form, self.user, self.class, payload)
    }

    /// The datagram that has come in this form, or nothing where that cannot be told: the other end is asked for whole headers then,
    /// on the flow's stream.
    pub async fn receive(&mut self, form: Form, payload: Bytes, sender: &mut Sender) -> Option<Bytes> {
        if form == Form::Plain {
            return Some(payload);
        }
        match self.whole.decompress(self.began.elapsed(), &payload) {
            Ok(datagram) => Some(datagram.into()),
            Err(Dropped::Malformed) => None,
            Err(Dropped::NoContext) => {
                if self.asked.is_none_or(|asked| asked.elapsed() >= ASKED_AGAIN) {
                    self.asked = Some(Instant::now());
                    // Its end is heard of by who reads.
                    let _ = sender.write(Record::Refresh.encode()).await;
                }
                None
            }
        }
    }

    /// The other end wants whole headers.
    pub fn refresh(&mut self) {
        self.small.refresh();
    }
}
