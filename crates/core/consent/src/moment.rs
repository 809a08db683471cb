//! Points in time that outlive the process.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Seconds since 1970 by the machine's clock. What is kept on disk is dated by it, so a clock that was set wrong makes a
/// lesson last longer or shorter, and nothing worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// This much later; parts of a second count as a whole one.
    #[must_use]
    pub fn after(self, time: Duration) -> Moment {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Moment(self.0.saturating_add(seconds))
    }

    /// How long it is from `now` until then; nothing when it is past.
    pub fn from_now(self, now: Moment) -> Duration {
        Duration::from_secs(self.0.saturating_sub(now.0))
    }
}
