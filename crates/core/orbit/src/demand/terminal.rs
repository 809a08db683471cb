//! What a terminal asks for, by what waits in it. How it asks is not in the standards, which leave it to whoever builds terminals;
//! the rules here are the usual ones: rates follow the arrivals of the last control round, volumes what waits and was not yet
//! asked for.

use std::collections::VecDeque;

use super::{OnDemand, Request, Volume};

/// A terminal's books, in bytes and superframes.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    /// Bytes that wait.
    backlog: u64,
    /// Bytes that someone has announced, and until when that counts.
    ahead: (u64, u64),
    /// What arrived in this superframe, and in those of the last control round.
    arriving: u64,
    arrived: VecDeque<u64>,
    /// Volumes asked for and not yet given: since when, how much.
    asked: VecDeque<(u64, u64)>,
    /// The rate asked for last.
    rate: u32,
}

impl Terminal {
    /// Bytes came to wait.
    pub(super) fn arrive(&mut self, bytes: u64) {
        self.backlog += bytes;
        self.arriving += bytes;
        self.ahead.0 = self.ahead.0.saturating_sub(bytes);
    }

    /// Bytes were sent.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.backlog = self.backlog.saturating_sub(bytes);
    }

    pub(super) fn backlog(&self) -> u64 {
        self.backlog
    }

    /// So many bytes will come, says who knows, in place of what was said before; it counts until superframe `until`.
    pub(super) fn announce(&mut self, bytes: u64, until: u64) {
        self.ahead = (bytes, until);
    }

    /// Of what was asked for by volume so much is given.
    pub(super) fn given(&mut self, mut bytes: u64) {
        while let Some((_, first)) = self.asked.front_mut() {
            let settled = bytes.min(*first);
            (*first, bytes) = (*first - settled, bytes - settled);
            if *first > 0 {
                return;
            }
            self.asked.pop_front();
        }
    }

    /// Whether nothing is left to be asked for, waited for or taken back.
    pub(super) fn is_quiet(&self) -> bool {
        self.backlog == 0
            && self.ahead.0 == 0
            && self.arriving == 0
            && self.rate == 0
            && self.asked.is_empty()
            && self.arrived.iter().all(|bytes| *bytes == 0)
    }

    /// What it asks for at the beginning of superframe `frame`, in which it may send `slots`.
    pub(super) fn requests(&mut self, link: &OnDemand, frame: u64, slots: u32) -> Vec<Request> {
        let round = link.round();
        if self.ahead.1 <= frame {
            self.ahead.0 = 0;
        }
        self.arrived.push_back(std::mem::take(&mut self.arriving));
        while self.arrived.len() as u64 > round {
            self.arrived.pop_front();
        }
        // What this superframe takes away is no reason to ask.
        let waiting = self.backlog.saturating_sub(u64::from(slots) * link.payload()) + self.ahead.0;
        let mut requests = Vec::new();
        let most = u32::try_from(link.slots_of(link.entitlement.rbdc)).unwrap_or(u32::MAX);
        if most > 0 {
            // A tenth above the mean arrivals, and what waits over one control round. CRA carries its part.
            let arrived: u64 = self.arrived.iter().sum();
            let bytes = (arrived + arrived / 10 + waiting).div_ceil(round);
            let wanted = u128::from(bytes.div_ceil(link.payload()))
                .saturating_sub(link.slots_of(link.entitlement.cra));
            let rate = u32::try_from(wanted).unwrap_or(u32::MAX).min(most);
            if rate > 0 || self.rate > 0 {
                requests.push(Request::Rate(rate));
            }
            self.rate = rate;
        }
        // What the rates carry meanwhile needs no volume.
        let carried = u64::try_from(link.slots_of(link.entitlement.cra))
            .unwrap_or(u64::MAX)
            .saturating_add(self.rate.into());
        let waiting = waiting.saturating_sub(carried.saturating_mul(round).saturating_mul(link.payload()));
        match link.entitlement.volume {
            Volume::None => {}
            Volume::Added => {
                // What was not given within two rounds was lost, or may as well have been.
                while self.asked.front().is_some_and(|asked| asked.0 + 2 * round < frame) {
                    self.asked.pop_front();
                }
                let wanted = waiting.saturating_sub(self.asked.iter().map(|asked| asked.1).sum());
                if wanted > 0 {
                    let whole = wanted.div_ceil(link.payload()) * link.slot.0;
                    self.asked.push_back((frame, wanted.div_ceil(link.payload()) * link.payload()));
                    requests.push(Request::Add(whole));
                }
            }
            Volume::Absolute if waiting > 0 => {
                requests.push(Request::Absolute(waiting.div_ceil(link.payload()) * link.slot.0));
            }
            Volume::Absolute => {}
        }
        requests
    }
}
