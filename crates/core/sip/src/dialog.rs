//! A call on its way from offer to BYE: whose streams are agreed, whose are offered.

use std::net::SocketAddr;
use std::time::Duration;

use crate::exchange::{Agreed, Exchange, Request};
use crate::message::{Message, Method};
use crate::observer::Change;
use crate::sdp::Session;
use crate::speech::{MOST_MEDIA, Speech, Stream};

/// RFC 3261 §16.6 point 11: timer C, which ends what rings, is more than three minutes, and begins anew with each provisional response
/// but 100 (§16.7 point 2); phones that ring for longer send one each minute (§13.3.1.1).
const RINGING: Duration = Duration::from_secs(181);
/// §9.1: how long a cancelled INVITE may still be answered, 64 × T1.
const CANCELLED: Duration = Duration::from_secs(32);

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Until then at the longest.
    Rings(Duration),
    /// It was cancelled or refused; that may not have been all (another branch of it answers, or the answer crosses the
    /// CANCEL), and until then an answer begins it once more.
    Fails(Duration),
    Talks,
}

#[derive(Debug, Clone)]
pub(crate) struct Dialog {
    stage: Stage,
    /// Its newest INVITE. Responses to those before, which a long path has sent again, say nothing any more.
    invite: Option<Request>,
    /// Who answered first, by tag: others that answer are hung up by themselves.
    answerer: Option<String>,
    /// What is in force: RFC 3261 §14.1, it stays where a change of it fails. `None` before there is an answer, and where an
    /// earlier observer had heard it.
    agreed: Option<Exchange>,
    open: Option<Open>,
    told: Told,
}

/// An offer that is not settled.
#[derive(Debug, Clone)]
struct Open {
    exchange: Exchange,
    /// It was refused or cancelled; what answers it all the same brings it back.
    is_withdrawn: bool,
    /// By then its end has taken another way.
    until: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    Nothing,
    /// An earlier observer has told what nobody here knows.
    Earlier,
    This(Speech),
}

impl Dialog {
    /// One that an INVITE is about to begin.
    pub(crate) fn new() -> Dialog {
        Dialog {
            stage: Stage::Rings(Duration::ZERO),
            invite: None,
            answerer: None,
            agreed: None,
            open: None,
            told: Told::Nothing,
        }
    }

    /// One that talks, as an earlier observer has told.
    pub(crate) fn taken_up() -> Dialog {
        Dialog { stage: Stage::Talks, told: Told::Earlier, ..Dialog::new() }
    }

    /// INVITE.
    pub(crate) fn invite(&mut self, now: Duration, message: &Message<'_>, sdp: Option<Session>) {
        match &self.invite {
            Some(newest) if newest.is_of(message) => self.repeat(message, sdp),
            Some(newest) if newest.is_after(message) => {}
            _ => {
                self.invite = Some(Request::of(message));
                // RFC 3261 §22.2: one that was refused begins anew with the next, which may say who calls.
                if self.stage != Stage::Talks {
                    (self.stage, self.agreed) = (Stage::Rings(now.saturating_add(RINGING)), None);
                }
                self.begin(now, message, sdp);
            }
        }
    }

    /// UPDATE (RFC 3311) and PRACK (RFC 3262), which bear an offer or nothing; PRACK an answer, too.
    pub(crate) fn offer(&mut self, now: Duration, message: &Message<'_>, sdp: Option<Session>) {
        let Some(sdp) = sdp else { return };
        let open = self.open.as_mut().filter(|open| !open.is_withdrawn);
        if self.agreed.as_ref().is_some_and(|it| it.is_of(message)) {
            self.repeat(message, Some(sdp));
        } else if let Some(open) = open {
            let is_again = open.exchange.is_of(message);
            if is_again || message.method == Method::Prack && open.exchange.waits_for_requester() {
                open.exchange.request(sdp);
            } else if open.exchange.is_answered() {
                self.settle();
                self.begin(now, message, Some(sdp));
            }
            // RFC 3311 §5.1: else it will be refused.
        } else {
            self.begin(now, message, Some(sdp));
        }
    }

