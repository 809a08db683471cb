//! A text on its way to a remote: what it may be sent against or with, and what is kept of it for those that come after
//! (`bases`, `dictionaries`). It codes nothing.

use std::sync::Arc;

use bytes::Bytes;
use farhop_dictionaries::Dictionary;
use farhop_freshness::{Scope, shareable, storable};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_squeeze::{LARGEST_BASE, LARGEST_TAUGHT, Load};
use http::{Method, StatusCode};
use url::Position;

use crate::bases::{Base, Bases, Memory, Purpose};
use crate::body::{Part, Source};
use crate::dictionaries::{Dictionaries, Sent};
use crate::imaging::Means;
use crate::shape::Address;
use crate::stock::Former;
use crate::treatment::{Treatment, codings, content_length, media_type};

/// What has a longer URL is kept by none.
const LONGEST_URL: usize = 2 * 1024;

/// See the module.
pub(crate) struct Kin {
    bases: Arc<Bases>,
    purpose: Purpose,
    /// Scheme and authority.
    origin: String,
    against: Against,
    /// It is kept for others.
    is_kept: bool,
    /// Dictionaries are learnt, as long as it is short.
    teaches: bool,
    /// What has come of it, if it will be kept or teach.
    so_far: Option<Vec<u8>>,
    counted: usize,
}

/// What the remote holds that a text may be coded with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Against {
    /// A text like it.
    pub(crate) base: Option<Base>,
    /// What texts of its origin have in common.
    pub(crate) dictionary: Option<Arc<Dictionary>>,
}

impl Against {
    /// The remote holds nothing of use.
    pub(crate) fn is_nothing(&self) -> bool {
        self.base.is_none() && self.dictionary.is_none()
    }
}

/// Who is sent a text, and how.
pub(crate) struct Recipient {
    pub(crate) memory: Memory,
    pub(crate) user: u64,
    /// Part of it was delivered before.
    pub(crate) resumes: bool,
    pub(crate) means: Means,
}

/// What is not right any more of what is held on disk is the version that a remote may hold from before this process began: as
/// such it is a base again.
pub(crate) async fn take_up(bases: &Bases, memory: Memory, request: &RequestHead, former: Former) {
    let Some(url) = request.resource() else { return };
    let Former { fields, body } = former;
    let purpose = Purpose {
        memory,
        owner: None,
        address: Address::of(&url[..Position::AfterQuery]),
        media: media_type(&fields).into(),
    };
    if url.as_str().len() > LONGEST_URL || !bases.misses(&purpose) {
        return;
    }
    let Ok(codings) = codings(&fields) else { return };
    let (mut source, mut whole) = (Source::new(body.into(), &codings), Vec::new());
    // As it was delivered: without its codings. Where it was not, nobody has said that they hold it.
    while let Ok(part) = source.next().await {
        match part {
            Part::Bytes(bytes) if whole.len() + bytes.len() <= LARGEST_BASE => {
                whole.extend_from_slice(&bytes)
            }
            Part::Bytes(_) => return,
            Part::End(_) => return bases.take_up(purpose, whole.into()),
        }
    }
}

impl Kin {
    /// Of the answer to `request`, if it is a text that others may be like.
    pub(crate) fn of(
        bases: &Arc<Bases>,
        dictionaries: &Dictionaries,
        to: Recipient,
        request: &RequestHead,
        response: &ResponseHead,
        treatment: &Treatment,
    ) -> Option<Kin> {
        let is_text = matches!(treatment, Treatment::Squeeze | Treatment::Recode(_) | Treatment::Manifest(_));
        if !is_text
            || request.method != Method::GET
            || response.status != StatusCode::OK
            || request.is_of_its_connection()
            || content_length(&response.fields).is_some_and(|length| length > LARGEST_BASE as u64)
        {
            return None;
        }
        let url = request.resource().filter(|url| url.as_str().len() <= LONGEST_URL)?;
        let Recipient { memory, user, resumes, means } = to;
        let (asked, fields) = (&request.fields, &response.fields);
        // As the remote decides where it keeps it.
        let is_anyones = shareable(url.scheme() == "https", asked, response.status, fields);
        let is_own = || storable(&Method::GET, asked, response.status, fields, Scope::Private).is_ok();
        let is_kept = bases.is_on() && (is_anyones || is_own());
        let purpose = Purpose {
            memory,
            owner: (!is_anyones).then_some(user),
            address: Address::of(&url[..Position::AfterQuery]),
            media: media_type(fields).into(),
        };
        // Coding both ways takes time.
        let may_differ = !resumes && means.load != Load::Spent;
        let origin = url.origin().ascii_serialization();
        let against = if may_differ {
            let dictionary = dictionaries.held(&purpose.memory, &origin);
            Against { base: bases.base(&purpose, user), dictionary }
        } else {
            Against::default()
        };
        // What was delivered in part says nothing of what all of it takes.
        let teaches = !resumes && dictionaries.is_on();
        if !is_kept && !teaches && against.is_nothing() {
            return None;
        }
        let so_far = (is_kept || teaches).then(Vec::new);
        Some(Kin { bases: Arc::clone(bases), purpose, origin, against, is_kept, teaches, so_far, counted: 0 })
    }

