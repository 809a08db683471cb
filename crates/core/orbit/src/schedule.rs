//! What happens to a link at known times: outages, and the handovers of satellites that pass. Pure functions of the time since
//! the link's epoch, so that both directions and every run agree.

use std::time::Duration;

/// An outage: what is sent or would arrive during it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When the first one begins.
    pub at: Duration,
    /// How long each lasts.
    pub lasts: Duration,
    /// From the beginning of one to that of the next; `None` for a single one.
    pub every: Option<Duration>,
}

/// Satellites that take turns: after each turn nothing passes for a while, and the way is as long as the next satellite is far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handovers {
    /// From one handover to the next.
    pub every: Duration,
    /// How long nothing passes after each.
    pub gap: Duration,
    /// One-way delay by each satellite in turn, then from the first again; empty leaves the delay alone.
    pub delays: Vec<Duration>,
}

/// Everything that is known beforehand of one direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedule {
    /// Outages; they may overlap.
    pub outages: Vec<Outage>,
    /// Handovers, the first of them after [`Handovers::every`].
    pub handovers: Option<Handovers>,
}

impl Outage {
    fn covers(&self, now: Duration) -> bool {
        let Some(since) = now.checked_sub(self.at) else { return false };
        let since = self.every.map_or(since, |every| modulo(since, every));
        since < self.lasts
    }
}

impl Schedule {
    /// Nothing ever happens.
    pub const NOTHING: Schedule = Schedule { outages: Vec::new(), handovers: None };

    /// Whether nothing passes at `now`.
    pub fn is_out(&self, now: Duration) -> bool {
        let handing_over = |it: &Handovers| now >= it.every && modulo(now, it.every) < it.gap;
        self.outages.iter().any(|outage| outage.covers(now))
            || self.handovers.as_ref().is_some_and(handing_over)
    }

    /// The shortest of the delays of [`Schedule::delay`].
    pub(crate) fn soonest(&self) -> Option<Duration> {
        self.handovers.as_ref()?.delays.iter().min().copied()
    }

    /// One-way delay of what is sent at `now`, where satellites differ in it.
    pub fn delay(&self, now: Duration) -> Option<Duration> {
        let handovers = self.handovers.as_ref()?;
        let turns = now.as_nanos() / handovers.every.as_nanos().max(1);
        let turn = usize::try_from(turns % handovers.delays.len().max(1) as u128).unwrap_or(0);
        handovers.delays.get(turn).copied()
    }
}

/// How far `now` is into its period. A period of zero is none: time stands at its beginning.
pub(crate) fn modulo(now: Duration, period: Duration) -> Duration {
    let nanos = now.as_nanos().checked_rem(period.as_nanos()).unwrap_or(0);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn outages_come_once_or_again_and_again() {
        let once = Outage { at: 10 * S, lasts: 2 * S, every: None };
        let again = Outage { every: Some(60 * S), ..once };
        let out = |outage| (0..200).filter(|t| Outage::covers(outage, *t * S)).collect::<Vec<u32>>();
        assert_eq!(out(&once), [10, 11]);
        assert_eq!(out(&again), [10, 11, 70, 71, 130, 131, 190, 191]);
    }

    #[test]
    fn satellites_take_turns_each_with_its_own_delay() {
        let ms = Duration::from_millis;
        let handovers = Handovers { every: 15 * S, gap: ms(50), delays: vec![ms(20), ms(27), ms(24)] };
        let schedule = Schedule { handovers: Some(handovers), ..Schedule::NOTHING };
        let delays: Vec<_> = (0..5).map(|turn| schedule.delay(turn * 15 * S)).collect();
        assert_eq!(delays, [20, 27, 24, 20, 27].map(|it| Some(ms(it))));
        assert!(!schedule.is_out(Duration::ZERO), "the first satellite is there from the beginning");
        assert!(
            schedule.is_out(15 * S) && schedule.is_out(15 * S + ms(49)) && !schedule.is_out(15 * S + ms(50))
        );
        assert_eq!(Schedule::NOTHING.delay(S), None);
    }
}
