//! Custom properties: the values an element sees, and texts with `var()` replaced (CSS Variables 1, §3).

use super::cut::closing;
use std::collections::HashMap;
use std::sync::Arc;

/// Longest text that a replacement may give, in bytes.
const MAX_TEXT: usize = 16 * 1024;
/// Variables within variables.
const MAX_DEPTH: u32 = 16;
/// Replacements for one value.
const MAX_STEPS: u32 = 256;
/// Elements above one that are asked for a variable.
const MAX_ANCESTORS: u32 = 256;

/// The variables set on one element; it inherits those of another.
#[derive(Debug)]
struct Scope {
    outer: Option<u32>,
    values: Vec<(Box<str>, Arc<str>)>,
}

/// All scopes of a page.
#[derive(Debug, Default)]
pub(super) struct Variables {
    scopes: Vec<Scope>,
    /// `initial-value` of `@property`.
    pub(super) initial: HashMap<Box<str>, Arc<str>>,
}

impl Variables {
    pub(super) fn clear(&mut self) {
        self.scopes.clear();
    }

    /// A scope in `outer`; `outer` itself where nothing is set.
    pub(super) fn scope(&mut self, outer: Option<u32>, values: Vec<(Box<str>, Arc<str>)>) -> Option<u32> {
        if values.is_empty() {
            return outer;
        }
        self.scopes.push(Scope { outer, values });
        Some(self.scopes.len() as u32 - 1)
    }

    fn value(&self, mut scope: Option<u32>, name: &str) -> Option<&str> {
        for _ in 0..MAX_ANCESTORS {
            let Some(own) = scope.and_then(|scope| self.scopes.get(scope as usize)) else { break };
            if let Some((_, text)) = own.values.iter().find(|(own, _)| &**own == name) {
                match text.to_ascii_lowercase().as_str() {
                    "initial" => return None,
                    "inherit" | "unset" => {}
                    _ => return Some(text),
                }
            }
            scope = own.outer;
        }
        self.initial.get(name).map(|text| &**text)
    }

    /// `text` with each `var()` replaced; `None` where one has neither value nor fallback, which makes the declaration
    /// invalid at computed-value time.
    pub(super) fn replace(&self, text: &str, scope: Option<u32>) -> Option<String> {
        let mut out = String::new();
        let mut steps = MAX_STEPS;
        self.replace_into(text, scope, 0, &mut steps, &mut out)?;
        Some(out)
    }

    fn replace_into(
        &self,
        mut text: &str,
        scope: Option<u32>,
        depth: u32,
        steps: &mut u32,
        out: &mut String,
    ) -> Option<()> {
        while let Some(at) = find_variable(text) {
            *steps = steps.checked_sub(1)?;
            if depth > MAX_DEPTH {
                return None;
            }
            out.push_str(&text[..at]);
            let open = at + "var".len();
            let end = closing(text, open);
            let inside = &text[open + 1..end];
            let (name, fallback) = match inside.split_once(',') {
                Some((name, fallback)) => (name.trim(), Some(fallback)),
                None => (inside.trim(), None),
            };
            let replaced = self.value(scope, name).and_then(|value| {
                let length = out.len();
                self.replace_into(value, scope, depth + 1, steps, out).or_else(|| {
                    out.truncate(length);
                    None
                })
            });
            if replaced.is_none() {
                self.replace_into(fallback?.trim(), scope, depth + 1, steps, out)?;
            }
            text = text.get(end + 1..).unwrap_or_default();
        }
        out.push_str(text);
        (out.len() <= MAX_TEXT).then_some(())
    }
}

/// Where the next `var(` begins.
fn find_variable(text: &str) -> Option<usize> {
    let windows = text.as_bytes().windows(4);
    let found = windows.enumerate().filter(|(_, window)| window.eq_ignore_ascii_case(b"var("));
    found.map(|(at, _)| at).find(|&at| {
        // Not the end of another name.
        at == 0 || !matches!(text.as_bytes()[at - 1], b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9')
    })
}

/// The names that `text` refers to.
pub(super) fn references(mut text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    while let Some(at) = find_variable(text) {
        text = &text[at + "var(".len()..];
        let end = text.find([',', ')']).unwrap_or(text.len());
        names.push(text[..end].trim());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(values: &[(&str, &str)], text: &str) -> Option<String> {
        let mut variables = Variables::default();
        let values = values.iter().map(|&(name, text)| (name.into(), text.into())).collect();
        let outer = variables.scope(None, values);
        let inner = variables.scope(outer, vec![("--inner".into(), "i".into())]);
        variables.replace(text, inner)
    }

    #[test]
    fn variables_are_replaced_with_what_the_element_sees() {
        let values =
            [("--a", "url(x)"), ("--b", "var(--a) y"), ("--none", "initial"), ("--loop", "var(--loop)")];
        let cases = [
            ("var(--a)", Some("url(x)")),
            ("1 VAR( --b ) 2", Some("1 url(x) y 2")),
            ("var(--inner)", Some("i")),
            ("var(--x)", None),
            ("var(--x, z)", Some("z")),
            ("var(--x, var(--y, w))", Some("w")),
            ("var(--none)", None),
            ("var(--loop)", None),
            ("var(--loop,ok)", Some("ok")),
            ("var(--a", Some("url(x)")),
            ("plain", Some("plain")),
        ];
        for (text, expected) in cases {
            assert_eq!(replaced(&values, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_billion_laughs_are_not_laughed() {
        let names: Vec<String> = (0..20).map(|level| format!("--v{level}")).collect();
        let texts: Vec<String> = (0..20).map(|level| format!("var(--v{})", level + 1).repeat(100)).collect();
        let values: Vec<(&str, &str)> =
            names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(replaced(&values, "var(--v0)"), None);
    }

    #[test]
    fn references_are_told() {
        assert_eq!(references("var(--a) var( --b ,var(--c))"), ["--a", "--b", "--c"]);
    }
}
