//! What a page load gave, as the driver writes it. Plain data with the few sums over it.

use serde::{Deserialize, Serialize};

/// Why a resource that came has no bytes here: browsers hold none of an image that they cannot decode.
pub const THROWN_AWAY: &str = "the browser threw the body away";

/// One page load. Times are milliseconds since the navigation began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageLoad {
    /// The browser's version.
    pub browser: Option<String>,
    /// `loadEventEnd`; none when the load event did not come.
    pub load_ms: Option<f64>,
    /// First contentful paint.
    pub first_paint_ms: Option<f64>,
    /// Largest contentful paint.
    #[serde(default)]
    pub largest_paint_ms: Option<f64>,
    /// First byte of the document (`responseStart`).
    pub first_byte_ms: Option<f64>,
    /// When the navigation began, since 1970: what the pictures of a film count from.
    #[serde(default)]
    pub began_ms: Option<f64>,
    /// Connections over TCP that were begun in the browser's network during the load, where its driver counts them.
    #[serde(default)]
    pub connections: Option<u64>,
    /// Where the page ended up after redirects.
    pub url: String,
    /// What went wrong with the page as a whole, and its scripts' uncaught errors.
    pub errors: Vec<String>,
    /// Every request over HTTP that the page made, redirects included, in order. The browser does not show its request for
    /// `/favicon.ico` here: the origins' log does.
    pub resources: Vec<Resource>,
}

/// One request of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// The URL asked for.
    pub url: String,
    /// What it was for: `document`, `stylesheet`, `script`, `image`, `font`, …
    pub destination: String,
    /// The status; none when there was no response.
    pub status: Option<u16>,
    /// The protocol spoken, as the browser names it (`HTTP/1.1`, `HTTP/2.0`).
    pub protocol: Option<String>,
    /// The response's media type.
    pub media_type: Option<String>,
    /// SHA-256 of the body after content decoding, hexadecimal.
    pub sha256: Option<String>,
    /// Bytes of that body.
    pub bytes: Option<u64>,
    /// Width and height as decoded, for bitmap images.
    pub decoded: Option<(u32, u32)>,
    /// When it was asked for.
    pub start_ms: Option<f64>,
    /// When its request was sent: the browser may hold it back until a connection is free.
    pub sent_ms: Option<f64>,
    /// When the head of the response was there.
    pub first_byte_ms: Option<f64>,
    /// When its last byte was there.
    pub end_ms: Option<f64>,
    /// Who made the browser ask; none where it does not tell.
    pub initiator: Option<Initiator>,
    /// Where a redirect led.
    pub redirected_to: Option<String>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// Who made the browser ask, as the DevTools protocol has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Initiator {
    /// `parser` for a name that stands in HTML or CSS, `preload`, `script`, `other`, …
    pub kind: String,
    /// Where the name stands: a document or a style sheet.
    pub url: Option<String>,
}

impl Initiator {
    /// Whether the name stands in HTML or CSS.
    pub fn is_markup(&self) -> bool {
        matches!(self.kind.as_str(), "parser" | "preload")
    }
}

impl PageLoad {
    /// When the last resource was there that did not fail: some pages load most files after their load event.
    pub fn last_resource_ms(&self) -> Option<f64> {
        let arrived = self.resources.iter().filter(|resource| resource.failure.is_none());
        arrived.filter_map(|resource| resource.end_ms).max_by(f64::total_cmp)
    }

    /// Why the page's own document is none that can be timed: an error page loads quickly, too. None when it is there.
    pub fn document_failure(&self) -> Option<String> {
        let document = self.resources.iter().find(|resource| resource.redirected_to.is_none());
        match document {
            None => Some("nothing was asked for".into()),
            Some(Resource { failure: Some(failure), .. }) => Some(failure.clone()),
            Some(Resource { status: Some(status), .. }) if *status < 400 => None,
            Some(Resource { status, .. }) => {
                Some(format!("status {} for the page itself", status.unwrap_or(0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_page_is_no_load() {
        let document = |status, redirected_to: Option<&str>, failure: Option<&str>| Resource {
            status,
            redirected_to: redirected_to.map(str::to_owned),
            ..resource(Some(1.0), failure)
        };
        let failure = |resources| PageLoad { resources, ..load(Vec::new()) }.document_failure();
        let moved = document(Some(301), Some("http://a.test/sub/"), None);
        assert_eq!(failure(vec![moved.clone(), document(Some(200), None, None)]), None);
        assert_eq!(
            failure(vec![moved, document(Some(502), None, None)]).unwrap(),
            "status 502 for the page itself"
        );
        assert_eq!(failure(vec![document(None, None, Some("net::ERR_FAILED"))]).unwrap(), "net::ERR_FAILED");
        assert_eq!(failure(vec![]).unwrap(), "nothing was asked for");
    }

    #[test]
    fn the_last_needed_resource_is_the_last_that_came_whole() {
        let ends =
            [resource(Some(3.0), None), resource(Some(9.0), None), resource(Some(99.0), Some("net::ERR"))];
        let load = load(ends.into());
        assert_eq!(load.last_resource_ms(), Some(9.0));
    }

    fn resource(end_ms: Option<f64>, failure: Option<&str>) -> Resource {
        Resource {
            url: "http://a.test/x".into(),
            destination: "image".into(),
            status: Some(200),
            protocol: None,
            media_type: None,
            sha256: None,
            bytes: None,
            decoded: None,
            start_ms: Some(0.0),
            sent_ms: None,
            first_byte_ms: None,
            end_ms,
            initiator: None,
            redirected_to: None,
            failure: failure.map(str::to_owned),
        }
    }

    fn load(resources: Vec<Resource>) -> PageLoad {
        PageLoad {
            browser: None,
            load_ms: Some(5.0),
            first_paint_ms: None,
            largest_paint_ms: None,
            first_byte_ms: None,
            began_ms: None,
            connections: None,
            url: "http://a.test/".into(),
            errors: Vec::new(),
            resources,
        }
    }
}
