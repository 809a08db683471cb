//! Pages that users have open at the remote end, as far as requests tell: which one is left, and whose a request is.

use crate::matching::is_navigation;
use http::Method;
use http::header::{self, HeaderMap};
use std::sync::Arc;
use url::Url;

/// Pages of one user that are remembered as open; the oldest counts as left when there are more.
const MAX_PER_USER: usize = 64;
/// Pages of all users: most of them went away without a word.
const MAX: usize = 4096;

/// One load of one document; the exchange that fetched the document serves as its number, so later ones have larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoadId(pub u64);

/// Whether a request asks for a document in a window, as far as its fields tell: a link's, or a form's (search, preview,
/// login), which may be sent by POST.
pub fn opens_page(method: &Method, request: &HeaderMap) -> bool {
    let by_browser = || {
        // A script may ask for `text/html` too, over plain HTTP like a window; it does not ask for upgrades.
        request.contains_key("sec-fetch-dest") || request.contains_key(header::UPGRADE_INSECURE_REQUESTS)
    };
    is_navigation(request) && (*method == Method::GET || *method == Method::POST && by_browser())
}

/// Pages taken to be open, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Loads(Vec<Open>);

#[derive(Debug)]
struct Open {
    load: LoadId,
    user: Arc<str>,
    page: Url,
}

impl Loads {
    /// A navigation of `user` begins `load` of `url`, without fragment. Gives the loads that end with it, and of each
    /// whether what any cache may reuse of it is of use still.
    pub(crate) fn begin(
        &mut self,
        user: &Arc<str>,
        load: LoadId,
        url: Url,
        request: &HeaderMap,
    ) -> Vec<(LoadId, bool)> {
        let mut ended = self.left_by(user, &url, request);
        let open = |open: &&Open| open.user == *user && !ended.iter().any(|(load, _)| *load == open.load);
        if self.0.iter().filter(open).count() >= MAX_PER_USER
            && let Some(oldest) = self.0.iter().find(open).map(|open| open.load)
        {
            ended.push((oldest, true));
        }
        if self.0.len() - ended.len() >= MAX
            && let Some(oldest) =
                self.0.iter().map(|open| open.load).find(|load| !ended.iter().any(|(own, _)| own == load))
        {
            ended.push((oldest, true));
        }
        self.0.retain(|open| !ended.iter().any(|(load, _)| *load == open.load));
        self.0.push(Open { load, user: Arc::clone(user), page: url });
        ended
    }

    fn left_by(&self, user: &Arc<str>, url: &Url, request: &HeaderMap) -> Vec<(LoadId, bool)> {
        let referer = referer(request).and_then(|text| Url::parse(text).ok());
        let own = || self.0.iter().filter(|open| open.user == *user);
        let entry = |open: &Open| (open.load, open.page.origin() == url.origin());
        let left: Vec<_> = own()
            .filter(|open| open.page == *url || referer.as_ref() == Some(&open.page))
            .map(entry)
            .collect();
        if !left.is_empty() {
            return left;
        }
        // Leaving for another origin, the browser names its own origin only: enough if one page there is open.
        let Some(referer) = referer.filter(|referer| referer.origin() != url.origin()) else { return left };
        let there: Vec<_> = own().filter(|open| open.page.origin() == referer.origin()).map(entry).collect();
        if there.len() == 1 { there } else { Vec::new() }
    }

    /// The document of `load` is at `to` and not at `from`.
    pub(crate) fn moved(&mut self, load: LoadId, from: &Url, to: Url) {
        if let Some(open) = self.0.iter_mut().find(|open| open.load == load && open.page == *from) {
            open.page = to;
        }
    }

    /// The page for which `user` asks: the one whose document this is, once a redirect has led there; else as far as its
    /// `Referer` says: it names the page, or, of what a stylesheet or module asks for, a file of the same origin; the
    /// page opened last, then.
    pub(crate) fn asking(&self, user: &str, url: &Url, request: &HeaderMap) -> Option<LoadId> {
        let led = self.0.iter().rev().find(|open| *open.user == *user && open.is_asked_for(url, request));
        if let Some(led) = led {
            return Some(led.load);
        }
        let referer = Url::parse(referer(request)?).ok()?;
        let own = || self.0.iter().rev().filter(|open| *open.user == *user);
        let named = own().find(|open| open.page == referer);
        named.or_else(|| own().find(|open| open.page.origin() == referer.origin())).map(|open| open.load)
    }

    pub(crate) fn contains(&self, load: LoadId) -> bool {
        self.0.iter().any(|open| open.load == load)
    }

    pub(crate) fn end(&mut self, load: LoadId) {
        self.0.retain(|open| open.load != load);
    }

    /// Whether a request of `user` comes from `load`: it is for its document, to which a redirect led, its `Referer` names
    /// the page, or no page was opened since that could ask alike.
    pub(crate) fn is_of(&self, load: LoadId, user: &Arc<str>, url: &Url, request: &HeaderMap) -> bool {
        if !self.0.iter().any(|open| open.user == *user && open.load > load) {
            return true;
        }
        // Loads of one document do not go on side by side, so its URL says which, if it is more than the origin.
        let page = self.0.iter().find(|open| open.load == load);
        page.is_some_and(|open| {
            open.is_asked_for(url, request)
                || open.page.path() != "/" && referer(request) == Some(open.page.as_str())
        })
    }
}

impl Open {
    fn is_asked_for(&self, url: &Url, request: &HeaderMap) -> bool {
        self.page == *url && is_navigation(request)
    }
}

fn referer(request: &HeaderMap) -> Option<&str> {
    request.get(header::REFERER).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_opened_the_longest_ago_counts_as_left_when_users_come_without_end() {
        let (mut loads, fields) = (Loads::default(), HeaderMap::new());
        let mut begin = |number: u64| {
            let url = Url::parse("http://site.test/").unwrap();
            loads.begin(&format!("user {number}").into(), LoadId(number), url, &fields)
        };
        for number in 0..MAX as u64 {
            assert_eq!(begin(number), [], "{number}");
        }
        assert_eq!(begin(MAX as u64), [(LoadId(0), true)]);
        assert_eq!(begin(MAX as u64 + 1), [(LoadId(1), true)]);
    }
}
