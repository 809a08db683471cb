//! What is looked at of a flow of datagrams besides calls: what it shows of itself, by which its class follows, and which names its
//! client is told.

use farhop_htotp::frame::Class;
use farhop_packets::Ends;
use tokio::time::Instant;

use crate::calls::Calls;
use crate::overheard::Overheard;
use crate::shown::Shown;
use crate::udp::DNS_PORT;
use crate::{Remote, class};

/// See the module.
pub(crate) struct Watched<'a> {
    remote: &'a Remote,
    ends: Ends,
    /// What it counts as.
    pub(crate) class: Class,
    /// Nothing of what calls have announced: it is speech until it pours.
    shown: Option<Shown>,
    /// Of one to a name server.
    names: Option<Overheard>,
}

impl<'a> Watched<'a> {
    /// Of a flow that begins with `first`.
    pub(crate) fn of(remote: &'a Remote, calls: &Calls, ends: Ends, first: &[u8]) -> Self {
        let flow = class::datagrams(ends, first);
        let said = of_call(calls, ends);
        let class =
            said.unwrap_or_else(|| remote.rules().of_flow(remote.now(), flow.clone(), &remote.settings()));
        let shown = said.is_none().then(|| Shown::new(flow));
        let names = (ends.to.port() == DNS_PORT).then(Overheard::default);
        let mut watched = Watched { remote, ends, class, shown, names };
        watched.said(first);
        watched
    }

    /// The client says this. Gives another class, where the flow shows that it has one.
    pub(crate) fn said(&mut self, payload: &[u8]) -> Option<Class> {
        self.names.iter_mut().for_each(|names| names.said(payload));
        self.passed(payload.len())
    }

    /// The destination says this.
    pub(crate) fn heard(&mut self, payload: &[u8]) -> Option<Class> {
        if let Some((name, answer)) = self.names.as_mut().and_then(|names| names.heard(payload)) {
            self.remote.rules().overhear(self.remote.now(), self.ends.client.ip(), &name, &answer);
        }
        self.passed(payload.len())
    }

    fn passed(&mut self, bytes: usize) -> Option<Class> {
        let (shown, now) = (self.shown.as_mut()?, self.remote.now());
        if !shown.passed(now, bytes) {
            return None;
        }
        let judged = self.remote.rules().of_flow(now, shown.flow().clone(), &self.remote.settings());
        (std::mem::replace(&mut self.class, judged) != judged).then_some(judged)
    }
}

/// The class of what a call has announced.
fn of_call(calls: &Calls, ends: Ends) -> Option<Class> {
    calls.speaks(Instant::now(), ends).then_some(Class::Expedited)
}
