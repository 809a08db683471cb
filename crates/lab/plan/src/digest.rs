//! Tells loads of one plan from those of another: a hash of all in a plan's file that a load follows from. What is only said,
//! drawn or compared afterwards is left out, and how often and which of it is loaded: what was measured stays good when a
//! sentence is put better, and a whole run goes on from a quick one. Pure.

use farhop_workload::origins::site::sha256_hex;
use serde_json::{Map, Value};

/// Of a plan nothing of which changes a load, and the same of its tables.
const OF_PLANS: [&str; 9] = ["title", "study", "notes", "goal", "base", "runs", "quick", "plot", "claim"];
const OF_TABLES: [&str; 3] = ["at", "group", "line"];

/// What a plan's digest is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Source {
    /// Its file.
    pub(crate) text: String,
    /// What each of its links names: its file, and those that this names in turn.
    pub(crate) named: Vec<Vec<String>>,
}

impl Source {
    /// The digest of the plan.
    pub(crate) fn digest(&self) -> String {
        self.digest_with(&Before { pages: usize::MAX, links: usize::MAX, has_variant: &|_| true })
    }

    /// The digest that the plan had before something was added to it: a load follows from nothing of another page, link or
    /// variant.
    pub(crate) fn digest_with(&self, before: &Before<'_>) -> String {
        digest(&self.text, &self.named, before)
    }
}

/// What a plan had before more was added to it.
pub(crate) struct Before<'a> {
    /// So many of its pages: others were added behind them.
    pub(crate) pages: usize,
    /// So many of its links, likewise.
    pub(crate) links: usize,
    /// These of its variants, wherever others were added.
    pub(crate) has_variant: &'a dyn Fn(&str) -> bool,
}

fn digest(text: &str, named: &[Vec<String>], before: &Before<'_>) -> String {
    // A text that is no table was refused before.
    let mut plan: Map<String, Value> = toml_edit::de::from_str(text).unwrap_or_default();
    if let Some(variants) = plan.get_mut("variant").and_then(Value::as_array_mut) {
        let has = |variant: &Value| {
            variant.get("name").and_then(Value::as_str).is_none_or(|name| (before.has_variant)(name))
        };
        variants.retain(has);
    }
    for (table, count) in [("page", before.pages), ("link", before.links)] {
        let all = plan.get_mut(table).and_then(Value::as_array_mut);
        all.into_iter().for_each(|all| all.truncate(count));
    }
    // Figures over time want more of a load than the others.
    let over_time = |plot: &Value| plot.get("x").and_then(Value::as_str) == Some("time");
    let watched = plan.get("plot").and_then(Value::as_array).is_some_and(|plots| plots.iter().any(over_time));
    OF_PLANS.iter().for_each(|key| drop(plan.remove(*key)));
    for table in ["page", "link", "variant"] {
        let tables = plan.get_mut(table).and_then(Value::as_array_mut);
        for table in tables.into_iter().flatten().filter_map(Value::as_object_mut) {
            OF_TABLES.iter().for_each(|key| drop(table.remove(*key)));
        }
    }
    let mut said = String::new();
    in_order(&mut said, &Value::Object(plan));
    said.push_str(if watched { " watched" } else { "" });
    for text in named.iter().take(before.links).flatten() {
        said.push('\n');
        said.push_str(text);
    }
    sha256_hex(said.as_bytes())[..16].to_owned()
}

/// Tables by the order of their keys, whatever that in the file is.
fn in_order(out: &mut String, value: &Value) {
    match value {
        Value::Object(table) => {
            let mut keys: Vec<&String> = table.keys().collect();
            keys.sort();
            for key in keys {
                out.push_str(&format!("{key:?}="));
                in_order(out, &table[key]);
                out.push(';');
            }
        }
        Value::Array(all) => {
            for one in all {
                out.push('[');
                in_order(out, one);
                out.push(']');
            }
        }
        one => out.push_str(&one.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "title = 'a'\nseed = 3\n[[page]]\nname = 'p'\nobjects = 4\nat = 1\n[[link]]\nname = 'l'\n\
                        [[claim]]\nsays = 'x'\n[[plot]]\nx = 'page'\n";

    fn of(text: &str) -> String {
        Source { text: text.into(), named: Vec::new() }.digest()
    }

    fn changed(from: &str, to: &str) -> bool {
        let other = PLAN.replacen(from, to, 1);
        assert_ne!(other, PLAN);
        of(&other) != of(PLAN)
    }

    #[test]
    fn what_is_only_said_drawn_or_compared_changes_nothing() {
        for (from, to) in [
            ("title = 'a'", "title = 'b'"),
            ("at = 1", "at = 2"),
            ("says = 'x'", "says = 'y'\nwhy = 'z'"),
            ("seed = 3", "# a word\nseed = 3\nruns = { least = 1, most = 2, within = '5 %' }"),
            ("name = 'p'\nobjects = 4", "objects = 4\nname = 'p'"),
        ] {
            assert!(!changed(from, to), "{to}");
        }
    }

    #[test]
    fn what_a_load_follows_from_changes_it() {
        for (from, to) in [
            ("seed = 3", "seed = 4"),
            ("objects = 4", "objects = 5"),
            ("name = 'l'", "name = 'm'"),
            ("name = 'l'", "name = 'l'\nloss = '1 %'"),
            ("x = 'page'", "x = 'time'"),
        ] {
            assert!(changed(from, to), "{to}");
        }
        let with_file = PLAN.replacen("name = 'l'", "name = 'l'\nfile = 'l.toml'", 1);
        let over = |files: [&str; 2]| {
            Source { text: with_file.clone(), named: vec![files.map(String::from).into()] }.digest()
        };
        assert_ne!(over(["rate", "fades"]), over(["another rate", "fades"]), "nor of another satellite");
        assert_ne!(over(["rate", "fades"]), over(["rate", "others"]), "nor of what that names in turn");
    }

    #[test]
    fn a_plan_that_has_more_variants_knows_what_it_was_before() {
        let before = format!("{PLAN}[[variant]]\nname = 'one'\n[[variant]]\nname = 'two'\nconnections = 3\n");
        let more = before.replacen(
            "[[variant]]\nname = 'two'",
            "[[variant]]\nname = 'new'\n[[variant]]\nname = 'two'",
            1,
        );
        let more = Source { text: more, named: Vec::new() };
        let with = |has_variant: &dyn Fn(&str) -> bool| {
            more.digest_with(&Before { pages: 1, links: 1, has_variant })
        };
        assert_ne!(more.digest(), of(&before));
        assert_eq!(with(&|variant| variant != "new"), of(&before));
        assert_ne!(with(&|variant| variant == "two"), of(&before));
    }

    #[test]
    fn a_plan_that_has_more_pages_and_links_knows_what_it_was_before() {
        let more = format!("{PLAN}[[page]]\nname = 'q'\nobjects = 9\n[[link]]\nname = 'm'\n");
        let more = Source { text: more, named: Vec::new() };
        let with = |pages, links| more.digest_with(&Before { pages, links, has_variant: &|_| true });
        assert_ne!(more.digest(), of(PLAN));
        assert_eq!(with(1, 1), of(PLAN));
        assert_eq!(with(2, 2), more.digest());
        for (pages, links) in [(1, 2), (2, 1), (0, 1)] {
            assert_ne!(with(pages, links), of(PLAN));
        }
    }
}
