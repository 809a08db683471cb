//! The remote's classifier by itself, as whoever measures it is shown: what a flow counts as when it begins, and from then on. No I/O.

use std::net::SocketAddr;
use std::time::Duration;

use farhop_diffserv::classify::{Flow, Protocol};
use farhop_htotp::frame::Class;
use farhop_packets::Ends;
use farhop_settings::RemoteSettings;

use crate::class::{self, Rules};
use crate::shown::Shown;

/// The rules of these settings.
pub struct Classifier {
    rules: Rules,
    settings: RemoteSettings,
}

/// A flow that passes.
pub struct Observed<'a> {
    classifier: &'a Classifier,
    shown: Shown,
    class: Class,
}

/// The flow with what its client's first words show of it: pieces of a stream, or datagrams, with the hello of TLS or of QUIC in them.
pub fn hear(mut flow: Flow, words: &[Vec<u8>]) -> Flow {
    if flow.protocol == Protocol::Udp {
        flow.first_bytes = words.first().cloned().unwrap_or_default();
    }
    let mut shown = Shown::new(flow);
    for word in words {
        shown.said(Duration::ZERO, word);
    }
    shown.flow().clone()
}

impl Classifier {
    /// What a remote with these settings goes by.
    pub fn new(settings: RemoteSettings) -> Classifier {
        Classifier { rules: Rules::new(&settings), settings }
    }

    /// A flow begins that was caught on its way, of datagrams with `first`. Nothing is known of its destination but the address.
    pub fn begins(
        &self,
        now: Duration,
        protocol: Protocol,
        (client, to): (SocketAddr, SocketAddr),
        first: &[u8],
    ) -> Observed<'_> {
        let flow = match protocol {
            Protocol::Tcp => class::connection(client.ip(), &to.ip().to_string(), to.port()),
            Protocol::Udp => class::datagrams(Ends { client, to }, first),
        };
        let mut observed = Observed { classifier: self, shown: Shown::new(flow), class: Class::Web };
        observed.judge(now);
        observed
    }
}

impl Observed<'_> {
    /// What it counts as by now.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Its client says this.
    pub fn said(&mut self, now: Duration, bytes: &[u8]) {
        if self.shown.said(now, bytes) {
            self.judge(now);
        }
    }

    /// So many bytes pass in the other direction, or unread.
    pub fn passed(&mut self, now: Duration, bytes: usize) {
        if self.shown.passed(now, bytes) {
            self.judge(now);
        }
    }

    fn judge(&mut self, now: Duration) {
        let Classifier { rules, settings } = self.classifier;
        let flow: Flow = self.shown.flow().clone();
        self.class = match flow.protocol {
            Protocol::Tcp => {
                let listed = class::listed(flow.to.port(), &settings.transparent);
                rules.of_connection(now, flow, listed)
            }
            Protocol::Udp => rules.of_flow(now, flow, settings),
        };
    }
}
