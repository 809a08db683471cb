//! The table of verdicts that a reviewer reads: `docs/conformance.md`, made from the corpus.

use std::fmt::Write as _;

use super::notation::Case;
use super::{cases, h2, within};

const INTRODUCTION: &str = "\
# HTTP conformance: the table of verdicts

Made from the corpus in `crates/lab/testkit/corpora/conformance`, whose README explains its notation; a test holds both
together. `./run test` sends each case byte by byte through the program and holds what reached the origin and what the client
got against a strict reader of its own: one reading or none, Host equal to the target, nothing of the connection passed on,
and the next request of this user and of another answered by just its own answer.

- **forwarded**: the origin gets this request, whole, and the client its answer; **passed**: the client gets the origin's
  response, whole; **informed**: a 1xx response is passed on; **tunnelled**: byte for byte.
- **refused**: answered by the proxy, which closes; nothing reaches the origin. **broken**: so too, but some of it had gone to
  the origin, where it never ends as if it were whole. **answered**: by the proxy, and the connection goes on. **closed**: the
  proxy closes.
- **failed**: answered by the proxy with this status, and no byte of the origin's response comes through. **cut**: the
  response's beginning comes through and the client sees that it is not whole, or the proxy answers 502 if none had.
- Of HTTP/2: **reset**: the stream ends with this error and the connection goes on; **ended**: the connection ends with it.
  What origins answer over HTTP/2 is said in the words of HTTP/1.1, in which the client has asked.
";

/// The table, as Markdown.
pub fn table() -> String {
    let row = |case: Case| (case.group, case.name, case.wanted(), case.rule);
    let mut text = INTRODUCTION.to_owned();
    let mut group = "";
    let serial = cases().into_iter().chain(within::cases()).map(row);
    for (of, name, wanted, rule) in serial.chain(h2::rows()) {
        if of != group {
            group = of;
            let _ = write!(
                text,
                "\n## {group}\n\n| what is sent | what must happen | where that is said |\n|---|---|---|\n"
            );
        }
        let _ = writeln!(text, "| {} | `{}` | {rule} |", cell(name), cell(&wanted));
    }
    text
}

/// Text as a table's cell can hold it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
