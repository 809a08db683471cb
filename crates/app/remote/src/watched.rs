//! What is looked at of a flow of datagrams besides calls: what it shows of itself, by which its class follows, and which names its
//! client is told.

use std::time::Duration;

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
    calls: &'a Calls,
    ends: Ends,
    /// What it counts as.
    pub(crate) class: Class,
    /// Nothing of what calls have announced: it is speech until it pours.
    shown: Option<Shown>,
    /// How often the word on calls had changed when the flow was looked at.
    words: u64,
    /// Of one to a name server.
    names: Option<Overheard>,
}

impl<'a> Watched<'a> {
    /// Of a flow that begins with `first`.
    pub(crate) fn of(remote: &'a Remote, calls: &'a Calls, ends: Ends, first: &[u8]) -> Self {
        let (now, words, said) = (remote.now(), calls.words(), of_call(calls, ends));
        let mut shown = said.is_none().then(|| Shown::new(class::datagrams(ends, first)));
        if let Some(shown) = &mut shown {
            shown.said(now, first);
        }
        let judged =
            shown.as_ref().map(|it| remote.rules().of_flow(now, it.flow().clone(), &remote.settings()));
        let class = said.or(judged).unwrap_or(Class::Web);
        let mut names = (ends.to.port() == DNS_PORT).then(Overheard::default);
        names.iter_mut().for_each(|names| names.said(first));
        Watched { remote, calls, ends, class, shown, words, names }
    }

    /// The client says this. Gives another class, where the flow shows that it has one.
    pub(crate) fn said(&mut self, payload: &[u8]) -> Option<Class> {
        self.names.iter_mut().for_each(|names| names.said(payload));
        self.shows(|shown, now| shown.said(now, payload))
    }

    /// The destination says this.
    pub(crate) fn heard(&mut self, payload: &[u8]) -> Option<Class> {
        if let Some((name, answer)) = self.names.as_mut().and_then(|names| names.heard(payload)) {
            self.remote.rules().overhear(self.remote.now(), self.ends.client.ip(), &name, &answer);
        }
        self.shows(|shown, now| shown.passed(now, payload.len()))
    }

    /// What the flow shows by what passes: whether that may change what it is for.
    fn shows(&mut self, passes: impl FnOnce(&mut Shown, Duration) -> bool) -> Option<Class> {
        let Some(shown) = &mut self.shown else { return self.word() };
        let now = self.remote.now();
        if !passes(shown, now) {
            return None;
        }
        let judged = self.remote.rules().of_flow(now, shown.flow().clone(), &self.remote.settings());
        (std::mem::replace(&mut self.class, judged) != judged).then_some(judged)
    }

    /// Another class of speech, where the link manager's word has changed.
    fn word(&mut self) -> Option<Class> {
        let words = self.calls.words();
        if std::mem::replace(&mut self.words, words) == words {
            return None;
        }
        // A call that is over may have some packets on the way.
        let class = of_call(self.calls, self.ends).unwrap_or(self.class);
        (std::mem::replace(&mut self.class, class) != class).then_some(class)
    }
}

/// The class of what a call has announced: voice, unless the link manager has no room for it.
fn of_call(calls: &Calls, ends: Ends) -> Option<Class> {
    if calls.speaks(Instant::now(), ends) {
        return Some(Class::Expedited);
    }
    calls.is_refused(ends).then_some(Class::Web)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speech_for_which_there_is_no_room_goes_as_pages_do_until_there_is() {
        let calls = Calls::default();
        let ends = Ends { client: "10.0.0.5:16384".parse().unwrap(), to: "192.0.2.9:20000".parse().unwrap() };
        assert_eq!(of_call(&calls, ends), None);
        let sdp = "v=0\r\nc=IN IP4 10.0.0.5\r\nm=audio 16384 RTP/AVP 18\r\n";
        let invite = format!(
            "INVITE sip:b@example.org SIP/2.0\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\nContent-Type: application/sdp\r\n\
             Content-Length: {}\r\n\r\n{sdp}",
            sdp.len()
        );
        calls.hear(Instant::now(), invite.as_bytes());
        let begun = calls.words();
        assert_eq!(of_call(&calls, ends), Some(Class::Expedited));
        calls.settle("a", true);
        assert_eq!(of_call(&calls, ends), Some(Class::Web));
        let refused = calls.words();
        assert_ne!(refused, begun, "flows look again");
        calls.settle("a", true);
        assert_eq!(calls.words(), refused, "and only then");
        calls.settle("a", false);
        assert_eq!(of_call(&calls, ends), Some(Class::Expedited));
    }
}
