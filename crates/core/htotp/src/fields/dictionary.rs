//! The built-in dictionary: field lines and names that browsers and origins send all over the web.
//! Its order is part of the wire format (docs/htotp.md, "Dictionary"): append only, with a new version.

/// Lines (name, value); an empty value stands for a name whose values vary.
#[rustfmt::skip]
pub const LINES: &[(&str, &str)] = &[
    // The first fifty-eight cost one byte as whole lines.
    (":method", "GET"), (":method", "POST"), (":method", "HEAD"), (":scheme", "http"), (":scheme", "https"),
    (":path", "/"), (":path", "/favicon.ico"), (":status", "200"), (":status", "304"), (":status", "404"),
    (":status", "206"), (":status", "301"), (":status", "302"), (":status", "204"),
    ("accept", "*/*"),
    ("accept", "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"),
    ("accept", "image/jxl,image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"),
    ("accept", "text/css,*/*;q=0.1"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/jxl,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept", "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"),
    ("accept-encoding", "gzip, deflate"), ("accept-encoding", "gzip, deflate, br"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-US,en;q=0.9"), ("accept-language", "en-US,en;q=0.5"),
    ("upgrade-insecure-requests", "1"), ("cache-control", "max-age=0"), ("cache-control", "no-cache"),
    ("pragma", "no-cache"), ("dnt", "1"), ("sec-gpc", "1"),
    ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site"),
    ("sec-fetch-site", "none"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-mode", "cors"),
    ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "image"), ("sec-fetch-dest", "script"),
    ("sec-fetch-dest", "style"), ("sec-fetch-dest", "font"), ("sec-fetch-dest", "document"),
    ("sec-fetch-dest", "empty"), ("sec-fetch-user", "?1"),
    ("accept-ranges", "bytes"), ("vary", "Accept-Encoding"), ("content-encoding", "gzip"),
    ("content-type", "text/html; charset=utf-8"), ("content-type", "text/css"),
    ("content-type", "application/javascript"), ("content-type", "text/javascript"),
    ("content-type", "image/svg+xml"), ("content-type", "image/png"), ("content-type", "image/jpeg"),
    ("content-type", "image/webp"), ("content-type", "font/woff2"), ("content-type", "text/html"),
    ("server", "nginx"), ("server", "Apache"),
    // From here on two bytes as whole lines.
    ("content-encoding", "br"), ("content-encoding", "zstd"), ("content-type", "application/json"),
    ("content-type", "text/plain; charset=utf-8"), ("content-type", "image/gif"), ("content-type", "image/x-icon"),
    ("content-type", "text/css; charset=utf-8"), ("content-type", "text/javascript; charset=utf-8"),
    ("content-type", "text/html; charset=UTF-8"), ("content-type", "image/avif"), ("content-type", "font/woff"),
    ("cache-control", "no-store"), ("cache-control", "private"), ("cache-control", "public, max-age=31536000"),
    ("cache-control", "public, max-age=31536000, immutable"), ("cache-control", "max-age=31536000"),
    ("cache-control", "max-age=3600"), ("cache-control", "max-age=86400"),
    ("cache-control", "no-cache, no-store, must-revalidate"), ("cache-control", "public"),
    ("x-content-type-options", "nosniff"), ("access-control-allow-origin", "*"), ("expires", "0"),
    ("strict-transport-security", "max-age=31536000"), ("x-frame-options", "SAMEORIGIN"),
    ("x-xss-protection", "1; mode=block"), ("content-length", "0"), ("te", "trailers"), ("priority", "u=1, i"),
    ("priority", "u=0, i"), ("priority", "i"), ("sec-ch-ua-mobile", "?0"), ("sec-ch-ua-platform", "\"Windows\""),
    ("sec-ch-ua-platform", "\"Linux\""), ("sec-ch-ua-platform", "\"macOS\""), ("vary", "Accept-Encoding, Origin"),
    ("vary", "Origin"), ("vary", "Accept"), (":status", "403"), (":status", "500"), (":status", "502"),
    (":status", "307"), (":status", "308"), (":status", "103"), (":status", "100"), (":method", "PUT"),
    (":method", "DELETE"), (":method", "OPTIONS"), (":method", "PATCH"),
    // Names with common beginnings of their values; the tail is patched in.
    (":path", ""), (":authority", ""),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"),
    ("user-agent", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"),
    ("user-agent", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("user-agent", "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("user-agent", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1"),
    ("user-agent", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15"),
    ("user-agent", "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36"),
    ("user-agent", ""), ("accept", ""), ("accept-language", ""), ("accept-encoding", ""), ("referer", "http://"),
    ("referer", "https://"), ("origin", "http://"), ("origin", "https://"), ("cookie", ""), ("authorization", "Bearer "),
    ("authorization", "Basic "), ("range", "bytes="), ("if-none-match", "\""), ("if-none-match", "W/\""),
    ("if-modified-since", ""), ("if-range", ""), ("if-match", ""), ("content-type", ""), ("content-length", ""),
    ("content-type", "application/x-www-form-urlencoded"), ("content-type", "multipart/form-data; boundary="),
    ("x-requested-with", "XMLHttpRequest"), ("expect", "100-continue"), ("sec-purpose", "prefetch"),
    ("sec-ch-ua", "\"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\", \"Google Chrome\";v=\"140\""), ("sec-ch-ua", ""),
    ("sec-fetch-dest", ""), ("via", "1.1 "), ("forwarded", ""), ("x-forwarded-for", ""), ("max-forwards", ""),
    ("date", ""), ("last-modified", ""), ("etag", "\""), ("etag", "W/\""), ("expires", ""), ("age", ""),
    ("server", "nginx/1."), ("server", "Apache/2.4."), ("server", "cloudflare"), ("server", ""), ("location", "https://"),
    ("location", "http://"), ("location", "/"), ("set-cookie", ""), ("cache-control", "max-age="),
    ("cache-control", "public, max-age="), ("cache-control", "private, max-age="), ("cache-control", ""), ("vary", ""),
    ("content-disposition", ""), ("content-language", ""), ("content-range", "bytes "), ("content-security-policy", ""),
    ("link", ""), ("p3p", ""), ("x-powered-by", ""), ("x-cache", ""), ("retry-after", ""), ("www-authenticate", ""),
    ("access-control-allow-headers", ""), ("access-control-allow-methods", ""), ("access-control-allow-credentials", "true"),
    ("access-control-expose-headers", ""), ("access-control-max-age", ""), ("access-control-request-method", ""),
    ("access-control-request-headers", ""), ("referrer-policy", ""), ("permissions-policy", ""), ("alt-svc", ""),
    ("timing-allow-origin", "*"), ("nel", ""), ("report-to", ""), ("content-encoding", ""), ("accept-ranges", "none"),
    ("proxy-status", ""), ("trailer", ""), ("upgrade", ""), ("transfer-encoding", "chunked"), ("refresh", ""),
    ("x-content-type-options", ""), ("cross-origin-resource-policy", "cross-origin"), ("cross-origin-opener-policy", ""),
    ("allow", "GET, HEAD, OPTIONS"), ("accept-ch", ""), ("service-worker", "script"), ("purpose", "prefetch"),
    ("content-location", ""), ("clear-site-data", ""), ("priority", ""), ("server-timing", ""), (":status", ""), (":method", ""),
    ("accept", "application/font-woff2;q=1.0,application/font-woff;q=0.9,*/*;q=0.8"), ("accept-encoding", "identity"),
    ("priority", "u=0"), ("priority", "u=1"), ("priority", "u=2"), ("priority", "u=4"), ("priority", "u=5"),
    ("priority", "u=6"), ("priority", "u=2, i"), ("priority", "u=3, i"), ("priority", "u=4, i"), ("priority", "u=5, i"),
];

/// The line whose name is `name` and whose value is exactly `value`.
pub fn whole(name: &[u8], value: &[u8]) -> Option<usize> {
    LINES.iter().position(|(n, v)| n.as_bytes() == name && v.as_bytes() == value && !value.is_empty())
}

/// The line of that name whose value shares most of its beginning and end with `value`.
pub fn nearest(name: &[u8], value: &[u8]) -> Option<usize> {
    let shared = |candidate: &[u8]| {
        let (prefix, suffix) = super::codec::shared_ends(candidate, value);
        prefix + suffix
    };
    LINES
        .iter()
        .enumerate()
        .filter(|(_, (n, _))| n.as_bytes() == name)
        .max_by_key(|(index, (_, v))| (shared(v.as_bytes()), std::cmp::Reverse(*index)))
        .map(|(index, _)| index)
}
