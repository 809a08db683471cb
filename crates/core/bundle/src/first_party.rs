//! In whose page a request is made, as cookies see it.

use crate::site::{is_same_site, site};
use url::Url;

/// The top document of a request, and whether a frame of another site stands between: RFC 6265bis's "site for cookies"
/// and the partition key of CHIPS and of browsers that partition all third-party cookies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstParty {
    top: Url,
    cross_site_ancestor: bool,
    /// The top document has an origin of its own, to which nothing is near.
    opaque: bool,
}

impl FirstParty {
    /// A document in a window of its own.
    pub fn of(document: &Url) -> Self {
        FirstParty { top: document.clone(), cross_site_ancestor: false, opaque: false }
    }

    /// The same, sandboxed.
    pub(crate) fn opaque(self) -> Self {
        FirstParty { opaque: true, ..self }
    }

    /// A document in a frame of this one.
    pub fn framed(&self, document: &Url) -> Self {
        let cross_site_ancestor = self.cross_site_ancestor || !is_same_site(&self.top, document);
        FirstParty { cross_site_ancestor, ..self.clone() }
    }

    /// Whether a request from here to `target` carries no `SameSite=Lax` or `Strict` cookies (RFC 6265bis §5.2).
    pub(crate) fn is_cross_site(&self, target: &Url) -> bool {
        self.opaque || self.cross_site_ancestor || !is_same_site(&self.top, target)
    }

    /// Whether only a frame in between makes it so: the target is of the top document's own site.
    pub(crate) fn returns_home(&self, target: &Url) -> bool {
        !self.opaque && self.cross_site_ancestor && is_same_site(&self.top, target)
    }

    /// Scheme and registrable domain of the top document, by which cookies of other sites are partitioned.
    pub(crate) fn partition(&self) -> String {
        // With the ancestor bit, as browsers have it: a site inside a stranger inside itself is another partition.
        let kind = match (self.opaque, self.cross_site_ancestor) {
            (true, _) => " sandboxed",
            (false, true) => " framed",
            (false, false) => "",
        };
        format!("{}{kind}", site(&self.top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_frame_makes_everything_in_it_cross_site() {
        let url = |text: &str| Url::parse(text).unwrap();
        let page = FirstParty::of(&url("https://www.site.test/"));
        assert!(!page.is_cross_site(&url("https://cdn.site.test/")));
        assert!(page.is_cross_site(&url("http://www.site.test/")), "sites have a scheme");
        let own = page.framed(&url("https://frame.site.test/"));
        assert!(!own.is_cross_site(&url("https://www.site.test/")));
        let strange = page.framed(&url("https://far.test/"));
        assert!(strange.is_cross_site(&url("https://far.test/")));
        assert!(strange.is_cross_site(&url("https://www.site.test/")));
        assert!(strange.returns_home(&url("https://www.site.test/")));
        assert!(!strange.returns_home(&url("https://far.test/")));
        assert!(strange.framed(&url("https://www.site.test/")).is_cross_site(&url("https://www.site.test/")));
    }
}
