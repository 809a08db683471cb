//! Dictionaries that origins name (RFC 9842): kept of their responses, offered with requests, and undone where an origin makes
//! use of one. All of it is between ground and origins: nothing else here meets a body that is coded so, but one that was
//! coded with a dictionary of the client's own, which passes as it is.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use farhop_bundle::opens_page;
use farhop_dictionaries::{LARGEST_NAMED, Named, Offer, Shelf, available};
use farhop_freshness::{Scope, Stored, Validated, shareable, storable};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_squeeze::{Coding, Decoder, NamedCoding};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use crate::owner::Owner;
use crate::treatment::{VOUCHING, codings, describe_decoded, has_directive, list, text};

const AVAILABLE: HeaderName = HeaderName::from_static("available-dictionary");
const ID: HeaderName = HeaderName::from_static("dictionary-id");
const USE_AS: HeaderName = HeaderName::from_static("use-as-dictionary");
const OURS: &str = "dcb, dcz";
/// What a field takes besides its text.
const FIELD: usize = 100;
/// Bytes of all that will be kept and are still coming.
const MOST_ARRIVING: usize = 4 * LARGEST_NAMED;

/// See the module.
pub(crate) struct Dictated {
    /// Each with the head of its response, that without a dictionary.
    shelf: Mutex<Shelf<Owner, Stored>>,
    since: Instant,
    arriving: AtomicUsize,
}

/// What a request said of dictionaries.
pub(crate) struct Said {
    offered: Option<Arc<Named>>,
    /// The client's own word went to the origin.
    is_clients: bool,
}

impl Dictated {
    /// Keeps so many bytes.
    pub(crate) fn new(most: u64) -> Dictated {
        let shelf = Mutex::new(Shelf::new(size(most), weight));
        Dictated { shelf, since: Instant::now(), arriving: AtomicUsize::new(0) }
    }

    /// Keeps so many from now on.
    pub(crate) fn set(&self, most: u64) {
        self.shelf().set(size(most));
    }

    /// For `status`.
    pub(crate) fn status(&self) -> Value {
        let (kept, bytes) = self.shelf().size();
        json!({ "kept": kept, "bytes": bytes })
    }

    /// Offers what there is for a request with the head `asked`, which goes to the origin with these fields. Where there is
    /// nothing, the client's own word goes, but for pages: one that nobody here can read costs more than it spares.
    pub(crate) fn offer(&self, owner: &Owner, asked: &RequestHead, fields: &mut HeaderMap) -> Said {
        Dictated::say(self.find(owner, asked), asked, fields)
    }

    /// The same, as if there were nothing.
    pub(crate) fn offer_nothing(asked: &RequestHead, fields: &mut HeaderMap) -> Said {
        Dictated::say(None, asked, fields)
    }

    fn say(offered: Option<Arc<Named>>, asked: &RequestHead, fields: &mut HeaderMap) -> Said {
        let is_clients = offered.is_none() && fields.contains_key(AVAILABLE);
        if is_clients && !opens_page(&asked.method, &asked.fields) {
            return Said { offered, is_clients };
        }
        if is_clients || offered.is_some() {
            fields.remove(AVAILABLE);
            fields.remove(ID);
            let own = list(fields, &header::ACCEPT_ENCODING).filter(|one| !is_named(one));
            let taken: Vec<&str> = own.chain(offered.is_some().then_some(OURS)).collect();
            let taken = taken.join(", ");
            set(fields, header::ACCEPT_ENCODING, &taken);
        }
        if let Some(named) = &offered {
            set(fields, AVAILABLE, &available(&named.hash));
            named.offer.id_field().into_iter().for_each(|id| set(fields, ID, &id));
        }
        Said { offered, is_clients: false }
    }

    fn find(&self, owner: &Owner, asked: &RequestHead) -> Option<Arc<Named>> {
        let fields = &asked.fields;
        let may_be_coded = is_for_dictionaries(asked)
            && !fields.contains_key(header::RANGE)
            && !has_directive(fields, &header::CACHE_CONTROL, "no-transform");
        if !may_be_coded || !self.shelf().is_on() {
            return None;
        }
        let url = asked.resource()?;
        let destination = fields.get("sec-fetch-dest").and_then(|value| value.to_str().ok());
        self.shelf().find(owner, &url, destination, self.since.elapsed())
    }

