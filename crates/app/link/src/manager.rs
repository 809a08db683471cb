//! The calls of one device: asked over the control socket, written down before they are answered for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use farhop_diffserv::calls::{Admitted, Call, CallId, Calls, Gone, Offer, Refusal};
use farhop_diffserv::{Losses, PlanError, Queue};
use farhop_events::{Bus, Event};
use farhop_files::Found;
use farhop_netdev::{Applied, Metered, Shaping};
use farhop_units::BitRate;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::{Duration, Instant};

use crate::arguments::{Granted, NewCall, named};
use crate::config::{CallTerms, Config, FollowTerms, GrantTerms, Hour, RateSource, SipTerms};
use crate::hours::hours_at;
use crate::shaping::{Shaped, media, plan, plan_at};
use crate::state::{State, StateError};
use crate::told::{CallTold, LossTold, Status};

/// Why the manager cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The rates contradict each other.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Calls cannot be written down.
    #[error(transparent)]
    State(#[from] StateError),
    /// The kernel refused.
    #[error(transparent)]
    Device(#[from] farhop_netdev::Error),
}

/// Why a call holds no rate, or not the one that it asks for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAdmitted {
    /// There is no room for it, or it is none.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It cannot be written down.
    #[error(transparent)]
    Unwritten(#[from] StateError),
}

/// What the kernel was given, and what it has made of it.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) shaping: Shaping,
    pub(crate) applied: Applied,
}

/// The calls of a device.
#[derive(Debug)]
pub struct Manager {
    config: Config,
    bus: Bus,
    began: Instant,
    calls: Mutex<Calls>,
    state: State,
    /// What the kernel was given last; whoever gives it something else waits for this.
    pub(crate) given: tokio::sync::Mutex<Option<Given>>,
    /// Media changed: whoever keeps the rules looks at [`Manager::media`].
    pub(crate) media_changed: Notify,
    /// The next lapse may be another now.
    pub(crate) leases_changed: Notify,
    /// Why the classes are not in force; `None` where they are.
    pub(crate) trouble: watch::Sender<Option<String>>,
    /// The time of the day: what classes have goes by it.
    time: watch::Sender<Duration>,
    /// What is sent at now, where the link's rate is followed and that is less than at best.
    followed: watch::Sender<Option<(BitRate, RateSource)>>,
    /// What the network control centre grants, as it was told last, and until when that counts.
    pub(crate) granted: watch::Sender<Option<(BitRate, Instant)>>,
    /// Why the link's rate cannot be followed.
    follow_trouble: watch::Sender<Option<String>>,
    /// What of which class is dropped before it waits.
    losing: watch::Sender<Vec<(Queue, Losses)>>,
    /// Why drop precedences are not acted on.
    early_trouble: watch::Sender<Option<String>>,
    /// Why calls that announce themselves are not heard; `None` where they are, or where nobody wants that.
    sip_trouble: watch::Sender<Option<String>>,
}

impl Manager {
    /// Takes up the calls that are written down.
    ///
    /// # Errors
    /// The rates contradict each other, or the file of calls can be neither read nor set aside.
    pub fn start(config: Config, bus: Bus) -> Result<Manager, LinkError> {
        let share = plan(&config, Vec::new())?.plan.ef();
        let (state, found) = State::open(&config.state, &config.interface)?;
        let kept = match found {
            Found::Read(kept) => kept,
            Found::Nothing => Vec::new(),
            Found::SetAside { as_, why } => {
                let file = config.state.display();
                tracing::warn!("{file}: {why}; set aside as {}, calls are forgotten", as_.display());
                Vec::new()
            }
        };
        let (calls, lost) = Calls::take_up(share, config.calls.lease, Duration::ZERO, &kept);
        if lost > 0 {
            tracing::warn!("{lost} of the calls that were written down are none");
        }
        let not_yet = watch::Sender::new(Some("not applied yet".to_owned()));
        Ok(Manager {
            config,
            bus,
            began: Instant::now(),
            calls: Mutex::new(calls),
            state,
            given: tokio::sync::Mutex::new(None),
            media_changed: Notify::new(),
            leases_changed: Notify::new(),
            trouble: not_yet,
            time: watch::Sender::new(Duration::ZERO),
            followed: watch::Sender::new(None),
            granted: watch::Sender::new(None),
            follow_trouble: watch::Sender::new(None),
            losing: watch::Sender::new(Vec::new()),
            early_trouble: watch::Sender::new(None),
            sip_trouble: watch::Sender::new(None),
        })
    }

