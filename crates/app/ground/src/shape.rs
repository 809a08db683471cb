//! Which URLs are probably made by one template: their addresses look alike. Pure.

/// Segments of a path, and bytes of a shape, that are looked at; longer ones are alike to their end.
const SEGMENTS: usize = 16;
const LONGEST: usize = 512;

/// A URL, and what those of its template have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    url: String,
    shape: String,
}

impl Address {
    /// Of an absolute URL without fragment.
    pub(crate) fn of(url: &str) -> Address {
        Address { url: url.to_owned(), shape: shape(url) }
    }

    /// All of it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The origin, and the path and query without what varies within a template: equal for URLs that may be alike.
    pub(crate) fn shape(&self) -> &str {
        &self.shape
    }
}

/// How much two addresses of the same shape are alike: bytes that their URLs begin with.
pub(crate) fn likeness(one: &Address, other: &Address) -> usize {
    one.url.bytes().zip(other.url.bytes()).take_while(|(one, other)| one == other).count()
}

fn shape(url: &str) -> String {
    let (rest, query) = url.split_once('?').unwrap_or((url, ""));
    let after_scheme = rest.find("://").map_or(0, |at| at + 3);
    let path_at = rest[after_scheme..].find('/').map_or(rest.len(), |at| after_scheme + at);
    let (origin, path) = rest.split_at(path_at);
    let mut shape = origin.to_owned();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let (last, folders) = segments.split_last().unwrap_or((&"", &[]));
    for folder in folders.iter().take(SEGMENTS) {
        shape.push('/');
        push_without_numbers(folder, &mut shape);
    }
    shape.push('/');
    // The last is a name or a number; what kind of thing it is stands behind its dot.
    if !last.is_empty() {
        shape.push('*');
        if let Some((_, kind)) = last.rsplit_once('.') {
            shape.push('.');
            push_without_numbers(kind, &mut shape);
        }
    }
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()).take(SEGMENTS) {
        shape.push('&');
        push_without_numbers(parameter.split('=').next().unwrap_or_default(), &mut shape);
    }
    // Within the origin, which is never cut.
    let most = LONGEST.max(origin.len());
    if shape.len() > most {
        let end = (0..=most).rev().find(|at| shape.is_char_boundary(*at)).unwrap_or(0);
        shape.truncate(end);
    }
    shape
}

/// Each run of digits as one 0.
fn push_without_numbers(text: &str, shape: &mut String) {
    let mut in_number = false;
    for letter in text.chars() {
        let is_digit = letter.is_ascii_digit();
        if !(is_digit && in_number) {
            shape.push(if is_digit { '0' } else { letter });
        }
        in_number = is_digit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        shape(one) == shape(other)
    }

    #[test]
    fn urls_of_a_template_have_one_shape_and_others_another() {
        for (one, other) in [
            ("http://a.test/news/2024/12/a-title", "http://a.test/news/2025/1/another"),
            ("http://a.test/item?id=7", "http://a.test/item?id=123"),
            ("http://a.test/app.3f2a.js", "http://a.test/app.99c0.js"),
            ("http://a.test/user/12/posts/3.html", "http://a.test/user/7/posts/44.html"),
            ("http://a.test", "http://a.test/"),
        ] {
            assert!(alike(one, other), "{} {}", shape(one), shape(other));
        }
        for (one, other) in [
            ("http://a.test/news/1", "http://b.test/news/1"),
            ("http://a.test/news/1", "https://a.test/news/1"),
            ("http://a.test/news/1", "http://a.test:8080/news/1"),
            ("http://a.test/news/1", "http://a.test/blog/1"),
            ("http://a.test/a.css", "http://a.test/a.js"),
            ("http://a.test/", "http://a.test/news"),
            ("http://a.test/news", "http://a.test/news/"),
            ("http://a.test/item?id=7", "http://a.test/item?page=7"),
            ("http://a.test/item?id=7", "http://a.test/item"),
        ] {
            assert!(!alike(one, other), "{}", shape(one));
        }
    }

    #[test]
    fn a_shape_is_bounded_but_for_its_origin() {
        let long = "é/".repeat(100_000);
        assert!(shape(&format!("http://a.test/{long}?{long}")).len() <= LONGEST);
        let origin = format!("http://{}.test", "a".repeat(2 * LONGEST));
        assert!(shape(&format!("{origin}/x")).starts_with(&origin));
        assert!(!alike(&format!("{origin}/x"), &format!("{origin}b/x")));
    }

    #[test]
    fn likeness_is_what_both_begin_with() {
        let [one, other] = ["http://a.test/ab", "http://a.test/ac"].map(Address::of);
        assert_eq!(likeness(&one, &other), 15);
    }
}
