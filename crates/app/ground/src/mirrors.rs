//! The mirrors of all remotes: each outlasts its carriers, so that the next one goes on with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::mirror::Mirror;

/// How long the mirror of a remote without a carrier is kept.
const AWAY: Duration = Duration::from_secs(24 * 3600);

struct Kept {
    mirror: Arc<Mutex<Mirror>>,
    /// When a carrier of the remote last came or went.
    seen: Instant,
}

/// See the module. By the remote's name in the settings, so that there are no more than that names.
#[derive(Default)]
pub(crate) struct Mirrors(Mutex<HashMap<Arc<str>, Kept>>);

impl Mirrors {
    /// The mirror of this remote, of which a carrier comes or goes.
    pub(crate) fn of(&self, remote: &Arc<str>) -> Arc<Mutex<Mirror>> {
        let (mut mirrors, seen) = (self.lock(), Instant::now());
        // One that a carrier uses is held by it.
        mirrors.retain(|name, kept| {
            name == remote || Arc::strong_count(&kept.mirror) > 1 || seen < kept.seen + AWAY
        });
        let kept = mirrors.entry(Arc::clone(remote)).or_insert_with(|| Kept { mirror: Arc::default(), seen });
        kept.seen = seen;
        Arc::clone(&kept.mirror)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_mirror_is_kept_while_its_remote_is_here_and_for_a_day_after() {
        let (mirrors, ship, polar) = (Mirrors::default(), Arc::from("ship"), Arc::from("polar"));
        let used = mirrors.of(&ship);
        mirrors.of(&polar);
        tokio::time::sleep(AWAY).await;
        assert!(Arc::ptr_eq(&used, &mirrors.of(&ship)));
        assert_eq!(mirrors.lock().len(), 1, "nobody has used the other");
        drop(used);
        tokio::time::sleep(AWAY).await;
        mirrors.of(&polar);
        assert_eq!(mirrors.lock().len(), 1);
    }
}
