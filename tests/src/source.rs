//! Rust sources, read just well enough to tell code from comments, strings and tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust file below `folder`, build output left out.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if entry.file_name() != "target" && entry.file_name() != "node_modules" {
                found.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The text of a source file.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether a file below `src/` is only there for tests.
pub fn is_test_file(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// The code of a file: comments and the contents of strings blanked out, line by line as it stood, up to
/// the unit tests at its end.
pub fn code(text: &str) -> String {
    let shipped = &text[..unit_tests(text)];
    let mut code = String::with_capacity(shipped.len());
    let mut rest = shipped;
    while let Some(first) = rest.chars().next() {
        let skipped = skip(rest);
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            // Line ends stay, so that what is found can be named by its line.
            code.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// The names of the tests in a file.
pub fn tests_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= ["#[test]", "#[tokio::test"].iter().any(|mark| line.starts_with(mark));
        } else if !line.starts_with("//") {
            let name = line.split_once("fn ").and_then(|(_, rest)| rest.split_once('('));
            found.extend(name.filter(|_| is_test).map(|(name, _)| name.to_owned()));
            is_test = false;
        }
    }
    found
}

/// Where the unit tests at the end begin: `mod tests {`, not the `mod tests;` that only names a file.
fn unit_tests(text: &str) -> usize {
    const GATE: &str = "#[cfg(test)]\nmod ";
    let opens = |at: &usize| text[at + GATE.len()..].lines().next().is_some_and(|line| line.ends_with('{'));
    text.match_indices(GATE).map(|(at, _)| at).find(opens).unwrap_or(text.len())
}

/// The length of the comment, string or character literal that `text` begins with; 0 when it begins with code.
fn skip(text: &str) -> usize {
    let bytes = text.as_bytes();
    let to = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    match bytes[0] {
        b'/' if text.starts_with("//") => text.find('\n').unwrap_or(text.len()),
        b'/' if text.starts_with("/*") => to("*/", 2),
        b'r' if text.starts_with("r\"") => to("\"", 2),
        b'r' if text.starts_with("r#\"") => to("\"#", 3),
        b'r' if text.starts_with("r##\"") => to("\"##", 4),
        b'"' => closing_quote(bytes),
        // A lifetime has no closing quote within reach; a character does.
        b'\'' if bytes.get(1) == Some(&b'\\') => to("'", 3),
        b'\'' if text.chars().nth(2) == Some('\'') => 2 + text.chars().nth(1).map_or(1, char::len_utf8),
        _ => 0,
    }
}

fn closing_quote(bytes: &[u8]) -> usize {
    let mut position = 1;
    while position < bytes.len() {
        match bytes[position] {
            b'\\' => position += 2,
            b'"' => return position + 1,
            _ => position += 1,
        }
    }
    bytes.len()
}

/// The lines, counted from 1, on which `name` stands as code of its own: not as the end of a longer word.
pub fn lines_with(code: &str, name: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let stands = |line: &str| {
        line.match_indices(name).any(|(at, _)| {
            let before = line[..at].chars().next_back().is_some_and(is_word);
            let after = line[at + name.len()..].chars().next().is_some_and(is_word);
            !(before || after && name.chars().next_back().is_some_and(is_word))
        })
    };
    code.lines().enumerate().filter(|(_, line)| stands(line)).map(|(index, _)| index + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_no_code() {
        let text = "let a = \"fs::read \\\" fs::\"; // fs::read\n/* fs::\n */ let b = r#\"fs::\"#; let c = '\"'; fs::read(d);";
        assert_eq!(lines_with(&code(text), "fs::"), [3]);
    }

    #[test]
    fn tests_are_told_from_what_only_has_their_names() {
        let text = "#[test]\nfn one() {}\n#[tokio::test(flavor = \"x\")]\n#[ignore]\n// why\nasync fn two() {}\nfn three() {}\n#[cfg(test)]\nfn four() {}";
        assert_eq!(tests_in(text), ["one", "two"]);
    }

    #[test]
    fn lifetimes_do_not_swallow_the_code_behind_them() {
        assert_eq!(lines_with(&code("fn f<'a>(x: &'a str) { fs::read(x) }"), "fs::"), [1]);
        assert_eq!(lines_with(&code("let q = '\\''; fs::read(x)"), "fs::"), [1]);
    }

    #[test]
    fn unit_tests_at_the_end_are_no_shipped_code() {
        let with_tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n use std::fs::read; }";
        assert!(lines_with(&code(with_tests), "fs::").is_empty());
        assert_eq!(lines_with(&code("#[cfg(test)]\nmod tests;\nuse std::fs::read;"), "fs::"), [3]);
    }

    #[test]
    fn a_name_within_a_longer_word_does_not_count() {
        assert!(lines_with("unsafe_code prefs::x", "unsafe").is_empty());
        assert!(lines_with("unsafe_code prefs::x", "fs::").is_empty());
        assert_eq!(lines_with("pub unsafe fn x()", "unsafe"), [1]);
    }
}
