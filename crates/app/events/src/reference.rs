//! Writes `docs/events.md` from the declarations.

use std::fmt::Write;

use crate::{AnsweredFrom, Bypass, Counters, Crossing, Event, PromiseEnd, Side, Word};

/// `docs/events.md`: every event and every counter with its documentation.
pub fn reference() -> String {
    let mut out = String::from(concat!(
        "# Events and counters\n\n",
        "<!-- Written from the declarations in crates/app/events; not by hand. -->\n\n",
        "`farhop control SOCKET subscribe` prints events as they happen, one JSON object a line, with `seq` and `at_ms`\n",
        "(milliseconds since 1970) beside the event's own fields. `farhop control SOCKET counters` prints the counters, which\n",
        "only grow and start at zero with the process.\n",
    ));
    table(&mut out, "Events", "event", Event::DECLARED);
    table(&mut out, "Counters", "counter", Counters::DECLARED);
    out += "\n## Words\n\n";
    words::<Crossing>(
        &mut out,
        "`crossed`: why a request crossed (`undiscovered` also where ground left it to the browser: `hint_skipped` says so)",
    );
    words::<AnsweredFrom>(&mut out, "`answered`: where an answer came from");
    words::<Bypass>(&mut out, "`bypassed`: why a TLS connection went through untouched");
    words::<PromiseEnd>(&mut out, "`promise_ends`: how a promise ended");
    words::<Side>(&mut out, "`failed`: the side that failed");
    out
}

fn table(out: &mut String, title: &str, what: &str, declared: &[(&str, &str)]) {
    let _ = write!(out, "\n## {title}\n\n| {what} | |\n|---|---|\n");
    for (name, doc) in declared {
        let _ = writeln!(out, "| `{name}` | {} |", doc.trim());
    }
}

fn words<W: Word>(out: &mut String, title: &str) {
    let words: Vec<_> = W::ALL.iter().map(|word| format!("`{}`", word.as_str())).collect();
    let _ = writeln!(out, "- {title}: {}", words.join(", "));
}
