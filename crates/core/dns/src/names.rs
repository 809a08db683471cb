//! Which names answers have had for an address: who connects to it has most likely asked for one of them. What only one client was
//! told counts for that one alone, since its answers may be its own making. Bounded; handed the time.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::answer::Answer;

/// Addresses that are known. Those told of longest ago go first.
const ADDRESSES: usize = 4096;
/// Names of one address; many share that of a content delivery network.
const NAMES: usize = 8;
/// Addresses of one answer that count.
const OF_ONE: usize = 16;
/// Who was told an address uses it for so long at the least, however short the answer's life.
const LEAST: Duration = Duration::from_secs(3600);

/// See the module.
#[derive(Debug, Default)]
pub struct Names {
    known: HashMap<Key, Known>,
    by_use: BTreeMap<u64, Key>,
    clock: u64,
}

/// Who was told, if not all are, and the address.
type Key = (Option<IpAddr>, IpAddr);

#[derive(Debug, Default)]
struct Known {
    told: u64,
    /// Newest last, each with when it is forgotten.
    names: Vec<(Arc<str>, Duration)>,
}

impl Names {
    /// This client, or whoever asks, is told this answer to a question for `name`.
    pub fn tell(&mut self, now: Duration, client: Option<IpAddr>, name: &str, answer: &Answer) {
        let until = now + Duration::from_secs(answer.lifetime.unwrap_or(0).into()).max(LEAST);
        let name: Arc<str> = name.into();
        for address in answer.addresses().take(OF_ONE) {
            self.clock += 1;
            let key = (client.map(|client| client.to_canonical()), address.to_canonical());
            let known = self.known.entry(key).or_default();
            self.by_use.remove(&known.told);
            known.told = self.clock;
            self.by_use.insert(self.clock, key);
            known.names.retain(|(own, until)| *own != name && *until > now);
            if known.names.len() == NAMES {
                known.names.remove(0);
            }
            known.names.push((Arc::clone(&name), until));
        }
        while self.known.len() > ADDRESSES
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.known.remove(&oldest);
        }
    }

    /// The names for which this client, or whoever asks, was told this address, the latest first.
    pub fn of(&self, now: Duration, client: Option<IpAddr>, address: IpAddr) -> impl Iterator<Item = &str> {
        let known = self.known.get(&(client.map(|client| client.to_canonical()), address.to_canonical()));
        let names = known.into_iter().flat_map(|known| known.names.iter().rev());
        names.filter(move |(_, until)| *until > now).map(|(name, _)| &**name)
    }
}