    /// What it may be sent against or with.
    pub(crate) fn against(&self) -> &Against {
        &self.against
    }

    /// The next bytes of it, as they are delivered.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let Some(so_far) = &mut self.so_far else { return };
        self.counted += bytes.len();
        let has_room = self.bases.expect(bytes.len());
        let most = if self.is_kept { LARGEST_BASE } else { LARGEST_TAUGHT };
        if !has_room || so_far.len() + bytes.len() > most {
            self.so_far = None;
            return self.release();
        }
        so_far.extend_from_slice(bytes);
    }

    /// All of it was sent; gives what is to be learnt from.
    pub(crate) fn whole(mut self) -> Option<Sent> {
        let body = self.so_far.take()?;
        self.keep(body.into())
    }

    /// All of it, which was at hand at once, is sent; gives what is to be learnt from.
    pub(crate) fn whole_at_once(mut self, body: &Bytes) -> Option<Sent> {
        self.so_far.take()?;
        // A body may be a view of a larger buffer.
        self.keep(Bytes::copy_from_slice(body))
    }

    fn keep(&self, body: Bytes) -> Option<Sent> {
        if self.is_kept {
            self.bases.keep(self.purpose.clone(), body.clone());
        }
        (self.teaches && body.len() <= LARGEST_TAUGHT).then(|| Sent {
            memory: self.purpose.memory.clone(),
            origin: self.origin.clone(),
            url: self.purpose.address.url().to_owned(),
            is_anyones: self.purpose.owner.is_none(),
            body,
        })
    }

    fn release(&mut self) {
        self.bases.expect_no_more(std::mem::take(&mut self.counted));
    }
}

impl Drop for Kin {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::{fields, request};
    use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
    use farhop_squeeze::Policy;

    const MEANS: Means = Means { policy: Policy::Gentle, level: 9, load: Load::Light, most: None };

    fn memory() -> Memory {
        Memory { remote: "ship".into(), epoch: 1 }
    }

    fn kin(bases: &Arc<Bases>, user: u64, asked: &str, answered: &str) -> Option<Kin> {
        let to = Recipient { memory: memory(), user, resumes: false, means: MEANS };
        let response = ResponseHead { status: StatusCode::OK, fields: fields(answered) };
        Kin::of(bases, &Dictionaries::new(0), to, &request(asked), &response, &Treatment::Squeeze)
    }

    fn send(bases: &Arc<Bases>, user: u64, asked: &str, answered: &str) {
        let body = "text ".repeat(200).into_bytes();
        let mut kin = kin(bases, user, asked, answered).unwrap();
        body.chunks(7).for_each(|piece| kin.take(piece));
        kin.whole();
        let owner = if answered.contains("private") { Some(user) } else { None };
        let held = HeldBody { user: owner, hash: BodyHash::of(&body) };
        bases.hear(&memory(), &Word::Holds(vec![held]));
    }

    fn has_base(bases: &Arc<Bases>, user: u64, asked: &str, answered: &str) -> bool {
        kin(bases, user, asked, answered).is_some_and(|kin| kin.against().base.is_some())
    }

    const ANYONES: &str = "content-type: text/html | cache-control: max-age=60";
    const OWN: &str = "content-type: text/html | cache-control: private, max-age=60";

    #[test]
    fn what_is_one_users_is_a_base_for_that_user_alone_and_what_is_anyones_for_all() {
        let bases = Arc::new(Bases::new(1 << 20));
        send(&bases, 1, "cookie: a=1", OWN);
        for answered in [OWN, ANYONES] {
            assert!(has_base(&bases, 1, "cookie: a=1", answered));
            assert!(!has_base(&bases, 2, "cookie: a=1", answered), "not even with the same cookies");
        }
        send(&bases, 1, "", ANYONES);
        assert!(has_base(&bases, 2, "", ANYONES) && has_base(&bases, 2, "cookie: a=2", OWN));
    }

