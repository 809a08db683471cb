//! Import maps: from a module's specifier to a URL (HTML, §8.1.5.1 "Import map" and "resolve a module specifier").

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use url::Url;

/// Rules kept of all maps of a page; more are dropped.
const MAX_RULES: usize = 4096;

/// Specifiers (or, ending with `/`, their beginnings) and what they stand for; `None` refuses.
type Rules = BTreeMap<String, Option<Url>>;

/// All import maps of a page so far, merged.
#[derive(Debug, Default)]
pub(crate) struct ImportMap {
    imports: Rules,
    /// By the beginning of the importing script's URL.
    scopes: BTreeMap<String, Rules>,
    /// What scripts are checked by, by URL.
    integrity: BTreeMap<Url, Box<str>>,
    count: usize,
}

impl ImportMap {
    /// Takes in the text of an import map. What an earlier map said stays (HTML, "merge existing and new import maps").
    pub(crate) fn merge(&mut self, json: &str, base: &Url) {
        let Ok(Value::Object(map)) = serde_json::from_str(json) else { return };
        if let Some(Value::Object(imports)) = map.get("imports") {
            merge_rules(&mut self.imports, imports, base, &mut self.count);
        }
        if let Some(Value::Object(scopes)) = map.get("scopes") {
            for (prefix, rules) in scopes {
                let (Ok(prefix), Value::Object(rules)) = (base.join(prefix), rules) else { continue };
                if self.count >= MAX_RULES {
                    return;
                }
                let scope = self.scopes.entry(prefix.into()).or_default();
                merge_rules(scope, rules, base, &mut self.count);
            }
        }
        if let Some(Value::Object(integrity)) = map.get("integrity") {
            let room = MAX_RULES.saturating_sub(self.integrity.len());
            for (key, metadata) in integrity.iter().take(room) {
                if let (Some(url), Some(metadata)) = (url_like(key, base), metadata.as_str()) {
                    self.integrity.entry(url).or_insert_with(|| metadata.into());
                }
            }
        }
    }

    /// The integrity metadata of the script at `url`.
    pub(crate) fn integrity(&self, url: &Url) -> Option<&str> {
        self.integrity.get(url).map(|metadata| &**metadata)
    }

    /// What `specifier` means in the script at `importer`; `None` for a bare one that no map names.
    pub(crate) fn resolve(&self, specifier: &str, importer: &Url) -> Option<Url> {
        let as_url = url_like(specifier, importer);
        let normalized = as_url.as_ref().map_or(specifier, Url::as_str);
        // The longest scope first: keys of the map are sorted, and a prefix comes before what it begins.
        for (prefix, rules) in self.scopes.iter().rev() {
            let within = importer.as_str() == prefix
                || (prefix.ends_with('/') && importer.as_str().starts_with(prefix.as_str()));
            if within && let Some(verdict) = look_up(rules, normalized, as_url.as_ref()) {
                return verdict;
            }
        }
        look_up(&self.imports, normalized, as_url.as_ref()).unwrap_or(as_url)
    }
}

fn merge_rules(into: &mut Rules, rules: &Map<String, Value>, base: &Url, count: &mut usize) {
    for (key, address) in rules {
        if *count >= MAX_RULES {
            return;
        }
        let key = url_like(key, base).map_or_else(|| key.clone(), String::from);
        if key.is_empty() || into.contains_key(&key) {
            continue;
        }
        let address = address.as_str().and_then(|address| url_like(address, base));
        // A beginning must stand for a beginning.
        let address = address.filter(|address| !key.ends_with('/') || address.as_str().ends_with('/'));
        into.insert(key, address);
        *count += 1;
    }
}

/// `None`: no rule fits; `Some(None)`: one fits and refuses.
fn look_up(rules: &Rules, specifier: &str, as_url: Option<&Url>) -> Option<Option<Url>> {
    if let Some(address) = rules.get(specifier) {
        return Some(address.clone());
    }
    // Only URLs of special schemes are matched by their beginning.
    if as_url.is_some_and(|url| !matches!(url.scheme(), "http" | "https" | "file" | "ftp" | "ws" | "wss")) {
        return None;
    }
    // Every beginning of `specifier` that ends with a slash, the longest first.
    specifier.rmatch_indices('/').find_map(|(at, _)| {
        let (key, rest) = specifier.split_at(at + 1);
        let address = rules.get(key)?;
        Some(address.as_ref().and_then(|address| {
            // It must not climb out of what the rule names.
            address.join(rest).ok().filter(|url| url.as_str().starts_with(address.as_str()))
        }))
    })
}

/// HTML, "resolve a URL-like module specifier".
fn url_like(specifier: &str, base: &Url) -> Option<Url> {
    if ["/", "./", "../"].iter().any(|start| specifier.starts_with(start)) {
        return base.join(specifier).ok();
    }
    Url::parse(specifier).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(map: &ImportMap, specifier: &str, importer: &str) -> Option<String> {
        map.resolve(specifier, &Url::parse(importer).unwrap()).map(String::from)
    }

    #[test]
    fn specifiers_resolve_by_the_map() {
        let base = Url::parse("http://site.test/app/index.html").unwrap();
        let mut map = ImportMap::default();
        map.merge(
            r#"{"imports": {"vue": "./vue.js", "lib/": "/lib/", "lib/one": "/one.js", "/app/x.js": "/y.js", "no": null,
                "bad/": "/bad"}, "scopes": {"/app/old/": {"vue": "/vue2.js"}, "/app/": {"only": "/only.js"}}}"#,
            &base,
        );
        let page = "http://site.test/app/main.js";
        let old = "http://site.test/app/old/main.js";
        let cases = [
            ("vue", page, Some("http://site.test/app/vue.js")),
            ("vue", old, Some("http://site.test/vue2.js")),
            ("only", old, Some("http://site.test/only.js")),
            ("only", "http://site.test/main.js", None),
            ("lib/two/three.js", page, Some("http://site.test/lib/two/three.js")),
            ("lib/one", page, Some("http://site.test/one.js")),
            ("lib/../two.js", page, None),
            ("./x.js", page, Some("http://site.test/y.js")),
            ("./z.js", page, Some("http://site.test/app/z.js")),
            ("../z.js", old, Some("http://site.test/app/z.js")),
            ("http://cdn.test/a.js", page, Some("http://cdn.test/a.js")),
            ("no", page, None),
            ("bad/x", page, None),
            ("bare", page, None),
            ("x/./y", page, None),
        ];
        for (specifier, importer, expected) in cases {
            assert_eq!(resolved(&map, specifier, importer).as_deref(), expected, "{specifier} in {importer}");
        }
        map.merge(r#"{"imports": {"vue": "/late.js", "late": "/late.js"}}"#, &base);
        assert_eq!(resolved(&map, "vue", page).as_deref(), Some("http://site.test/app/vue.js"));
        assert_eq!(resolved(&map, "late", page).as_deref(), Some("http://site.test/late.js"));
    }

    #[test]
    fn what_is_no_map_changes_nothing() {
        let base = Url::parse("http://site.test/").unwrap();
        let mut map = ImportMap::default();
        for text in ["", "[]", "{", "{\"imports\": 1}", "{\"imports\": {\"a\": \"b\"}}"] {
            map.merge(text, &base);
        }
        assert_eq!(resolved(&map, "a", "http://site.test/"), None);
    }
}