    /// ACK, which has the answer to an offer in the response.
    pub(crate) fn acknowledge(&mut self, message: &Message<'_>, sdp: Option<Session>) {
        let Some(sdp) = sdp else { return };
        self.repeat(message, Some(sdp));
        if self.stage == Stage::Talks && self.open.as_ref().is_some_and(|open| open.exchange.is_of(message)) {
            self.settle();
        }
    }

    /// A response before the last.
    pub(crate) fn announce(&mut self, now: Duration, message: &Message<'_>, sdp: Option<Session>) {
        let until = now.saturating_add(RINGING);
        if matches!(self.stage, Stage::Rings(_)) && self.is_newest_invite(message) {
            self.stage = Stage::Rings(until);
        }
        if let Some(open) = self.open.as_mut().filter(|it| !it.is_withdrawn && it.exchange.is_of(message)) {
            open.until = until;
        }
        let may_change = self.stage != Stage::Talks;
        let open = self.open.as_mut().map(|open| &mut open.exchange);
        let agreed = self.agreed.as_mut().filter(|_| may_change);
        if let Some(exchange) = open.into_iter().chain(agreed).find(|it| it.is_of(message)) {
            exchange.respond(message, sdp);
        }
    }

    /// A response of 2xx.
    pub(crate) fn accept(&mut self, message: &Message<'_>, sdp: Option<Session>) {
        let answers = message.method == Method::Invite && self.stage != Stage::Talks;
        if answers {
            self.stage = Stage::Talks;
            self.answerer = Some(message.to.to_owned()).filter(|tag| !tag.is_empty());
        }
        let is_open = self.open.as_ref().is_some_and(|open| open.exchange.is_of(message));
        let is_first = self.agreed.is_none();
        // Also where an INVITE is answered that is not the newest: its offer will have been the same.
        if let Some(open) = self.open.as_mut().filter(|_| is_open || answers && is_first) {
            open.exchange.respond(message, sdp);
            open.is_withdrawn = false;
            if is_first || !open.exchange.waits_for_requester() {
                self.settle();
            }
        } else if let Some(agreed) = self.agreed.as_mut().filter(|_| answers) {
            // Agreed while it rang.
            agreed.respond(message, sdp);
        }
    }

    /// A response of 3xx to 6xx.
    pub(crate) fn refuse(&mut self, message: &Message<'_>) {
        if let Stage::Rings(until) = self.stage
            && self.is_newest_invite(message)
        {
            self.stage = Stage::Fails(until);
        } else {
            self.withdraw(message, Duration::MAX);
        }
    }

    /// CANCEL.
    pub(crate) fn cancel(&mut self, now: Duration, message: &Message<'_>) {
        let by = now.saturating_add(CANCELLED);
        match self.stage {
            Stage::Talks => self.withdraw(message, by),
            Stage::Rings(until) | Stage::Fails(until)
                if self.invite.as_ref().is_some_and(|it| it.is_of(message)) =>
            {
                self.stage = Stage::Fails(until.min(by));
            }
            Stage::Rings(_) | Stage::Fails(_) => {}
        }
    }

    /// Whether this BYE ends the call, and not another branch of it that was answered, too (RFC 3261 §13.2.2.4).
    pub(crate) fn is_ended_by(&self, message: &Message<'_>) -> bool {
        let is_other = |tag: &String| !message.to.is_empty() && *tag != message.from && *tag != message.to;
        !self.answerer.as_ref().is_some_and(is_other)
    }

    /// When it is over, where it has failed already.
    pub(crate) fn fails_until(&self) -> Option<Duration> {
        match self.stage {
            Stage::Fails(until) => Some(until),
            Stage::Rings(_) | Stage::Talks => None,
        }
    }

    /// Whether it is over at this time since nobody has answered.
    pub(crate) fn has_rung_out(&self, now: Duration) -> bool {
        match self.stage {
            Stage::Rings(until) | Stage::Fails(until) => until <= now,
            Stage::Talks => false,
        }
    }

    /// Whether it had an offer until now that nobody has answered.
    pub(crate) fn forget_open(&mut self, now: Duration) -> bool {
        let is_over = self.stage == Stage::Talks && self.open.as_ref().is_some_and(|open| open.until <= now);
        if is_over {
            self.open = None;
        }
        is_over
    }

