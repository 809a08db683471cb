//! Whose requests the pages of an origin are answered by: their own, or those of a service worker, which says of each that it
//! is for nothing in particular. Learned from what is asked for after all although it was promised.

use farhop_page::Destination;
use std::collections::HashMap;
use std::time::{Duration, SystemTime};
use url::{Origin, Url};

/// Kinds of requests that are remembered; of more the one that changed the longest ago is forgotten.
const MOST: usize = 512;
/// For so long nothing is promised of a kind that is asked for now by the one and now by the other.
const DOUBTED: Duration = Duration::from_secs(3600);

/// Who asks for what a page names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The page itself, as far as fields tell.
    Page,
    /// A service worker.
    Worker,
    /// Now the one and now the other.
    Either,
}

/// Of requests that pages of an origin make to an origin, for one kind of thing: workers choose by these.
type Kind = (Origin, Origin, Destination);

/// See the module. Of one browser.
#[derive(Debug, Default)]
pub(crate) struct Workers(HashMap<Kind, (Asker, SystemTime)>);

impl Workers {
    /// Who asks at `now` for a `destination` at `target` in a page at `page`; `None` where nothing was seen.
    pub(crate) fn asker(
        &self,
        page: &Url,
        target: &Url,
        destination: Destination,
        now: SystemTime,
    ) -> Option<Asker> {
        let (asker, since) = self.0.get(&kind(page, target, destination))?;
        let is_over = now.duration_since(*since).is_ok_and(|passed| passed >= DOUBTED);
        (*asker != Asker::Either || !is_over).then_some(*asker)
    }

    /// It was asked for by `asker`, where the other one was expected.
    pub(crate) fn note(
        &mut self,
        page: &Url,
        target: &Url,
        destination: Destination,
        asker: Asker,
        now: SystemTime,
    ) {
        let was = self.asker(page, target, destination, now);
        let asker = if was.is_none_or(|was| was == asker) { asker } else { Asker::Either };
        self.0.insert(kind(page, target, destination), (asker, now));
        if self.0.len() > MOST
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, (_, since))| *since).map(|(kind, _)| kind.clone())
        {
            self.0.remove(&oldest);
        }
    }

    /// Bytes that all this takes, about.
    pub(crate) fn size(&self) -> usize {
        self.0.len() * (2 * size_of::<Kind>() + 64)
    }
}

fn kind(page: &Url, target: &Url, destination: Destination) -> Kind {
    (page.origin(), target.origin(), destination)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn who_asks_is_learned_by_origins_and_kind_and_doubted_for_a_while() {
        let (page, script) = (url("https://site.test/p"), Destination::Script);
        let mut workers = Workers::default();
        let asker = |workers: &Workers, target: &str, destination, seconds| {
            workers.asker(&url("https://site.test/q"), &url(target), destination, at(seconds))
        };
        let own = "https://site.test/b.js";
        workers.note(&page, &url("https://site.test/a.js"), script, Asker::Worker, at(0));
        assert_eq!(asker(&workers, own, script, 9), Some(Asker::Worker));
        assert_eq!(asker(&workers, own, Destination::Image, 9), None);
        assert_eq!(asker(&workers, "https://cdn.test/b.js", script, 9), None);
        workers.note(&page, &url(own), script, Asker::Page, at(10));
        assert_eq!(asker(&workers, own, script, 11), Some(Asker::Either));
        workers.note(&page, &url(own), script, Asker::Page, at(12));
        assert_eq!(asker(&workers, own, script, 13), Some(Asker::Either));
        assert_eq!(asker(&workers, own, script, 12 + 3600), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut workers = Workers::default();
        for number in 0..MOST as u64 + 3 {
            let target = url(&format!("https://s{number}.test/"));
            workers.note(&target, &target, Destination::Image, Asker::Worker, at(number));
        }
        let asker = |number: u64| {
            let target = url(&format!("https://s{number}.test/"));
            workers.asker(&target, &target, Destination::Image, at(1000))
        };
        assert_eq!(workers.0.len(), MOST);
        assert_eq!((asker(2), asker(3)), (None, Some(Asker::Worker)));
    }
}
