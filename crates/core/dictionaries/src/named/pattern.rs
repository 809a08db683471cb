//! `match` of `Use-As-Dictionary` (RFC 9842 §2.1.1): a URL pattern (WHATWG URL Pattern) for URLs of one origin. Of the
//! notation what dictionaries are named with is read: text, `*`, `:name` for a segment, `\` before a sign that is meant
//! itself. A pattern with more is nobody's loss: its dictionary is not used.

use url::Url;

/// What is longer, or has more parts, is not read.
const LONGEST: usize = 1_024;
const MOST_PARTS: usize = 64;
/// Matching is quick for URLs up to this.
const LONGEST_URL: usize = 8 * 1_024;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// `*`: anything, or nothing.
    Any,
    /// `:name`: at least one character, but no slash.
    Segment,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    path: Vec<Part>,
    /// None where any query matches.
    query: Option<Vec<Part>>,
}

impl Pattern {
    /// The pattern that `text` is in the response to a request for `base`. `None`: it is for another origin, is none, or
    /// is one of those that are not read.
    pub fn read(text: &str, base: &Url) -> Option<Pattern> {
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        let text = match text.strip_prefix(&base.origin().ascii_serialization()) {
            Some(rest) if rest.starts_with(['/', '?', '*']) => rest,
            // RFC 9842 §2.1.1: the pattern MUST be for the origin of the dictionary.
            _ if text.contains("://") || text.starts_with("//") => return None,
            _ => text,
        };
        let (path, query) = parts(text)?;
        let of_base = || Some(vec![Part::Text(base.path().to_owned())]);
        let path = match path.first() {
            None => of_base()?,
            Some(Part::Text(first)) if first.starts_with('/') => path,
            // Relative to the dictionary's own folder.
            Some(_) => {
                let folder = &base.path()[..=base.path().rfind('/')?];
                let mut all = vec![Part::Text(folder.to_owned())];
                all.extend(path);
                all
            }
        };
        Some(Pattern { path, query })
    }

    /// Whether a URL of the dictionary's origin matches.
    pub fn matches(&self, url: &Url) -> bool {
        url.as_str().len() <= LONGEST_URL
            && fits(&self.path, url.path())
            && self.query.as_ref().is_none_or(|query| fits(query, url.query().unwrap_or_default()))
    }
}

/// The parts of path and query.
fn parts(text: &str) -> Option<(Vec<Part>, Option<Vec<Part>>)> {
    let (mut path, mut query) = (Vec::new(), None);
    let mut letters = text.chars().peekable();
    // Whether what stands before could be modified by a sign that follows it.
    let mut is_group = false;
    while let Some(letter) = letters.next() {
        let is_path = query.is_none();
        let now = query.as_mut().unwrap_or(&mut path);
        let was_group = std::mem::replace(&mut is_group, false);
        match letter {
            '*' if !was_group => {
                now.push(Part::Any);
                is_group = true;
            }
            ':' if letters.peek().is_some_and(|next| next.is_ascii_alphabetic() || *next == '_') => {
                if !is_path {
                    return None;
                }
                while letters.peek().is_some_and(|next| next.is_ascii_alphanumeric() || *next == '_') {
                    letters.next();
                }
                path.push(Part::Segment);
                is_group = true;
            }
            '?' if !was_group && is_path => query = Some(Vec::new()),
            // Modifiers, groups, regular expressions (which RFC 9842 §2.1.1 rules out), fragments.
            '*' | '?' | '+' | '{' | '}' | '(' | ')' | '#' => return None,
            // An escaped one begins the query as well.
            '\\' if is_path && letters.peek() == Some(&'?') => {
                letters.next();
                query = Some(Vec::new());
            }
            '\\' => put(now, letters.next()?)?,
            letter => put(now, letter)?,
        }
    }
    let all = query.iter().flatten().chain(&path);
    let has_dots = path.iter().any(|part| matches!(part, Part::Text(text) if has_dot_segment(text)));
    (all.count() <= MOST_PARTS && !has_dots).then_some((path, query))
}

/// Adds a letter, if it stands in URLs as it is.
fn put(parts: &mut Vec<Part>, letter: char) -> Option<()> {
    if !letter.is_ascii_graphic() || "\"<>^`{}|\\#".contains(letter) {
        return None;
    }
    match parts.last_mut() {
        Some(Part::Text(text)) => text.push(letter),
        _ => parts.push(Part::Text(letter.into())),
    }
    Some(())
}