    /// Makes the head of a response that of its content without a dictionary, and gives what undoes the coding.
    ///
    /// # Errors
    /// It is coded in a way that cannot be undone, or must not be.
    pub(crate) fn undo(
        &self,
        said: Said,
        asked: &RequestHead,
        head: &mut ResponseHead,
    ) -> Result<Option<Undoing>, &'static str> {
        if said.is_clients {
            return Ok(None);
        }
        // What the client has plays no part in it: it got nothing that is coded with it, and what it gets is for all.
        let vary: Vec<&str> = list(&head.fields, &header::VARY).collect();
        let others =
            |name: &&str| ![&AVAILABLE, &ID].iter().any(|own| name.eq_ignore_ascii_case(own.as_str()));
        let kept: Vec<&str> = vary.iter().copied().filter(others).collect();
        if kept.len() < vary.len() {
            let kept = kept.join(", ");
            head.fields.remove(header::VARY);
            if !kept.is_empty() {
                set(&mut head.fields, header::VARY, &kept);
            }
        }
        let codings: Vec<&str> = list(&head.fields, &header::CONTENT_ENCODING).collect();
        let Some(named) = said.offered.filter(|_| codings.iter().any(|coding| is_named(coding))) else {
            return Ok(None);
        };
        if !is_readable(&asked.fields, &head.fields) {
            return Err("the body is coded with a dictionary, and who asked may not read it");
        }
        let coding = match codings[..] {
            [coding] => NamedCoding::named(coding),
            _ => None,
        };
        let coding = coding.ok_or_else(|| {
            self.shelf().drop_named(&named.hash);
            "the body has more codings than one with a dictionary"
        })?;
        let decoder = Decoder::against(coding, &named.bytes, &named.hash)
            .map_err(|_| "there is no memory for the body's dictionary")?;
        VOUCHING.iter().for_each(|name| drop(head.fields.remove(*name)));
        describe_decoded(head, None);
        Ok(Some(Undoing { decoder, hash: named.hash }))
    }

    /// Keeps the response that has begun, if its origin lets it serve as a dictionary. Its head is that without a dictionary.
    pub(crate) fn keep(
        self: &Arc<Self>,
        owner: &Owner,
        asked: &RequestHead,
        head: &ResponseHead,
    ) -> Option<Keeping> {
        let (request, response) = (&asked.fields, &head.fields);
        if head.status != StatusCode::OK
            || !response.contains_key(USE_AS)
            || !is_for_dictionaries(asked)
            || !is_readable(request, response)
            || request.contains_key(header::RANGE)
            || !self.shelf().is_on()
        {
            return None;
        }
        let url = asked.resource()?;
        let offer = Offer::read(text(response, &USE_AS), &url)?;
        let is_anyones = shareable(true, request, head.status, response);
        if !is_anyones {
            storable(&Method::GET, request, head.status, response, Scope::Private).ok()?;
        }
        let now = SystemTime::now();
        let stored = Stored::new(request, head.status, response, now, now);
        Some(Keeping {
            dictated: Arc::clone(self),
            codings: codings(response).ok()?,
            owner: (!is_anyones).then(|| owner.clone()),
            until: self.until(&stored, is_anyones, now)?,
            stored,
            url,
            offer,
            so_far: Vec::new(),
            counted: 0,
        })
    }

    /// Takes what is kept of this resource for fresh anew, if the response is a 304 that says so (RFC 9842 §2.2.1, RFC 9111 §4.3.4).
    /// What may be less shared than before stays as old as it is.
    pub(crate) fn confirm(&self, owner: &Owner, asked: &RequestHead, head: &ResponseHead) {
        let request = &asked.fields;
        if head.status != StatusCode::NOT_MODIFIED || !is_for_dictionaries(asked) || !self.shelf().is_on() {
            return;
        }
        let Some(url) = asked.resource() else { return };
        let now = SystemTime::now();
        self.shelf().renew(owner, &url, |stored, is_anyones| {
            let renewed = confirmed(stored, request, &head.fields, now)?;
            let may = match is_anyones {
                true => shareable(true, request, renewed.status, &renewed.fields),
                false => {
                    storable(&Method::GET, request, renewed.status, &renewed.fields, Scope::Private).is_ok()
                }
            };
            let offer = Offer::read(text(&renewed.fields, &USE_AS), &url).filter(|_| may)?;
            let until = self.until(&renewed, is_anyones, now)?;
            *stored = renewed;
            Some((offer, until))
        });
    }

    /// Until when a response is fresh, if it is.
    fn until(&self, stored: &Stored, is_anyones: bool, now: SystemTime) -> Option<Duration> {
        let scope = if is_anyones { Scope::Shared } else { Scope::Private };
        let fresh = stored.lifetime(scope).saturating_sub(stored.age(now));
        self.since.elapsed().checked_add(fresh).filter(|_| !fresh.is_zero())
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<Owner, Stored>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Undoes a coding with a dictionary that was offered.
pub(crate) struct Undoing {
    pub(crate) decoder: Decoder,
    hash: [u8; 32],
}

impl Undoing {
    /// It could not be undone: the dictionary is not offered again.
    pub(crate) fn failed(&self, dictated: &Dictated) {
        dictated.shelf().drop_named(&self.hash);
    }
}

/// A response that is to serve as a dictionary once it is here.
pub(crate) struct Keeping {
    dictated: Arc<Dictated>,
    codings: Vec<Coding>,
    owner: Option<Owner>,
    url: Url,
    offer: Offer,
    until: Duration,
    stored: Stored,
    so_far: Vec<u8>,
    counted: usize,
}

impl Keeping {
    /// The next bytes, as they were coded. Whether there is room for them.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: &[u8]) -> bool {
        self.counted += bytes.len();
        let arriving = self.dictated.arriving.fetch_add(bytes.len(), Relaxed) + bytes.len();
        self.so_far.extend_from_slice(bytes);
        arriving <= MOST_ARRIVING && self.so_far.len() <= LARGEST_NAMED
    }

    /// That was all. Undoing its codings takes time, for which nobody waits.
    pub(crate) fn whole(mut self) {
        let coded = Bytes::from(std::mem::take(&mut self.so_far));
        tokio::task::spawn_blocking(move || {
            if let Some(content) = decoded(&self.codings, coded) {
                let (owner, offer, stored) = (self.owner.take(), self.offer.clone(), self.stored.clone());
                self.dictated.shelf().put(owner, &self.url, offer, content, self.until, stored);
            }
        });
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.dictated.arriving.fetch_sub(self.counted, Relaxed);
    }
}

