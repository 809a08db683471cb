//! What earlier visits have taught and are not sure enough of: it is promised, and not fetched before it is asked for.

use std::sync::Arc;
use std::time::Duration;

use farhop_page::Hint;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{Bundle, Job, lock};
use crate::failure;

/// How long what is only promised waits to be asked for: as long as what was sent does at the remote.
const HELD_BACK: Duration = Duration::from_secs(10);

impl Bundle {
    /// Keeps back what is only promised until the browser asks for it or the page names it, either of which releases it;
    /// takes the promise back after a while.
    pub(super) fn hold(self: &Arc<Self>, job: Job, urgency: u8, origin: String, release: Arc<Notify>) {
        let url = job.wish.unasked.url.clone();
        lock(&self.held_back).insert(url.clone(), Arc::clone(&release));
        // The page is read to its end meanwhile, or is not: its bundle does not wait for this.
        let (weak, carrier) = (Arc::downgrade(self), Arc::clone(&self.carrier));
        let (owner, known) = (self.owner.clone(), Arc::clone(&self.known));
        let (page, allowance) = (self.page, self.allowance.clone());
        self.carrier.spawn(async move {
            let Job { wish, mut unwanted, overtaken } = job;
            let promise = wish.promise;
            let is_wanted = tokio::select! {
                biased;
                _ = &mut unwanted => false,
                () = release.notified() => true,
                () = sleep(HELD_BACK) => {
                    if let Some(sender) = carrier.hop.push(promise) {
                        sender.fail(failure::withdrawn(&"nobody has asked for it"));
                    }
                    false
                }
            };
            let bundle = weak.upgrade();
            if let Some(bundle) = &bundle {
                lock(&bundle.held_back).remove(&url);
            }
            if !is_wanted {
                let waited = wish.reading.lost(&wish.hint);
                if let Some(bundle) = &bundle {
                    bundle.keep(&wish.reading, waited);
                }
                return carrier.settled(promise);
            }
            let again =
                || Bundle::new(&carrier, &owner, &known, page, wish.reading.url().as_str(), allowance, false);
            let bundle = bundle.unwrap_or_else(again);
            lock(&bundle.order).add(urgency, origin, Job { wish, unwanted, overtaken });
            bundle.begin();
        });
    }

    /// The page names what may have been promised only.
    pub(super) fn named(&self, hint: &Hint) {
        if let Some(release) = lock(&self.held_back).get(&hint.url) {
            release.notify_one();
        }
    }
}
