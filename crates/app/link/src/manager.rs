//! The calls of one device: asked over the control socket, written down before they are answered for.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use farhop_diffserv::PlanError;
use farhop_diffserv::calls::{Admitted, Call, Calls, Gone};
use farhop_events::{Bus, Event};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::{Duration, Instant};

use crate::arguments::{NewCall, named};
use crate::config::Config;
use crate::shaping::{Shaped, plan};
use crate::state::{self, Found, StateError};
use crate::told::{CallTold, Status};

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

/// The calls of a device.
#[derive(Debug)]
pub struct Manager {
    config: Config,
    bus: Bus,
    began: Instant,
    calls: Mutex<Calls>,
    /// Media changed: whoever keeps the rules looks at [`Manager::media`].
    pub(crate) media_changed: Notify,
    /// The next lapse may be another now.
    pub(crate) leases_changed: Notify,
    /// Why the classes are not in force; `None` where they are.
    pub(crate) trouble: watch::Sender<Option<String>>,
}

impl Manager {
    /// Takes up the calls that are written down.
    ///
    /// # Errors
    /// The rates contradict each other, or the file of calls can be neither read nor set aside.
    pub fn start(config: Config, bus: Bus) -> Result<Manager, LinkError> {
        let share = plan(&config, Vec::new())?.plan.ef();
        let kept = match state::load(&config.state)? {
            Found::Calls(kept) => kept,
            Found::SetAside(path) => {
                tracing::warn!(
                    "calls that were written down cannot be read; the file is {} now",
                    path.display()
                );
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
            media_changed: Notify::new(),
            leases_changed: Notify::new(),
            trouble: not_yet,
        })
    }

    /// `NEW_VOICE_CALL`: sets a rate aside for a call, or says why not.
    ///
    /// # Errors
    /// There is no room, it is no call, or it cannot be written down.
    pub fn new_call(&self, args: Value) -> Result<Value, String> {
        let asked = NewCall::read(args)?;
        let offer = asked.offer(&self.config.calls)?;
        let mut calls = self.current();
        let before = calls.clone();
        let (now, id, rate) = (self.now(), offer.id.clone(), offer.rate);
        let codec = offer.codec.map(|(codec, _)| codec.to_string());
        let admitted = calls.admit(now, offer).map_err(|refusal| {
            let reason = refusal.to_string();
            self.bus.emit(Event::VoiceCallRefused {
                call: id.to_string(),
                rate_bps: rate.0,
                reason: reason.clone(),
            });
            reason
        })?;
        if admitted != Admitted::Again {
            if let Err(error) = state::save(&self.config.state, calls.kept()) {
                *calls = before;
                return Err(error.to_string());
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
        let word = match admitted {
            Admitted::New => "new",
            Admitted::Again => "again",
            Admitted::Changed => "changed",
        };
        let lease = self.config.calls.lease.as_secs();
        Ok(
            json!({"admitted": word, "rate_bps": rate.0, "held_bps": calls.held().0, "share_bps": calls.share().0, "lease_s": lease}),
        )
    }

    /// `VOICE_CALL_RELEASE`: gives a call's rate back.
    ///
    /// # Errors
    /// There is no such call.
    pub fn release(&self, args: Value) -> Result<Value, String> {
        let id = named(args)?;
        let mut calls = self.current();
        let call = calls.release(&id).ok_or_else(|| no_such_call(&id.to_string()))?;
        self.gone(&calls, &[call], Gone::Released);
        Ok(json!({"held_bps": calls.held().0, "share_bps": calls.share().0}))
    }

    /// Speaks for a call: its lease begins anew.
    ///
    /// # Errors
    /// There is no such call.
    pub fn renew(&self, args: Value) -> Result<Value, String> {
        let id = named(args)?;
        if !self.current().renew(self.now(), &id) {
            return Err(no_such_call(&id.to_string()));
        }
        self.leases_changed.notify_one();
        Ok(json!({"lease_s": self.config.calls.lease.as_secs()}))
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
        Status {
            interface: self.config.interface.clone(),
            link_bps: self.config.rate.0,
            shaped_bps: plan(&self.config, Vec::new()).map_or(0, |shaped| shaped.plan.shaped.0),
            in_force: trouble.is_none(),
            trouble,
            share_bps: calls.share().0,
            held_bps: calls.held().0,
            calls: calls.iter().count(),
        }
    }

    /// What the kernel is to be given now.
    pub(crate) fn shaped(&self) -> Result<Shaped, PlanError> {
        plan(&self.config, self.media())
    }

    pub(crate) fn interface(&self) -> &str {
        &self.config.interface
    }

    pub(crate) fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Where packets of calls go.
    pub(crate) fn media(&self) -> Vec<SocketAddr> {
        self.current().iter().flat_map(|call| call.offer.media.iter().copied()).collect()
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
        if let Err(error) = state::save(&self.config.state, calls.kept()) {
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

fn no_such_call(id: &str) -> String {
    format!("there is no call '{id}'; it was released, or has lapsed")
}
