//! Which calls there is room for. A call holds its rate from its admission until it is released, or until nobody has
//! spoken for it for the time of a lease, so that a release that got lost does not take its rate away for ever.
//!
//! Time is a span since any moment that the caller sticks to. Calling order: [`Calls::expire`] before whatever else is asked
//! at that time.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use farhop_units::BitRate;
use serde::{Deserialize, Serialize};

use super::codec::Codec;

/// More calls at a time than any link here carries; beyond it somebody opens and does not close.
pub const MOST_CALLS: usize = 4096;
/// Addresses of one call: two ends, audio and its control, and some to spare.
const MOST_MEDIA: usize = 8;
/// The longest name of a call; `Call-ID`s of SIP are shorter.
const LONGEST_ID: usize = 255;

/// What a call is called by whoever asks for it: printable ASCII without blanks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(String);

/// Where packets of a call's speech go: address and port.
pub type Media = SocketAddr;

/// A call that somebody wants to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub id: CallId,
    /// What it takes in each direction, with all headers.
    pub rate: BitRate,
    /// Its codec and packet time, where they are said.
    pub codec: Option<(Codec, Duration)>,
    /// Where its packets go, as far as it is known.
    pub media: Vec<Media>,
}

/// A call that holds its rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// As it was offered.
    pub offer: Offer,
    /// When it lapses unless somebody speaks for it.
    pub until: Duration,
}

/// How an admitted offer found its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// A new call.
    New,
    /// It was there already, the same: its lease begins anew.
    Again,
    /// It was there and holds another rate, or has other addresses, now.
    Changed,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// Somebody said so.
    Released,
    /// Nobody has spoken for it.
    Lapsed,
}

/// Why a call is refused. What was admitted before is untouched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no room.
    #[error(
        "no room for it: it needs {}, and of the {} set aside for calls {} {}; release one, or give EF a greater share",
        wanted.in_words(),
        share.in_words(),
        hold(*calls),
        held.in_words()
    )]
    Full {
        /// What it needs.
        wanted: BitRate,
        /// What there is for calls.
        share: BitRate,
        /// What is held of it.
        held: BitRate,
        /// By how many.
        calls: usize,
    },
    /// There never is.
    #[error(
        "no room for it: it needs {}, more than the whole share of {} set aside for calls; give EF a greater share",
        wanted.in_words(),
        share.in_words()
    )]
    TooLarge {
        /// What it needs.
        wanted: BitRate,
        /// What there is for calls.
        share: BitRate,
    },
    /// It would need nothing.
    #[error("a call of 0 bit/s is none; name its codec or its rate")]
    Nothing,
    /// There are too many calls.
    #[error(
        "there are {MOST_CALLS} calls already, more than are kept; whoever opens them should release some"
    )]
    TooMany,
    /// It has too many addresses.
    #[error("a call has {MOST_MEDIA} addresses of media at most")]
    TooManyMedia,
}

/// A call as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its name.
    pub id: String,
    /// In bits/s.
    pub rate_bps: u64,
    /// Its codec, where it is said.
    pub codec: Option<String>,
    /// Its packet time in microseconds, where it is said.
    pub packet_time_us: Option<u64>,
    /// Where its packets go.
    pub media: Vec<Media>,
}

/// The calls that hold a rate, and what there is for calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calls {
    share: BitRate,
    lease: Duration,
    calls: BTreeMap<CallId, Call>,
    /// What they hold together, in bits/s.
    held: u64,
    /// Until then no lease is over.
    earliest: Duration,
}

fn hold(calls: usize) -> String {
    match calls {
        1 => "1 call holds".into(),
        calls => format!("{calls} calls hold"),
    }
}

impl Refusal {
    /// Whether another time it might be admitted as it is: there is no room. Else it is no call.
    pub fn is_for_want_of_room(&self) -> bool {
        matches!(self, Refusal::Full { .. } | Refusal::TooLarge { .. } | Refusal::TooMany)
    }
}

impl Calls {
    /// No calls, with room for `share` in each direction; each has to be spoken for within `lease`.
    pub fn new(share: BitRate, lease: Duration) -> Calls {
        Calls { share, lease, calls: BTreeMap::new(), held: 0, earliest: Duration::MAX }
    }

    /// As [`Calls::new`], with calls that an earlier manager had admitted: they go on, even where the share has become less,
    /// each with a whole lease from `now` on, since nobody knows how long that one was gone. Gives how many could not be
    /// understood besides.
    pub fn take_up(share: BitRate, lease: Duration, now: Duration, kept: &[Kept]) -> (Calls, usize) {
        let mut calls = Calls::new(share, lease);
        let mut lost = 0;
        for kept in kept {
            match kept.offer() {
                Some(offer) if calls.calls.len() < MOST_CALLS => {
                    calls.put(Call { offer, until: now.saturating_add(lease) });
                }
                _ => lost += 1,
            }
        }
        (calls, lost)
    }