fn has_dot_segment(text: &str) -> bool {
    text.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// Whether all of `text` is these parts in turn. Takes at most as many steps as both are long, multiplied.
fn fits(parts: &[Part], text: &str) -> bool {
    let text = text.as_bytes();
    // At which places what was looked at so far may end.
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for part in parts {
        let mut next = vec![false; text.len() + 1];
        let mut may_go_on = false;
        for at in 0..=text.len() {
            match part {
                Part::Text(literal) => {
                    if ends[at] && text[at..].starts_with(literal.as_bytes()) {
                        next[at + literal.len()] = true;
                    }
                }
                Part::Any => {
                    may_go_on |= ends[at];
                    next[at] = may_go_on;
                }
                Part::Segment => {
                    next[at] = may_go_on && at > 0 && text[at - 1] != b'/';
                    may_go_on = next[at] || ends[at];
                }
            }
        }
        ends = next;
    }
    ends[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, url: &str) -> Option<bool> {
        let base = Url::parse("https://site.test/app/v1/main.js?x=1").unwrap();
        let url = Url::parse("https://site.test").unwrap().join(url).ok()?;
        Some(Pattern::read(pattern, &base)?.matches(&url))
    }

    #[test]
    fn patterns_match_as_they_are_written() {
        for (pattern, url, expected) in [
            ("/app/*/main.js", "/app/v2/main.js", true),
            ("/app/*/main.js", "/app/v2/deep/main.js?any=query", true),
            ("/app/*/main.js", "/app/main.js", false),
            ("/app/*", "/app/", true),
            ("/app/*", "/App/x", false),
            ("*", "/app/v1/x/y?z", true),
            ("*", "/app/v2/x", false),
            ("/*", "/anything?at=all", true),
            ("/app/:version/main.js", "/app/v2/main.js", true),
            ("/app/:version/main.js", "/app/v2/deep/main.js", false),
            ("/app/:version/main.js", "/app//main.js", false),
            ("/a:b", "/ax", true),
            ("/a:1", "/a:1", true),
            ("other.js", "/app/v1/other.js", true),
            ("other.js", "/other.js", false),
            ("/list?page=*", "/list?page=7", true),
            ("/list?page=*", "/list?x&page=7", false),
            ("/list?page=*", "/list", false),
            ("/list*\\?v=1", "/list/x?v=1", true),
            ("?v=*", "/app/v1/main.js?v=3", true),
            ("?v=*", "/app/v1/other.js?v=3", false),
            ("https://site.test/app/*", "/app/x", true),
            ("/a\\*b", "/a*b", true),
            ("/a\\*b", "/axb", false),
            ("/%C3%A9*", "/é.js", true),
            ("/a*b*c", "/axxbyybzzc", true),
            ("/a*b*c", "/axxbyyb", false),
        ] {
            assert_eq!(matches(pattern, url), Some(expected), "{pattern} {url}");
        }
    }

    #[test]
    fn what_is_for_another_origin_or_is_not_read_is_none() {
        for pattern in [
            "",
            "https://else.test/*",
            "https://site.test.else/*",
            "http://site.test/*",
            "//else.test/*",
            "/a(b|c)",
            "/{a}?",
            "/a*?",
            "/:name*",
            "/a+",
            "/é",
            "/a b",
            "/a#b",
            "/a\\#b",
            "/a/../b",
            "/list?page=:n",
            "/a\\",
            &"/a".repeat(1_000),
            &"/*".repeat(80),
        ] {
            assert_eq!(matches(pattern, "/"), None, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_pattern_or_none_and_any_url_is_judged(pattern in "\\PC{0,40}", url in "[a-z*:?/.%]{0,40}") {
            let _ = matches(&pattern, &format!("/{url}"));
        }

        #[test]
        fn a_pattern_without_signs_matches_itself_alone(path in "(/[a-z0-9_-]{1,8}){1,5}", other in "(/[a-z0-9_-]{1,8}){1,5}") {
            prop_assert_eq!(matches(&path, &path), Some(true));
            prop_assert_eq!(matches(&path, &other), Some(path == other));
        }

        #[test]
        fn an_asterisk_stands_for_any_part(head in "[a-z/]{0,9}", middle in "[a-z/]{0,9}", tail in "[a-z/]{0,9}") {
            let url = format!("/{head}{middle}{tail}");
            prop_assume!(!url.starts_with("//"));
            prop_assert_eq!(matches(&format!("/{head}*{tail}"), &url), Some(true));
        }
    }
}