/// RFC 9842 §2.2: the hash is that of the content, without content codings.
fn decoded(codings: &[Coding], coded: Bytes) -> Option<Bytes> {
    if codings.is_empty() {
        return Some(coded);
    }
    let (mut decoder, mut content) = (Decoder::new(codings), Vec::new());
    decoder.feed(coded);
    decoder.end();
    while let Some(piece) = decoder.pull().ok()? {
        content.extend_from_slice(&piece);
        if content.len() > LARGEST_NAMED {
            return None;
        }
    }
    Some(content.into())
}

/// Bytes of a head, about.
fn weight(stored: &Stored) -> usize {
    let fields = stored.fields.iter().chain(&stored.nominated);
    fields.map(|(name, value)| name.as_str().len() + value.len() + FIELD).sum()
}

/// A kept response as it is after a 304 to this request, if that is about it.
fn confirmed(
    stored: &Stored,
    request: &HeaderMap,
    not_modified: &HeaderMap,
    now: SystemTime,
) -> Option<Stored> {
    let mut told = not_modified.clone();
    if let Some(tag) = told.get(header::ETAG).cloned() {
        // Of what came coded with a dictionary the tag was made weak: the origin's own is not.
        let own = stored.fields.get(header::ETAG)?;
        if own.as_bytes().strip_prefix(b"W/") == Some(tag.as_bytes()) {
            told.insert(header::ETAG, own.clone());
        }
    } else if !told.contains_key(header::LAST_MODIFIED) {
        // It is about what was asked about.
        let is_own = |asked: &HeaderName, own: &HeaderName| {
            request.get(asked).is_some_and(|asked| stored.fields.get(own) == Some(asked))
        };
        let by_tag = request.contains_key(header::IF_NONE_MATCH);
        let is_it = is_own(&header::IF_NONE_MATCH, &header::ETAG)
            || !by_tag && is_own(&header::IF_MODIFIED_SINCE, &header::LAST_MODIFIED);
        if !is_it {
            return None;
        }
    }
    match stored.validated_by(request, &told, now, now) {
        Validated::Stored(stored) => Some(*stored),
        Validated::Client | Validated::Neither => None,
    }
}