    /// `NEW_VOICE_CALL`: sets a rate aside for a call, or says why not.
    ///
    /// # Errors
    /// There is no room, it is no call, or it cannot be written down.
    pub fn new_call(&self, args: Value) -> Result<Value, String> {
        let offer = self.offered(args)?;
        let rate = offer.rate;
        let admitted = self.admit(offer).map_err(|error| error.to_string())?;
        Ok(self.admission(admitted, rate))
    }

    /// What the arguments of `NEW_VOICE_CALL` ask for.
    pub(crate) fn offered(&self, args: Value) -> Result<Offer, String> {
        NewCall::read(args)?.offer(&self.config.calls)
    }

    /// How a call was admitted, as callers are told.
    pub(crate) fn admission(&self, admitted: Admitted, rate: BitRate) -> Value {
        let word = match admitted {
            Admitted::New => "new",
            Admitted::Again => "again",
            Admitted::Changed => "changed",
        };
        let (calls, lease) = (self.current(), self.config.calls.lease.as_secs());
        json!({"admitted": word, "rate_bps": rate.0, "held_bps": calls.held().0, "share_bps": calls.share().0, "lease_s": lease})
    }

    /// The same for whoever has read its words already.
    pub(crate) fn admit(&self, offer: Offer) -> Result<Admitted, NotAdmitted> {
        let mut calls = self.current();
        let before = calls.clone();
        let (now, id, rate) = (self.now(), offer.id.clone(), offer.rate);
        let codec = offer.codec.map(|(codec, _)| codec.to_string());
        let admitted = calls.admit(now, offer).inspect_err(|refusal| {
            // What is no call nobody has refused.
            if refusal.is_for_want_of_room() {
                let (call, reason) = (id.to_string(), refusal.to_string());
                self.bus.emit(Event::VoiceCallRefused { call, rate_bps: rate.0, reason });
            }
        })?;
        if admitted != Admitted::Again {
            if let Err(error) = self.state.save(calls.kept()) {
                *calls = before;
                return Err(error.into());
            }
            self.media_changed.notify_one();
        }
        self.leases_changed.notify_one();
        if admitted == Admitted::New {
            self.bus.emit(Event::NewVoiceCall {
                call: id.to_string(),
                codec,
                rate_bps: rate.0,
                held_bps: calls.held().0,
                share_bps: calls.share().0,
            });
        }
        Ok(admitted)
    }

    /// `VOICE_CALL_RELEASE`: gives a call's rate back.
    ///
    /// # Errors
    /// There is no such call.
    pub fn release(&self, args: Value) -> Result<Value, String> {
        let id = named(args)?;
        if !self.give_back(&id) {
            return Err(no_such_call(&id.to_string()));
        }
        let calls = self.current();
        Ok(json!({"held_bps": calls.held().0, "share_bps": calls.share().0}))
    }

    /// Speaks for a call: its lease begins anew.
    ///
    /// # Errors
    /// There is no such call.
    pub fn renew(&self, args: Value) -> Result<Value, String> {
        let id = named(args)?;
        if !self.speak_for(&id) {
            return Err(no_such_call(&id.to_string()));
        }
        Ok(json!({"lease_s": self.config.calls.lease.as_secs()}))
    }

    /// Gives a call's rate back; whether it is there.
    pub(crate) fn give_back(&self, id: &CallId) -> bool {
        let mut calls = self.current();
        let released = calls.release(id);
        if let Some(call) = &released {
            self.gone(&calls, std::slice::from_ref(call), Gone::Released);
        }
        released.is_some()
    }

    /// Begins a call's lease anew; whether it is there.
    pub(crate) fn speak_for(&self, id: &CallId) -> bool {
        let is_there = self.current().renew(self.now(), id);
        if is_there {
            self.leases_changed.notify_one();
        }
        is_there
    }