    /// The calls as they are written down.
    pub fn kept(&self) -> Vec<Kept> {
        self.calls.values().map(|call| Kept::of(&call.offer)).collect()
    }

    /// Admits a call, or says why not; then nothing has changed. One of the same name that is there is spoken for, and takes
    /// the rate and the addresses that it is offered with now.
    ///
    /// # Errors
    /// There is no room for it, or it is none.
    pub fn admit(&mut self, now: Duration, offer: Offer) -> Result<Admitted, Refusal> {
        let admitted = self.admissible(&offer)?;
        self.put(Call { offer, until: now.saturating_add(self.lease) });
        Ok(admitted)
    }

    /// How a call would be admitted, or why not; nothing changes.
    ///
    /// # Errors
    /// As [`Calls::admit`].
    pub fn admissible(&self, offer: &Offer) -> Result<Admitted, Refusal> {
        if offer.rate.0 == 0 {
            return Err(Refusal::Nothing);
        }
        if offer.media.len() > MOST_MEDIA {
            return Err(Refusal::TooManyMedia);
        }
        let before = self.calls.get(&offer.id).map(|call| &call.offer);
        let own = before.map_or(0, |before| before.rate.0);
        let held = self.held();
        let others = held.0 - own;
        // What a call has it keeps, even where the share has become less.
        if offer.rate.0 > own && others.saturating_add(offer.rate.0) > self.share.0 {
            let (wanted, share, calls) = (offer.rate, self.share, self.calls.len());
            if wanted > share {
                return Err(Refusal::TooLarge { wanted, share });
            }
            return Err(Refusal::Full { wanted, share, held, calls });
        }
        match before {
            None if self.calls.len() >= MOST_CALLS => Err(Refusal::TooMany),
            None => Ok(Admitted::New),
            Some(before) if before == offer => Ok(Admitted::Again),
            Some(_) => Ok(Admitted::Changed),
        }
    }

    fn put(&mut self, call: Call) {
        let rate = call.offer.rate.0;
        self.earliest = self.earliest.min(call.until);
        let before = self.calls.insert(call.offer.id.clone(), call);
        self.held = self.held - before.map_or(0, |call| call.offer.rate.0) + rate;
    }

    /// Begins the lease of a call anew; whether it is there.
    pub fn renew(&mut self, now: Duration, id: &CallId) -> bool {
        let until = now.saturating_add(self.lease);
        self.calls.get_mut(id).map(|call| call.until = until).is_some()
    }

    /// Gives a call's rate back; `None` where there is no such call.
    pub fn release(&mut self, id: &CallId) -> Option<Call> {
        let released = self.calls.remove(id)?;
        self.held -= released.offer.rate.0;
        Some(released)
    }

    /// Takes out the calls whose lease is over at `now`.
    pub fn expire(&mut self, now: Duration) -> Vec<Call> {
        if now < self.earliest {
            return Vec::new();
        }
        let lapsed: Vec<Call> =
            self.calls.extract_if(.., |_, call| call.until <= now).map(|(_, call)| call).collect();
        self.held -= lapsed.iter().map(|call| call.offer.rate.0).sum::<u64>();
        self.earliest = self.next_expiry().unwrap_or(Duration::MAX);
        lapsed
    }

    /// When the next lease is over.
    pub fn next_expiry(&self) -> Option<Duration> {
        self.calls.values().map(|call| call.until).min()
    }

    /// There is another rate for calls from now on. Those that are there go on even where it is less than they hold; new ones
    /// are refused then.
    pub fn resize(&mut self, share: BitRate) {
        self.share = share;
    }

    /// What there is for calls, in each direction.
    pub fn share(&self) -> BitRate {
        self.share
    }

    /// What calls hold of it.
    pub fn held(&self) -> BitRate {
        BitRate(self.held)
    }

    /// The calls, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Call> {
        self.calls.values()
    }
}

impl Kept {
    fn of(offer: &Offer) -> Kept {
        Kept {
            id: offer.id.to_string(),
            rate_bps: offer.rate.0,
            codec: offer.codec.map(|(codec, _)| codec.to_string()),
            packet_time_us: offer.codec.and_then(|(_, time)| u64::try_from(time.as_micros()).ok()),
            media: offer.media.clone(),
        }
    }

    fn offer(&self) -> Option<Offer> {
        let codec = match (&self.codec, self.packet_time_us) {
            (Some(codec), Some(time)) => Some((codec.parse().ok()?, Duration::from_micros(time))),
            _ => None,
        };
        let (rate, media) = (BitRate(self.rate_bps), self.media.clone());
        // What no link has is none either: their sum is a number.
        let good = (1..=u64::MAX / MOST_CALLS as u64).contains(&rate.0) && media.len() <= MOST_MEDIA;
        good.then_some(Offer { id: self.id.parse().ok()?, rate, codec, media })
    }
}

impl FromStr for CallId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let good = (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        good.then(|| CallId(text.into())).ok_or(())
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