    #[test]
    fn a_target_in_other_words_than_its_url_is_nothing_to_others() {
        let bases = Arc::new(Bases::new(1 << 20));
        let response = ResponseHead { status: StatusCode::OK, fields: fields(ANYONES) };
        for (path, is_kin) in [("/", true), ("/./", false), ("/a/..", false)] {
            let to = Recipient { memory: memory(), user: 1, resumes: false, means: MEANS };
            let request = RequestHead { path: path.into(), ..request("") };
            let none = Dictionaries::new(0);
            let kin = Kin::of(&bases, &none, to, &request, &response, &Treatment::Squeeze);
            assert_eq!(kin.is_some(), is_kin, "{path}");
        }
    }

    #[test]
    fn what_must_not_be_stored_is_not_kept_but_may_be_sent_against_what_is() {
        const NEVER: &str = "content-type: text/html | cache-control: no-store";
        let bases = Arc::new(Bases::new(1 << 20));
        assert!(kin(&bases, 1, "", NEVER).is_none());
        send(&bases, 1, "", ANYONES);
        let kin = kin(&bases, 1, "", NEVER).unwrap();
        assert!(kin.against().base.is_some() && kin.so_far.is_none());
    }

    #[test]
    fn what_resumes_or_comes_when_there_is_no_time_is_sent_against_nothing() {
        let bases = Arc::new(Bases::new(1 << 20));
        send(&bases, 1, "", ANYONES);
        let response = ResponseHead { status: StatusCode::OK, fields: fields(ANYONES) };
        for (resumes, load, expected) in
            [(false, Load::Light, true), (true, Load::Light, false), (false, Load::Spent, false)]
        {
            let to = Recipient { memory: memory(), user: 1, resumes, means: Means { load, ..MEANS } };
            let none = Dictionaries::new(0);
            let kin = Kin::of(&bases, &none, to, &request(""), &response, &Treatment::Squeeze).unwrap();
            assert_eq!(kin.against().base.is_some(), expected, "{resumes} {load:?}");
        }
    }

    #[test]
    fn what_is_no_text_no_200_or_too_long_is_nothing_to_others() {
        let bases = Arc::new(Bases::new(1 << 20));
        let of = |status, answered: &str, treatment| {
            let to = Recipient { memory: memory(), user: 1, resumes: false, means: MEANS };
            let response = ResponseHead { status, fields: fields(answered) };
            Kin::of(&bases, &Dictionaries::new(0), to, &request(""), &response, &treatment).is_some()
        };
        assert!(of(StatusCode::OK, ANYONES, Treatment::Squeeze));
        assert!(!of(StatusCode::OK, ANYONES, Treatment::Pass));
        assert!(!of(StatusCode::NOT_FOUND, ANYONES, Treatment::Squeeze));
        assert!(!of(StatusCode::OK, &format!("{ANYONES} | content-length: 2000000"), Treatment::Squeeze));
        bases.set(0);
        assert!(!of(StatusCode::OK, ANYONES, Treatment::Squeeze));
    }

    #[test]
    fn texts_under_way_count_and_too_long_ones_are_given_up() {
        let bases = Arc::new(Bases::new(2 << 20));
        let mut long = kin(&bases, 1, "", ANYONES).unwrap();
        let room_for = |bytes: usize| {
            let has = bases.expect(bytes);
            bases.expect_no_more(bytes);
            has
        };
        (0..1024).for_each(|_| long.take(&[b'b'; 1024]));
        assert!(room_for(1 << 20) && !room_for((1 << 20) + 1));
        long.take(b"b");
        assert!(long.so_far.is_none() && room_for(2 << 20));
        let mut cut = kin(&bases, 1, "", ANYONES).unwrap();
        cut.take(b"some");
        assert!(!room_for(2 << 20));
        drop(cut);
        assert!(room_for(2 << 20));
    }

    #[test]
    fn what_only_its_user_may_have_or_nobody_may_keep_is_measured_and_never_learnt_from() {
        const NEVER: &str = "content-type: text/html | cache-control: no-store";
        let (bases, dictionaries) = (Arc::new(Bases::new(1 << 20)), Dictionaries::new(1 << 20));
        let sent = |asked: &str, answered: &str, resumes| {
            let to = Recipient { memory: memory(), user: 1, resumes, means: MEANS };
            let response = ResponseHead { status: StatusCode::OK, fields: fields(answered) };
            let kin = Kin::of(&bases, &dictionaries, to, &request(asked), &response, &Treatment::Squeeze)?;
            kin.whole_at_once(&Bytes::from_static(b"a body")).map(|sent| sent.is_anyones)
        };
        assert_eq!(sent("", ANYONES, false), Some(true));
        assert_eq!(sent("cookie: a=1", "content-type: text/html", false), Some(false));
        assert_eq!((sent("", OWN, false), sent("", NEVER, false)), (Some(false), Some(false)));
        assert_eq!(sent("", ANYONES, true), None, "part of it was there");
        bases.set(0);
        assert_eq!(sent("", NEVER, false), Some(false));
    }
}
