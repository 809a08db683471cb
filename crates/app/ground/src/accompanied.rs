//! A page that the remote answers by itself, from what it holds: nothing of it crosses, but what it needs may. What the models
//! foresee is begun, and what it named when it was last read is asked about, as if it had crossed and had not changed.

use std::sync::Arc;
use std::time::Duration;

use farhop_bundle::{Noted, opens_page};
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Coding;
use farhop_htotp::head::HeldPage;
use farhop_transport::hop::Sender;
use http::{HeaderMap, StatusCode};
use tokio::time::sleep;

use crate::exchange::{Early, Exchange};
use crate::models::Foresight;
use crate::named::{Named, Shown};
use crate::owner::Known;

/// The browser has the page by now, and is about to ask for the first that it names, which crosses in any case: for so long that is
/// waited for, if it is no more than this part of a round trip. What comes of the rest saves whole ones.
const PAUSE: Duration = Duration::from_millis(20);
const PART: u32 = 8;

impl Exchange {
    /// Promises on `sender`, and asks about, what the page needs that the remote answers from `held`; ends with a word that nothing
    /// of the page itself comes.
    pub(crate) async fn accompany(self, held: HeldPage, mut sender: Sender) {
        let ground = &self.carrier.ground;
        let known = ground.owners.known(&self.owner);
        let noted = self.note_request(&known);
        self.carrier.overtaken.opens(self.owner.user, ground.now());
        let foresight = self.visit();
        // It is there, and says what it said when it was last seen.
        ground.models.answered(&self.owner, self.id, None);
        tokio::select! {
            () = sleep(PAUSE.min(self.carrier.connection.rtt() / PART)) => {}
            _ = sender.gone() => return,
        }
        if let Some((_, noted)) = &noted {
            self.go_along((held, foresight), &known, noted, &sender);
        }
        let nothing = ResponseHead { status: StatusCode::NOT_MODIFIED, fields: HeaderMap::new() };
        sender.answer(&nothing, Coding::Identity, None);
        sender.finish(None);
    }

    fn go_along(
        &self,
        (held, foresight): (HeldPage, Option<Foresight>),
        known: &Arc<Known>,
        noted: &Noted,
        sender: &Sender,
    ) {
        let opened = foresight.and_then(|foresight| self.prepare(foresight, known, noted, sender));
        let early = Early { known, noted: Some(noted), opened, informed: false };
        let is_page = opens_page(&self.request.method, &self.request.fields);
        let Some(before) = self.read_before(held).filter(|_| is_page) else { return };
        if let Some(head) = before.confirmed_by(&HeaderMap::new()) {
            self.go_over(&before, &head, (&early, noted), sender);
        }
    }

    /// What the page named when it was last read, if that was what the remote holds.
    fn read_before(&self, held: HeldPage) -> Option<Arc<Named>> {
        let opener = self.carrier.opener(self.owner.user)?;
        let url = self.request.resource()?;
        let before = self.carrier.ground.pages.recall(&opener, Shown::Window, &url)?;
        let is_it = match (held.dated, self.carrier.validators(held.entry)) {
            (Some(dated), _) => before.is_dated(dated),
            (None, Some(validators)) => before.is_told_by(&validators),
            (None, None) => false,
        };
        is_it.then_some(before)
    }
}
