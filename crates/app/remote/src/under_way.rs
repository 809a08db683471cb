//! An exchange for as long as it is under way, as the desk knows it: what it begins, and for which page it asks.

use std::sync::Arc;

use farhop_bundle::{Eagerness, opens_page};
use farhop_events::ExchangeId;

use crate::Remote;
use crate::exchange::Exchange;
use crate::promising;

/// See the module. The exchange ends when this is dropped.
pub(crate) struct UnderWay {
    remote: Arc<Remote>,
    exchange: ExchangeId,
}

impl UnderWay {
    /// Tells the desk that `exchange` begins, before anything is looked up for it. Gives how much ground is to fetch beside it.
    pub(crate) fn begin(remote: &Arc<Remote>, exchange: &Exchange) -> (UnderWay, Eagerness) {
        let Exchange { id, user, fetch, .. } = exchange;
        let (fields, now) = (&fetch.head.fields, remote.now());
        let opens = opens_page(&fetch.head.method, fields);
        let (page, led) = {
            let mut desk = remote.desk();
            let led = if opens { desk.led_to(user, &fetch.url, fields) } else { None };
            if opens {
                desk.begin_load(user, *id, &fetch.url, fields, now);
            }
            desk.asks(*id, user, &fetch.url, fields, now);
            (desk.page_of(*id, user, &fetch.url, fields), led)
        };
        promising::tell_unwanted(remote);
        if opens {
            // What the last page has used teaches what the next one needs.
            promising::tell_used(remote);
        }
        let holdouts = remote.holdouts();
        let eagerness = match opens {
            true if page == *id => {
                let as_before = led.and_then(|before| holdouts.goes_on(before, *id));
                as_before.unwrap_or_else(|| {
                    holdouts.begin(&remote.settings().evidence, user, *id, &fetch.url, now)
                })
            }
            // A further document of a page is done as its page is, so that the page is done one way.
            true => holdouts.way(page),
            false => Eagerness::All,
        };
        remote.holdouts().asks(*id, page, now);
        (UnderWay { remote: Arc::clone(remote), exchange: *id }, eagerness)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let now = self.remote.now();
        self.remote.desk().settled(self.exchange, now);
        self.remote.holdouts().settled(self.exchange, now);
        promising::tell_unwanted(&self.remote);
    }
}