    /// Whether a call of this name holds a rate.
    pub(crate) fn holds(&self, id: &CallId) -> bool {
        self.current().iter().any(|call| call.offer.id == *id)
    }

    /// Whether this call would be admitted now; nothing changes.
    pub(crate) fn has_room(&self, offer: &Offer) -> bool {
        self.current().admissible(offer).is_ok()
    }

    /// What the calls that hold a rate had been offered with.
    pub(crate) fn offers(&self) -> Vec<Offer> {
        self.current().iter().map(|call| call.offer.clone()).collect()
    }

    pub(crate) fn terms(&self) -> &CallTerms {
        &self.config.calls
    }

    pub(crate) fn sip_terms(&self) -> Option<&SipTerms> {
        self.config.sip.as_ref()
    }

    /// Says once why calls that announce themselves are not heard, for as long as it is the same.
    pub(crate) fn set_sip_trouble(&self, trouble: Option<String>) {
        if let Some(reason) = news(&self.sip_trouble, trouble) {
            tracing::warn!("calls that announce themselves by SIP are not heard: {reason}");
        }
    }

    /// The calls, by name.
    pub fn calls(&self) -> Vec<CallTold> {
        let now = self.now();
        self.current().iter().map(|call| CallTold::of(call, now)).collect()
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        let calls = self.current();
        let trouble = self.trouble.borrow().clone();
        let (followed, source) = self.followed();
        let shaped = plan_at(&self.config, &self.hour(), followed, Vec::new());
        let sip = self.config.sip.is_some().then(|| self.sip_trouble.borrow().clone().unwrap_or_default());
        Status {
            interface: self.config.interface.clone(),
            link_bps: self.config.rate.0,
            shaped_bps: shaped.map_or(0, |shaped| shaped.plan.shaped.0),
            source: source.to_string(),
            in_force: trouble.is_none(),
            trouble,
            share_bps: calls.share().0,
            held_bps: calls.held().0,
            calls: calls.iter().count(),
            sip,
            sip_ignored: self.bus.counters().sip_ignored(),
            sip_unplaced: self.bus.counters().sip_unplaced(),
            follow: (self.config.follow.is_some() || self.config.grants.modem.is_some())
                .then(|| self.follow_trouble.borrow().clone().unwrap_or_default()),
            hours: hours_at(&self.config, *self.time.borrow(), followed),
            losing: self.losing.borrow().iter().map(LossTold::of).collect(),
            early: self.early_trouble.borrow().clone(),
        }
    }

    /// What classes have at this hour.
    fn hour(&self) -> Hour {
        self.config.at(*self.time.borrow())
    }

    /// What is sent at now, where that is followed, and who says what is sent at.
    fn followed(&self) -> (Option<BitRate>, RateSource) {
        match self.followed.borrow().clone() {
            Some((rate, source)) => (Some(rate), source),
            None => (None, self.config.source()),
        }
    }

    /// What the kernel is to be given now.
    pub(crate) fn shaped(&self) -> Result<Shaped, PlanError> {
        let (followed, _) = self.followed();
        plan_at(&self.config, &self.hour(), followed, self.media())
    }

    /// It is this time of the day; whether classes have something else than before.
    pub(crate) fn set_time(&self, time: Duration) -> bool {
        let before = self.hour();
        self.time.send_replace(time);
        self.hour() != before
    }

    pub(crate) fn follow_terms(&self) -> Option<FollowTerms> {
        self.config.follow
    }

    pub(crate) fn grant_terms(&self) -> &GrantTerms {
        &self.config.grants
    }

    /// `CAPACITY_GRANTED`: the network control centre grants this rate, says whoever knows.
    ///
    /// # Errors
    /// It is no rate, or the link's is measured.
    pub fn capacity_granted(&self, args: Value) -> Result<Value, String> {
        if self.config.follow.is_some() {
            return Err(
                "the rate of this link is measured ([follow]); leave that out to have grants followed".into(),
            );
        }
        let (rate, lasts) = Granted::read(args)?.terms()?;
        self.grant(rate, lasts);
        Ok(json!({"sent_bps": self.sent_of(rate).0, "lasts_s": lasts.as_secs()}))
    }

