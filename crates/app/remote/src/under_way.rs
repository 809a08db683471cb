//! An exchange for as long as it is under way, as the desk knows it: what it begins, and for which page it asks.

use std::sync::Arc;

use farhop_bundle::opens_page;
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
    /// Tells the desk that `exchange` begins, before anything is looked up for it.
    pub(crate) fn begin(remote: &Arc<Remote>, exchange: &Exchange) -> UnderWay {
        let Exchange { id, user, fetch, .. } = exchange;
        let (fields, now) = (&fetch.head.fields, remote.now());
        {
            let mut desk = remote.desk();
            if opens_page(&fetch.head.method, fields) {
                desk.begin_load(user, *id, &fetch.url, fields, now);
            }
            desk.asks(*id, user, &fetch.url, fields, now);
        }
        promising::tell_unwanted(remote);
        if opens_page(&fetch.head.method, fields) {
            // What the last page has used teaches what the next one needs.
            promising::tell_used(remote);
        }
        UnderWay { remote: Arc::clone(remote), exchange: *id }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.remote.desk().settled(self.exchange, self.remote.now());
    }
}
