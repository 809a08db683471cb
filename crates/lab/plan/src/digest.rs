//! Tells loads of one plan from those of another: a hash of all in a plan's file that a load follows from. What is only said,
//! drawn or compared afterwards is left out, and how often and which of it is loaded: what was measured stays good when a
//! sentence is put better, and a whole run goes on from a quick one. Pure.

use farhop_workload::origins::site::sha256_hex;
use serde_json::{Map, Value};

/// Of a plan nothing of which changes a load, and the same of its tables.
const OF_PLANS: [&str; 9] = ["title", "study", "notes", "goal", "base", "runs", "quick", "plot", "claim"];
const OF_TABLES: [&str; 3] = ["at", "group", "line"];

/// The digest of a plan's `text` and of the texts of the files that it names.
pub(crate) fn digest(text: &str, named: &[String]) -> String {
    // A text that is no table was refused before.
    let mut plan: Map<String, Value> = toml_edit::de::from_str(text).unwrap_or_default();
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

    fn changed(from: &str, to: &str) -> bool {
        let other = PLAN.replacen(from, to, 1);
        assert_ne!(other, PLAN);
        digest(&other, &[]) != digest(PLAN, &[])
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
        assert_ne!(digest(PLAN, &["rate".into()]), digest(PLAN, &[]), "nor of another satellite");
    }
}
