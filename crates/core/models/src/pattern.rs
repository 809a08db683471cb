//! URLs that differ only in what varies from page to page or from one release of a site to the next: numbers, hashes,
//! the words of a title, values in a query.

use url::Url;

/// A number.
const NUMBER: &str = "#";
/// A hash or another name that nobody reads.
const HASH: &str = "*";
/// The words of a title.
const TITLE: &str = "~";

/// What the URLs of pages like this one have in common, as a text: `https://news.test/2024/05/some-long-title` is like
/// `https://news.test/#/#/~`. `None` where nothing in it varies, so that it is like no other page.
pub fn template(url: &Url) -> Option<String> {
    let like = generalised(url, true);
    (like != plain(url)).then_some(like)
}

/// What the URLs of one resource have in common from one release to the next.
pub(crate) fn pattern(url: &Url) -> String {
    generalised(url, false)
}

/// A URL as a key.
pub(crate) fn plain(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

fn generalised(url: &Url, titles: bool) -> String {
    let mut like = url[..url::Position::BeforePath].to_owned();
    for segment in url.path().split('/').skip(1) {
        like.push('/');
        like.push_str(&general_segment(segment, titles));
    }
    if let Some(query) = url.query() {
        // The names in the order in which they stand: that is the site's, like them.
        let names: Vec<&str> =
            query.split('&').map(|pair| pair.split('=').next().unwrap_or_default()).collect();
        like.push('?');
        like.push_str(&names.join("&"));
    }
    like
}

fn general_segment(segment: &str, titles: bool) -> String {
    let (stem, extension) = match segment.rsplit_once('.') {
        Some((stem, extension)) if is_extension(extension) => (stem, Some(extension)),
        _ => (segment, None),
    };
    let mut general = if titles && is_title(stem) { TITLE.to_owned() } else { general_words(stem) };
    if let Some(extension) = extension {
        general.push('.');
        general.push_str(extension);
    }
    general
}

fn is_extension(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_separator(byte: char) -> bool {
    matches!(byte, '-' | '_' | '.' | '~' | '@' | ',' | ';' | '=')
}

/// Three words and more.
fn is_title(stem: &str) -> bool {
    let words = stem.split(is_separator).filter(|word| word.chars().any(char::is_alphabetic));
    words.count() >= 3
}

/// Each part between separators by itself.
fn general_words(stem: &str) -> String {
    let mut general = String::with_capacity(stem.len());
    let mut rest = stem;
    while !rest.is_empty() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        general.push_str(&general_word(&rest[..end]));
        let after = rest[end..].chars().next().map_or(0, char::len_utf8);
        general.push_str(&rest[end..end + after]);
        rest = &rest[end + after..];
    }
    general
}

fn general_word(word: &str) -> String {
    if is_hash(word) {
        return HASH.to_owned();
    }
    // Runs of digits, as in `page2` and `2024`.
    let mut general = String::with_capacity(word.len());
    let mut in_number = false;
    for letter in word.chars() {
        let is_digit = letter.is_ascii_digit();
        match (is_digit, in_number) {
            (true, false) => general.push_str(NUMBER),
            (true, true) => {}
            (false, _) => general.push(letter),
        }
        in_number = is_digit;
    }
    general
}

/// Letters and digits mixed, as no word has them: hexadecimal from six on, anything from ten on.
fn is_hash(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let mixed = digits > 0 && digits < word.len();
    let hexadecimal = word.len() >= 6 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let opaque = word.len() >= 10 && digits >= 2 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    mixed && (hexadecimal || opaque)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(url: &str) -> Option<String> {
        template(&Url::parse(url).unwrap())
    }

    #[test]
    fn pages_that_differ_in_numbers_titles_hashes_or_values_are_alike() {
        let alike = [
            ("http://a.test/item/17", "http://a.test/item/4"),
            ("http://a.test/2024/05/how-it-was-made", "http://a.test/2025/11/a-night-on-the-ice"),
            ("http://a.test/p/3f2a9c1b7d", "http://a.test/p/00ab9c1b7d"),
            ("http://a.test/list?page=2&sort=up", "http://a.test/list?page=9&sort=down#top"),
            ("http://a.test/page2.html", "http://a.test/page31.html"),
        ];
        for (one, other) in alike {
            assert_eq!(like(one), like(other), "{one}");
            assert!(like(one).is_some(), "{one}");
        }
    }

    #[test]
    fn pages_that_differ_in_words_hosts_or_names_of_values_are_not() {
        let unlike = [
            ("http://a.test/item/17", "http://a.test/user/17"),
            ("http://a.test/item/17", "http://b.test/item/17"),
            ("http://a.test/item/17", "https://a.test/item/17"),
            ("http://a.test/list?page=2", "http://a.test/list?sort=2"),
            ("http://a.test/1/more", "http://a.test/1/"),
        ];
        for (one, other) in unlike {
            assert_ne!(like(one), like(other), "{one}");
        }
        assert_eq!(like("http://a.test/about"), None);
        assert_eq!(like("http://a.test/"), None);
    }

    #[test]
    fn releases_of_a_file_have_one_pattern_and_other_files_another() {
        let of = |url: &str| pattern(&Url::parse(url).unwrap());
        assert_eq!(of("http://a.test/app.3f2a9c1b.js"), of("http://a.test/app.99ffee00.js"));
        assert_eq!(of("http://a.test/app-3f2a9c1b.min.js?v=1"), of("http://a.test/app-0a2a9c1b.min.js?v=2"));
        assert_eq!(of("http://a.test/lib/jquery-3.7.1.js"), of("http://a.test/lib/jquery-3.6.0.js"));
        assert_ne!(of("http://a.test/app.js"), of("http://a.test/main.js"));
        assert_ne!(of("http://a.test/how-it-was.png"), of("http://a.test/what-it-is.png"));
        assert_ne!(of("http://a.test/feedback.css"), of("http://a.test/deadbeef.css"), "words are no hashes");
    }
}
