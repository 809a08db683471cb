//! Origins and sites, as browsers relate them.

use url::{Host, Url};

/// How a request's target relates to the page that makes it (`Sec-Fetch-Site`).
/// The more distant is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    SameOrigin,
    SameSite,
    CrossSite,
}

impl Relation {
    pub(crate) fn between(page: &Url, target: &Url) -> Self {
        if page.origin() == target.origin() {
            Relation::SameOrigin
        } else if is_same_site(page, target) {
            Relation::SameSite
        } else {
            Relation::CrossSite
        }
    }

    /// As it is called in the field; what is not known is distant.
    pub(crate) fn named(name: &str) -> Self {
        let known = [Relation::SameOrigin, Relation::SameSite];
        known.into_iter().find(|relation| relation.as_str() == name).unwrap_or(Relation::CrossSite)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Relation::SameOrigin => "same-origin",
            Relation::SameSite => "same-site",
            Relation::CrossSite => "cross-site",
        }
    }
}

/// HTML, "schemelessly same site" and the same scheme.
pub(crate) fn is_same_site(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme() && same_registrable_domain(a, b)
}

/// Scheme and registrable domain, as text; the host where it has none.
pub(crate) fn site(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let domain = match url.host() {
        Some(Host::Domain(name)) => registrable(name).unwrap_or(name),
        _ => host,
    };
    format!("{}://{domain}", url.scheme())
}

fn same_registrable_domain(a: &Url, b: &Url) -> bool {
    match (a.host(), b.host()) {
        (Some(Host::Domain(a)), Some(Host::Domain(b))) => {
            a == b || registrable(a).is_some_and(|site| registrable(b) == Some(site))
        }
        (a, b) => a.is_some() && a == b,
    }
}

/// The registrable domain of a host. One that is written out to the root (`site.test.`) is another than without the dot, as in browsers
/// (URL, "registrable domain").
pub(crate) fn registrable(host: &str) -> Option<&str> {
    let name = host.strip_suffix('.').unwrap_or(host);
    let domain = psl::domain_str(name)?;
    host.get(name.len() - domain.len()..)
}

/// Secure Contexts, §3.1: where browsers send client hints and `Sec-Fetch-*`.
pub(crate) fn is_potentially_trustworthy(url: &Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_scheme_and_registrable_domain() {
        let relation = |a: &str, b: &str| Relation::between(&Url::parse(a).unwrap(), &Url::parse(b).unwrap());
        assert_eq!(relation("http://a.test/x", "http://a.test:80/y"), Relation::SameOrigin);
        assert_eq!(relation("http://a.test/", "http://a.test:8080/"), Relation::SameSite);
        assert_eq!(relation("http://www.a.co.uk/", "http://cdn.a.co.uk/"), Relation::SameSite);
        assert_eq!(relation("http://a.co.uk/", "http://b.co.uk/"), Relation::CrossSite);
        assert_eq!(relation("http://a.github.io/", "http://b.github.io/"), Relation::CrossSite);
        assert_eq!(relation("http://a.test/", "https://a.test/"), Relation::CrossSite, "schemeful");
        assert_eq!(relation("http://10.0.0.1/", "http://11.0.0.1/"), Relation::CrossSite);
        assert_eq!(relation("http://10.0.0.1/", "http://10.0.0.1:81/"), Relation::SameSite);
        assert_eq!(
            relation("http://a.test/", "http://a.test./"),
            Relation::CrossSite,
            "written out to the root"
        );
        assert_eq!(relation("http://www.a.test./", "http://a.test./"), Relation::SameSite);
    }
}