/// Whether dictionaries may have to do with a request at all: within TLS (RFC 9842 §8), and where whoever asks may read the
/// response (§9.3.2), so that its length tells nothing that its content would not.
fn is_for_dictionaries(asked: &RequestHead) -> bool {
    asked.method == Method::GET
        && asked.scheme == "https"
        && !asked.upgrades()
        && !asked.is_of_its_connection()
        && (is_of_its_site(&asked.fields)
            || says(&asked.fields, "sec-fetch-mode", &["navigate", "same-origin", "cors"]))
}

/// Whether a response may be read by who asked: with CORS it has to say so.
fn is_readable(asked: &HeaderMap, response: &HeaderMap) -> bool {
    let allowed = response.get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
    is_of_its_site(asked)
        || asked.get("sec-fetch-mode").is_none_or(|mode| mode != "cors")
        || allowed.is_some_and(|allowed| allowed == "*" || asked.get(header::ORIGIN) == Some(allowed))
}

fn is_of_its_site(asked: &HeaderMap) -> bool {
    says(asked, "sec-fetch-site", &["same-origin", "none"])
}

/// Whether a field is one of these, or nothing is said.
fn says(fields: &HeaderMap, name: &str, wanted: &[&str]) -> bool {
    let value = fields.get(name).and_then(|value| value.to_str().ok());
    value.is_none_or(|value| wanted.contains(&value))
}

fn is_named(coding: &str) -> bool {
    NamedCoding::named(coding.split(';').next().unwrap_or_default()).is_some()
}

fn set(fields: &mut HeaderMap, name: HeaderName, value: &str) {
    // Made of what was valid, base64 and printable text.
    if let Ok(value) = HeaderValue::from_str(value) {
        fields.insert(name, value);
    }
}

