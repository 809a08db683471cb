//! What comes back for what is sent: acknowledgements need capacity of the return link. Ground knows how much it will send before the
//! terminal hears of it, and may tell the network control centre (docs/capacity.md).

use std::collections::BTreeMap;

use farhop_settings::GroundSettings;
use farhop_transport::capacity::{Expected, Modem};

/// The terminals of remotes, as the centre is asked for them.
#[derive(Debug, Default)]
pub(crate) struct Centre {
    terminals: BTreeMap<String, Modem>,
    share: f64,
}

/// What will come back for one body.
#[derive(Debug, Default)]
pub(crate) struct Returning {
    expected: Expected,
    share: f64,
    /// Of a byte.
    rest: f64,
}

impl Centre {
    /// As settings say, and the tasks that speak for each terminal.
    pub(crate) fn new(settings: &GroundSettings) -> (Centre, Vec<impl Future<Output = ()> + Send + use<>>) {
        let mut centre = Centre { terminals: BTreeMap::new(), share: settings.capacity.share.fraction() };
        let mut tasks = Vec::new();
        let Some(address) = &settings.capacity.centre else { return (centre, tasks) };
        for peer in &settings.remote {
            let Some(terminal) = peer.terminal.and_then(|number| u16::try_from(number).ok()) else {
                continue;
            };
            let modem = Modem::new(settings.capacity.ahead.0, Some(terminal));
            tasks.push(modem.clone().speak_to(address.to_string()));
            centre.terminals.insert(peer.name.to_string(), modem);
        }
        (centre, tasks)
    }

    /// A body of this length begins to cross to `remote`.
    pub(crate) fn expect(&self, remote: &str, length: Option<u64>) -> Returning {
        let (Some(modem), Some(length)) = (self.terminals.get(remote), length) else {
            return Returning::default();
        };
        let expected = modem.expect((length as f64 * self.share) as u64);
        Returning { expected, share: self.share, rest: 0.0 }
    }
}

impl Returning {
    /// So much of the body crosses.
    pub(crate) fn crossed(&mut self, bytes: usize) {
        self.rest += bytes as f64 * self.share;
        let whole = self.rest.floor();
        self.rest -= whole;
        self.expected.sent(whole as u64);
    }
}
