//! What of a URL may be seen in logs and events.

use url::Url;

/// The URL as it may be shown: never with user name or password, and with `host_only` without path and
/// query too. A text that is no URL (`host:port` of a CONNECT) has nothing to hide and is shown as it is,
/// unless `host_only` is set and it has a path.
pub fn shown_url(url: &str, host_only: bool) -> String {
    // Each request is told of twice: what has nothing to hide is not taken apart.
    if !host_only && !url.contains('@') {
        return url.into();
    }
    let Ok(mut parsed) =
        Url::parse(url).map_err(drop).and_then(|url| url.has_host().then_some(url).ok_or(()))
    else {
        let end = if host_only { url.find(['/', '?']).unwrap_or(url.len()) } else { url.len() };
        return url[..end].into();
    };
    // Neither fails for a URL with a host.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    if host_only {
        parsed.set_path("/");
        parsed.set_query(None);
        parsed.set_fragment(None);
    }
    parsed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        assert_eq!(shown_url("http://me:secret@site.test/a?b", false), "http://site.test/a?b");
    }

    #[test]
    fn host_only_hides_path_and_query() {
        assert_eq!(shown_url("http://me:x@site.test:8080/a/b?c=d#e", true), "http://site.test:8080/");
        assert_eq!(shown_url("site.test:443", true), "site.test:443");
        assert_eq!(shown_url("/private/path", true), "");
    }

    #[test]
    fn otherwise_urls_are_shown_as_they_were_written() {
        assert_eq!(shown_url("http://site.test/%7ea", false), "http://site.test/%7ea");
        assert_eq!(shown_url("site.test:443", false), "site.test:443");
    }
}