fn size(most: u64) -> usize {
    usize::try_from(most).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::{fields, request};

    const CLIENT: &str =
        "accept-encoding: gzip, br, dcb, dcz | available-dictionary: :AAAA: | dictionary-id: \"its\"";
    const ANYONES: &str = "use-as-dictionary: match=\"/*\", id=\"v1\" | cache-control: max-age=60";

    fn owner(user: u64) -> Owner {
        Owner { remote: "ship".into(), user }
    }

    fn asked(given: &str) -> RequestHead {
        RequestHead { scheme: "https".into(), ..request(given) }
    }

    fn response(given: &str) -> ResponseHead {
        ResponseHead { status: StatusCode::OK, fields: fields(given) }
    }

    async fn learn(dictated: &Arc<Dictated>, user: u64, asking: &str, answered: &str) {
        let keeping = dictated.keep(&owner(user), &asked(asking), &response(answered));
        let Some(mut keeping) = keeping else { return };
        let before = dictated.shelf().size();
        assert!(keeping.take(b"a dictionary"));
        keeping.whole();
        while dictated.shelf().size() == before {
            tokio::task::yield_now().await;
        }
    }

    fn offered(dictated: &Dictated, user: u64, head: &RequestHead) -> HeaderMap {
        let mut fields = head.fields.clone();
        dictated.offer(&owner(user), head, &mut fields);
        fields
    }

    #[tokio::test]
    async fn what_is_kept_is_offered_in_place_of_the_clients_own() {
        let dictated = Arc::new(Dictated::new(1 << 20));
        let own = offered(&dictated, 1, &asked(CLIENT));
        assert_eq!(own, fields(CLIENT), "there is nothing else");
        learn(&dictated, 1, "", ANYONES).await;
        let ours = offered(&dictated, 2, &asked(CLIENT));
        assert_eq!(
            (&ours["accept-encoding"], &ours["dictionary-id"]),
            (&"gzip, br, dcb, dcz".parse().unwrap(), &"\"v1\"".parse().unwrap())
        );
        assert!(ours["available-dictionary"] != own["available-dictionary"]);
        let plain = offered(&dictated, 2, &asked("accept-encoding: gzip"));
        assert_eq!(plain["accept-encoding"], "gzip, dcb, dcz");
        for other in [
            "range: bytes=0-9",
            "cache-control: no-transform",
            "sec-fetch-mode: no-cors | sec-fetch-site: cross-site",
        ] {
            assert!(!offered(&dictated, 1, &asked(other)).contains_key(AVAILABLE), "{other}");
        }
        assert!(!offered(&dictated, 1, &request("")).contains_key(AVAILABLE), "outside of TLS");
        let post = RequestHead { method: Method::POST, ..asked("") };
        assert!(!offered(&dictated, 1, &post).contains_key(AVAILABLE));
    }

    #[tokio::test]
    async fn a_page_is_asked_for_without_what_only_its_client_has() {
        let dictated = Dictated::new(1 << 20);
        let page = format!("{CLIENT} | sec-fetch-dest: document | sec-fetch-mode: navigate");
        let said = offered(&dictated, 1, &asked(&page));
        assert_eq!(said["accept-encoding"], "gzip, br");
        assert!(!said.contains_key(AVAILABLE) && !said.contains_key(ID));
    }

    #[tokio::test]
    async fn what_is_one_users_is_offered_for_that_user_alone_and_what_may_not_be_kept_for_none() {
        let dictated = Arc::new(Dictated::new(1 << 20));
        learn(
            &dictated,
            1,
            "cookie: a=1",
            "use-as-dictionary: match=\"/*\" | cache-control: private, max-age=60",
        )
        .await;
        assert!(offered(&dictated, 1, &asked("")).contains_key(AVAILABLE));
        assert!(!offered(&dictated, 2, &asked("")).contains_key(AVAILABLE));
        let none = Arc::new(Dictated::new(1 << 20));
        for never in [
            "use-as-dictionary: match=\"/*\" | cache-control: no-store",
            "use-as-dictionary: match=\"/*\" | cache-control: max-age=0",
            "use-as-dictionary: match=\"https://else.test/*\" | cache-control: max-age=60",
            "use-as-dictionary: match=\"/*\" | cache-control: max-age=60 | content-encoding: own",
            "cache-control: max-age=60",
        ] {
            assert!(none.keep(&owner(1), &asked(""), &response(never)).is_none(), "{never}");
        }
        assert!(none.keep(&owner(1), &request(""), &response(ANYONES)).is_none(), "outside of TLS");
        let odd = RequestHead { path: "/./".into(), ..asked("") };
        assert!(none.keep(&owner(1), &odd, &response(ANYONES)).is_none(), "another resource than its URL");
        assert!(!offered(&dictated, 1, &odd).contains_key(AVAILABLE));
        assert!(Arc::new(Dictated::new(0)).keep(&owner(1), &asked(""), &response(ANYONES)).is_none());
    }

    #[tokio::test]
    async fn a_coded_response_gets_the_head_of_its_content_and_what_is_the_clients_passes() {
        const CODED: &str = "content-encoding: dcz | content-length: 9 | etag: \"v\" | repr-digest: x | vary: Accept-Encoding, Available-Dictionary, dictionary-id";
        let dictated = Arc::new(Dictated::new(1 << 20));
        let mut head = response(CODED);
        let said = dictated.offer(&owner(1), &asked(CLIENT), &mut fields(CLIENT));
        assert!(dictated.undo(said, &asked(CLIENT), &mut head).unwrap().is_none());
        assert_eq!(head.fields, fields(CODED));
        learn(&dictated, 1, "", ANYONES).await;
        let said = || dictated.offer(&owner(1), &asked(CLIENT), &mut fields(CLIENT));
        assert!(dictated.undo(said(), &asked(CLIENT), &mut head).unwrap().is_some());
        assert_eq!(head.fields, fields("etag: W/\"v\" | vary: Accept-Encoding"));
        let mut plain = response("vary: available-dictionary | content-encoding: br");
        assert!(dictated.undo(said(), &asked(CLIENT), &mut plain).unwrap().is_none());
        assert_eq!(plain.fields, fields("content-encoding: br"));
        assert!(dictated.undo(said(), &asked(CLIENT), &mut response("content-encoding: dcz, gzip")).is_err());
    }

    #[tokio::test]
    async fn a_dictionary_that_is_stale_is_offered_again_once_its_origin_has_confirmed_it() {
        const SHORT: &str =
            "use-as-dictionary: match=\"/*\" | etag: \"1\" | cache-control: max-age=60 | age: 59";
        let not_modified = |given: &str| ResponseHead { status: StatusCode::NOT_MODIFIED, ..response(given) };
        let is_offered = |dictated: &Dictated| offered(dictated, 1, &asked("")).contains_key(AVAILABLE);
        for (learned, asking, answered, is_renewed) in [
            (SHORT, "", "etag: \"1\" | cache-control: max-age=60", true),
            (SHORT, "", "etag: \"1\"", true),
            (SHORT, "if-none-match: \"1\"", "", true),
            (SHORT, "", "", false),
            (SHORT, "if-none-match: \"2\"", "cache-control: max-age=60", false),
            (SHORT, "", "etag: \"2\" | cache-control: max-age=60", false),
            (SHORT, "", "etag: \"1\" | cache-control: no-store", false),
            (SHORT, "", "etag: \"1\" | cache-control: max-age=0", false),
            (SHORT, "", "etag: \"1\" | cache-control: private, max-age=60", false),
            (SHORT, "", "etag: \"1\" | use-as-dictionary: match=\"/else/*\"", false),
            (SHORT, "range: bytes=0-9", "etag: \"1\"", true),
            (&SHORT.replace("etag: ", "etag: W/"), "", "etag: \"1\"", true),
            (&SHORT.replace("etag: \"1\"", "last-modified: then"), "", "last-modified: then", true),
            (&SHORT.replace("etag: \"1\"", "last-modified: then"), "if-modified-since: then", "", true),
            (&SHORT.replace("etag: \"1\"", "last-modified: then"), "if-modified-since: now", "", false),
        ] {
            let dictated = Arc::new(Dictated::new(1 << 20));
            learn(&dictated, 1, "", learned).await;
            // As if its minute were over.
            let url = asked("").resource().unwrap();
            dictated.shelf().renew(&owner(1), &url, |stored, _| {
                let offer = Offer::read(text(&stored.fields, &USE_AS), &url)?;
                Some((offer, Duration::ZERO))
            });
            assert!(!is_offered(&dictated), "{learned}");
            dictated.confirm(&owner(1), &asked(asking), &not_modified(answered));
            assert_eq!(is_offered(&dictated), is_renewed, "{learned}: {asking}: {answered}");
        }
    }

    #[tokio::test]
    async fn what_is_asked_for_across_origins_has_to_allow_that_it_is_read() {
        const ACROSS: &str = "sec-fetch-mode: cors | sec-fetch-site: cross-site | origin: https://else.test";
        let dictated = Arc::new(Dictated::new(1 << 20));
        let keeps = |more: &str| {
            dictated.keep(&owner(1), &asked(ACROSS), &response(&format!("{ANYONES} | {more}"))).is_some()
        };
        assert!(!keeps("") && !keeps("access-control-allow-origin: https://site.test"));
        assert!(keeps("access-control-allow-origin: *"));
        assert!(keeps("access-control-allow-origin: https://else.test"));
        learn(&dictated, 1, "", ANYONES).await;
        let undone = |more: &str| {
            let said = dictated.offer(&owner(1), &asked(ACROSS), &mut fields(ACROSS));
            dictated.undo(said, &asked(ACROSS), &mut response(&format!("content-encoding: dcz | {more}")))
        };
        assert!(undone("").is_err() && undone("access-control-allow-origin: *").is_ok_and(|it| it.is_some()));
    }
}