    /// Is granted this rate from now on, for so long.
    pub(crate) fn grant(&self, rate: BitRate, lasts: Duration) {
        self.granted.send_replace(Some((rate, Instant::now() + lasts)));
    }

    /// What is sent at of a rate that is granted: the margin less, never more than the link has at best, and never too little to ask for
    /// more with.
    pub(crate) fn sent_of(&self, granted: BitRate) -> BitRate {
        let of = |rate: BitRate, hundredths: u32| {
            let bits = u128::from(rate.0) * u128::from(hundredths) / 100;
            BitRate(u64::try_from(bits).unwrap_or(rate.0))
        };
        let less_margin = 100 - self.config.margin.min(100);
        let most = of(self.config.rate, less_margin);
        of(granted, less_margin).clamp(of(most, self.config.grants.least.min(100)), most)
    }

    /// The rate that is sent at from now on and who says so, or that of the settings again; what calls may hold changes with it. Those that
    /// are there go on.
    ///
    /// # Errors
    /// There is no plan for it.
    pub(crate) fn follow(&self, followed: Option<(BitRate, RateSource)>) -> Result<Shaped, PlanError> {
        let rate = followed.as_ref().map(|(rate, _)| *rate);
        let shaped = plan_at(&self.config, &self.hour(), rate, self.media())?;
        self.followed.send_replace(followed);
        self.current().resize(shaped.plan.ef());
        self.bus.emit(Event::LinkRate {
            interface: self.config.interface.clone(),
            shaped_bps: shaped.plan.shaped.0,
            source: self.followed().1.to_string(),
        });
        Ok(shaped)
    }

    /// Says once why the link's rate is not followed, for as long as it is the same.
    pub(crate) fn set_follow_trouble(&self, trouble: Option<String>) {
        if let Some(reason) = news(&self.follow_trouble, trouble) {
            tracing::warn!("the rate of the link is not followed: {reason}");
        }
    }

    /// What of which class is dropped before it waits, from now on.
    pub(crate) fn set_losing(&self, losing: Vec<(Queue, Losses)>) {
        self.losing.send_replace(losing);
    }

    /// Says once why drop precedences are not acted on, for as long as it is the same.
    pub(crate) fn set_early_trouble(&self, trouble: Option<String>) {
        if let Some(reason) = news(&self.early_trouble, trouble) {
            tracing::warn!("drop precedences are kept and not acted on: {reason}");
        }
    }

    pub(crate) fn interface(&self) -> &str {
        &self.config.interface
    }

    pub(crate) fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Where packets of calls go, and how many of them go first.
    pub(crate) fn media(&self) -> Vec<Metered> {
        media(self.current().iter(), &self.config.calls)
    }

    /// Takes out the calls that nobody has spoken for, and says when the next one would lapse.
    pub(crate) fn lapse(&self) -> Option<Instant> {
        self.current().next_expiry().map(|until| self.began + until)
    }

    /// The calls as they are at this moment: those that have lapsed are gone.
    fn current(&self) -> MutexGuard<'_, Calls> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let lapsed = calls.expire(self.now());
        if !lapsed.is_empty() {
            self.gone(&calls, &lapsed, Gone::Lapsed);
        }
        calls
    }

    fn gone(&self, calls: &Calls, gone: &[Call], how: Gone) {
        // Where it fails, a manager that is killed now would take up a call that is over, until it lapses.
        if let Err(error) = self.state.save(calls.kept()) {
            tracing::warn!("{error}");
        }
        for call in gone {
            self.bus.emit(Event::VoiceCallRelease {
                call: call.offer.id.to_string(),
                rate_bps: call.offer.rate.0,
                lapsed: how == Gone::Lapsed,
                held_bps: calls.held().0,
                share_bps: calls.share().0,
            });
        }
        self.media_changed.notify_one();
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

/// A trouble that is another one than before.
fn news(last: &watch::Sender<Option<String>>, trouble: Option<String>) -> Option<String> {
    let is_new = last.send_if_modified(|last| {
        let is_new = *last != trouble;
        last.clone_from(&trouble);
        is_new
    });
    trouble.filter(|_| is_new)
}

fn no_such_call(id: &str) -> String {
    format!("there is no call '{id}'; it was released, or has lapsed")
}
