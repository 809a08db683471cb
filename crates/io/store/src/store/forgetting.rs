//! Some of what is held is dropped at once: a site's, or one user's.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Inner;
use crate::disk::{Disk, Listed};
use crate::repository::{Change, Meant, Partition};

impl Inner {
    pub(super) async fn forget(&self, partition: Option<Partition>, is_meant: Meant) -> u64 {
        let is_chosen =
            move |of: Partition, url: &str| partition.is_none_or(|only| of == only) && is_meant(url);
        // Memory first: what leaves it while the disk is asked goes there.
        let mut chosen = BTreeMap::new();
        {
            let holdings = self.lock();
            for (url, entry) in holdings.ids().filter_map(|id| holdings.entry(id)) {
                let (partition, bytes) = (entry.held.partition, entry.held.body.written());
                if is_chosen(partition, url) {
                    let url = Arc::clone(url);
                    chosen.insert(entry.held.id, Listed { id: entry.held.id, partition, url, bytes });
                }
            }
        }
        if let Some(reading) = self.disk.as_ref().map(Disk::reading) {
            let listed = tokio::task::spawn_blocking(move || reading.listed(is_chosen));
            // A thread that panicked has found nothing.
            let listed = listed.await.unwrap_or_default();
            chosen.extend(listed.into_iter().map(|it| (it.id, it)));
        }
        let forgotten = chosen.into_values().filter(|it| self.forget_one(it)).count();
        if let Some(disk) = &self.disk {
            disk.settled().await;
        }
        forgotten as u64
    }

    /// Drops an entry, whether memory has it or the disk alone; `false` where it is gone already.
    fn forget_one(&self, listed: &Listed) -> bool {
        let Listed { id, partition, url, bytes } = listed;
        let mut holdings = self.lock();
        if holdings.entry(*id).is_some() {
            self.remove(&mut holdings, *id);
            return true;
        }
        let group = holdings.group_or_new(url);
        let is_there = !group.is_known && !group.gone.contains(id);
        if is_there {
            group.gone.push(*id);
            self.forget_on_disk(&mut holdings, *id, url);
            let (partition, url) = (*partition, Arc::clone(url));
            self.announce(Change::Evicted { id: *id, partition, url, bytes: *bytes });
        }
        holdings.drop_if_empty(url);
        is_there
    }
}