    /// Whether it talks, and nothing is to be told of it.
    pub(crate) fn is_silent(&self) -> bool {
        self.stage == Stage::Talks && self.told == Told::Nothing
    }

    /// Whether it speaks with hosts by name.
    pub(crate) fn is_unplaced(&self) -> bool {
        self.agreed.as_ref().is_some_and(|it| !it.streams().is_empty())
    }

    /// Its end, where anything was told of it.
    pub(crate) fn end(&mut self, call: &str) -> Option<Change> {
        let told = std::mem::replace(&mut self.told, Told::Nothing);
        (told != Told::Nothing).then(|| Change::Over(call.to_owned()))
    }

    /// What is to be told of it now, where that is something else than before.
    pub(crate) fn tell(&mut self, call: &str) -> Option<Change> {
        if self.fails_until().is_some() {
            return self.end(call);
        }
        let of = |exchange: Option<&Exchange>| placed(exchange.map(Exchange::streams).unwrap_or_default());
        let open = self.open.as_ref().filter(|open| !open.is_withdrawn);
        let (agreed, offered) = (of(self.agreed.as_ref()), of(open.map(|open| &open.exchange)));
        // What it speaks nobody here knows; an offer could not be told beside that.
        if self.told == Told::Earlier && agreed.is_empty() {
            return None;
        }
        let media = addresses(agreed.iter().chain(&offered));
        // Where all rests it keeps what it has: it may go on at any moment.
        if media.is_empty() {
            return None;
        }
        let streams = |placed: &[Agreed]| placed.iter().map(|it| it.stream).collect::<Vec<Stream>>();
        let (agreed_streams, mut offered_streams) = (streams(&agreed), streams(&offered));
        // RFC 4028: what is agreed is offered again to show that it goes on.
        if agreed_streams == offered_streams && media == addresses(&agreed) {
            offered_streams.clear();
        }
        let speech =
            Speech { call: call.to_owned(), agreed: agreed_streams, offered: offered_streams, media };
        let told = Told::This(speech.clone());
        let is_new = self.told != told;
        self.told = told;
        is_new.then_some(Change::Speaks(speech))
    }

    fn is_newest_invite(&self, message: &Message<'_>) -> bool {
        message.method == Method::Invite && self.invite.as_ref().is_some_and(|it| it.is_of(message))
    }

    fn begin(&mut self, now: Duration, message: &Message<'_>, sdp: Option<Session>) {
        let (exchange, until) = (Exchange::begin(message, sdp), now.saturating_add(RINGING));
        self.open = Some(Open { exchange, is_withdrawn: false, until });
    }

    /// What is said again, or besides, by whoever made a request that is known.
    fn repeat(&mut self, message: &Message<'_>, sdp: Option<Session>) {
        let open = self.open.as_mut().map(|open| &mut open.exchange);
        let exchange = open.into_iter().chain(&mut self.agreed).find(|it| it.is_of(message));
        if let (Some(exchange), Some(sdp)) = (exchange, sdp) {
            exchange.request(sdp);
        }
    }

    fn withdraw(&mut self, message: &Message<'_>, by: Duration) {
        if let Some(open) = self.open.as_mut().filter(|open| open.exchange.is_of(message)) {
            (open.is_withdrawn, open.until) = (true, open.until.min(by));
        }
    }

    /// What was offered is in force. A call that is put on hold keeps what it spoke.
    fn settle(&mut self) {
        if let Some(open) = self.open.take()
            && !open.exchange.streams().is_empty()
        {
            self.agreed = Some(open.exchange);
        }
    }
}

/// Those that go to an address that is known.
fn placed(streams: Vec<Agreed>) -> Vec<Agreed> {
    streams.into_iter().filter(|it| !it.media.is_empty()).collect()
}

/// Where they go, each address once.
fn addresses<'a>(streams: impl IntoIterator<Item = &'a Agreed>) -> Vec<SocketAddr> {
    let mut media: Vec<SocketAddr> = Vec::new();
    for address in streams.into_iter().flat_map(|it| &it.media) {
        if media.len() < MOST_MEDIA && !media.contains(address) {
            media.push(*address);
        }
    }
    media
}
