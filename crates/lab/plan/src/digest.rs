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
    /// The files that it names.
    pub(crate) named: Vec<String>,
}

impl Source {
    /// The digest of the plan.
    pub(crate) fn digest(&self) -> String {
        digest(&self.text, &self.named, &|_| true)
    }

    /// The digest that the plan had with these of its variants alone, before the others were added: a load of one variant
    /// follows from nothing of another.
    pub(crate) fn digest_with(&self, is_there: &dyn Fn(&str) -> bool) -> String {
        digest(&self.text, &self.named, is_there)
    }
}

fn digest(text: &str, named: &[String], is_there: &dyn Fn(&str) -> bool) -> String {
    // A text that is no table was refused before.
    let mut plan: Map<String, Value> = toml_edit::de::from_str(text).unwrap_or_default();
    if let Some(variants) = plan.get_mut("variant").and_then(Value::as_array_mut) {
        variants.retain(|variant| variant.get("name").and_then(Value::as_str).is_none_or(is_there));
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
    for text in named {
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
        let elsewhere = Source { text: PLAN.into(), named: vec!["rate".into()] };
        assert_ne!(elsewhere.digest(), of(PLAN), "nor of another satellite");
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
        assert_ne!(more.digest(), of(&before));
        assert_eq!(more.digest_with(&|variant| variant != "new"), of(&before));
        assert_ne!(more.digest_with(&|variant| variant == "two"), of(&before));
    }
}
