//! The `Referer` that a policy allows (Referrer Policy, §8.3).

use crate::site::is_potentially_trustworthy;
use farhop_page::ReferrerPolicy;
use http::header::{self, HeaderMap};
use url::Url;

/// Referrer Policy, §8.3, step 6: a longer referrer is cut to its origin.
const MAX_LENGTH: usize = 4096;

/// The policy in the `Referrer-Policy` fields of a response (Referrer Policy, §8.1).
pub fn policy_of(response: &HeaderMap) -> Option<ReferrerPolicy> {
    let values = response.get_all(header::REFERRER_POLICY).into_iter();
    values.filter_map(|value| value.to_str().ok()).filter_map(ReferrerPolicy::from_field).next_back()
}

/// What `page` tells `target` of itself; `None` for nothing.
pub(crate) fn referrer(policy: ReferrerPolicy, page: &Url, target: &Url) -> Option<String> {
    use ReferrerPolicy as Policy;
    let same_origin = page.origin() == target.origin();
    let downgrade = is_potentially_trustworthy(page) && !is_potentially_trustworthy(target);
    let origin = || Some(format!("{}/", page.origin().ascii_serialization()));
    let full = || {
        let mut page = page.clone();
        page.set_fragment(None);
        // Both setters fail only for URLs without host, which are no pages here.
        let _ = (page.set_username(""), page.set_password(None));
        if page.as_str().len() > MAX_LENGTH { origin() } else { Some(page.into()) }
    };
    match policy {
        Policy::NoReferrer => None,
        Policy::Origin => origin(),
        Policy::UnsafeUrl => full(),
        Policy::StrictOrigin if downgrade => None,
        Policy::StrictOrigin => origin(),
        Policy::SameOrigin if same_origin => full(),
        Policy::SameOrigin => None,
        Policy::OriginWhenCrossOrigin if same_origin => full(),
        Policy::OriginWhenCrossOrigin => origin(),
        Policy::NoReferrerWhenDowngrade if downgrade => None,
        Policy::NoReferrerWhenDowngrade => full(),
        Policy::StrictOriginWhenCrossOrigin if same_origin => full(),
        Policy::StrictOriginWhenCrossOrigin if downgrade => None,
        Policy::StrictOriginWhenCrossOrigin => origin(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_tells_what_its_name_says() {
        use ReferrerPolicy as P;
        let page = Url::parse("https://user:pw@site.test/p?q#f").unwrap();
        let (full, origin) = (Some("https://site.test/p?q"), Some("https://site.test/"));
        let targets = ["https://site.test/x", "https://cdn.test/x", "http://cdn.test/x"];
        let cases = [
            (P::NoReferrer, [None, None, None]),
            (P::NoReferrerWhenDowngrade, [full, full, None]),
            (P::SameOrigin, [full, None, None]),
            (P::Origin, [origin, origin, origin]),
            (P::StrictOrigin, [origin, origin, None]),
            (P::OriginWhenCrossOrigin, [full, origin, origin]),
            (P::StrictOriginWhenCrossOrigin, [full, origin, None]),
            (P::UnsafeUrl, [full, full, full]),
        ];
        for (policy, expected) in cases {
            let told = targets.map(|target| referrer(policy, &page, &Url::parse(target).unwrap()));
            assert_eq!(told.each_ref().map(Option::as_deref), expected, "{policy:?}");
        }
    }

    #[test]
    fn a_very_long_referrer_is_cut_to_its_origin() {
        let page = Url::parse(&format!("http://site.test/?{}", "x".repeat(5000))).unwrap();
        let told = referrer(ReferrerPolicy::UnsafeUrl, &page, &page);
        assert_eq!(told.as_deref(), Some("http://site.test/"));
    }
}
