//! What browsers ask for while ground promises it to them. The browser of a page that the remote holds reads it before ground hears
//! of it: what it has asked for by then is not promised as well, and what it asks for later, when the promise is still on its
//! way, is not sent twice. Pure: told the time.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_bundle::sameness;
use farhop_htotp::RequestHead;
use http::Method;
use tokio::sync::oneshot;

/// How long a page asks for what it needs.
const KEPT: Duration = Duration::from_secs(30);
/// Requests that are remembered of one user, and users.
const MOST: usize = 1024;
const USERS: usize = 1024;

/// A request of a user, in its words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Words {
    user: u64,
    url: String,
    sameness: u64,
}

impl Words {
    pub(crate) fn of(user: u64, request: &RequestHead) -> Words {
        Words { user, url: request.url(), sameness: sameness(&request.fields) }
    }
}

/// See the module. Of one carrier; times are since any fixed start.
#[derive(Default)]
pub(crate) struct Overtaken(Mutex<HashMap<u64, Opener>>);

/// A user who has opened such a page.
struct Opener {
    at: Duration,
    asked: HashSet<Words>,
    promised: HashMap<Words, oneshot::Sender<()>>,
}

impl Overtaken {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Opener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `user` opens a page that the remote holds.
    pub(crate) fn opens(&self, user: u64, now: Duration) {
        let mut openers = self.lock();
        openers.retain(|_, opener| now < opener.at + KEPT);
        if openers.len() < USERS {
            let opener = openers.entry(user).or_insert_with(|| Opener {
                at: now,
                asked: <_>::default(),
                promised: <_>::default(),
            });
            // What it asked for before, it asked for another page.
            (opener.at, opener.asked) = (now, HashSet::new());
        }
    }

    /// The browser of `user` asks for this: what is promised of it and not sent is given up.
    pub(crate) fn asks(&self, user: u64, request: &RequestHead, now: Duration) {
        let mut openers = self.lock();
        let opener = openers.get_mut(&user).filter(|opener| now < opener.at + KEPT);
        let Some(opener) = opener.filter(|_| request.method == Method::GET) else { return };
        let words = Words::of(user, request);
        if let Some(promised) = opener.promised.remove(&words) {
            // Who has let go of it needs no word.
            let _ = promised.send(());
        }
        if opener.asked.len() < MOST {
            opener.asked.insert(words);
        }
    }

    /// Whether its browser has asked for this since the page was opened.
    pub(crate) fn is_asked(&self, words: &Words) -> bool {
        self.lock().get(&words.user).is_some_and(|opener| opener.asked.contains(words))
    }

    /// This is promised; the receiver is told if its browser asks for it before it is [sent](Overtaken::sends).
    pub(crate) fn promises(&self, words: &Words) -> Option<oneshot::Receiver<()>> {
        let mut openers = self.lock();
        let opener = openers.get_mut(&words.user).filter(|opener| opener.promised.len() < MOST)?;
        let (overtake, overtaken) = oneshot::channel();
        opener.promised.insert(words.clone(), overtake);
        Some(overtaken)
    }

    /// It is being sent now, or never.
    pub(crate) fn sends(&self, words: &Words) {
        if let Some(opener) = self.lock().get_mut(&words.user) {
            opener.promised.remove(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::request;

    const START: Duration = Duration::from_secs(100);

    fn words(said: &str) -> Words {
        Words::of(5, &request(said))
    }

    #[test]
    fn what_a_browser_asks_for_after_its_page_was_opened_is_known_for_a_while_in_its_words() {
        let overtaken = Overtaken::default();
        overtaken.asks(5, &request("accept: */*"), START);
        assert!(!overtaken.is_asked(&words("accept: */*")), "it has opened no such page");
        overtaken.opens(5, START);
        overtaken.asks(5, &request("accept: */* | if-none-match: \"a\""), START);
        assert!(overtaken.is_asked(&words("accept: */*")) && !overtaken.is_asked(&words("accept: text/css")));
        overtaken.opens(5, START);
        assert!(!overtaken.is_asked(&words("accept: */*")), "that was for the page before");
        overtaken.asks(5, &request("accept: */*"), START + KEPT);
        assert!(!overtaken.is_asked(&words("accept: */*")));
        overtaken.opens(6, START + KEPT);
        assert!(!overtaken.lock().contains_key(&5), "it is forgotten");
    }

    #[tokio::test]
    async fn a_promise_is_overtaken_until_it_is_sent() {
        let overtaken = Overtaken::default();
        overtaken.opens(5, START);
        let (told, sent) = (words("accept: */*"), words("accept: text/css"));
        let (first, second) = (overtaken.promises(&told).unwrap(), overtaken.promises(&sent).unwrap());
        overtaken.sends(&sent);
        overtaken.asks(5, &request("accept: text/css"), START);
        assert!(second.await.is_err());
        overtaken.asks(5, &request("accept: */*"), START);
        assert!(first.await.is_ok());
    }
}
