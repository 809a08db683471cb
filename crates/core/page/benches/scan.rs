//! How fast pages and their files are read: MB/s over what [`cases`] makes up. `cargo bench -p farhop-page --bench scan`;
//! a word behind `--` chooses the lines that contain it, names of files have these read instead.

mod cases;

use cases::Case;
use farhop_page::Destination;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long is read for each line.
const READ: Duration = Duration::from_secs(1);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let files: Vec<Case> = words.iter().filter_map(|word| file(word)).collect();
    let is_chosen = |case: &Case| words.iter().all(|word| case.name.contains(word));
    let cases = if files.is_empty() { cases::all().into_iter().filter(is_chosen).collect() } else { files };
    for case in cases {
        // The best of all rounds: what the code can do when nothing else runs.
        let (mut best, mut hints) = (Duration::MAX, None);
        let end = Instant::now() + READ;
        while Instant::now() < end {
            let start = Instant::now();
            hints = black_box(case.read());
            best = best.min(start.elapsed());
        }
        let rate = case.text.len() as f64 / best.as_secs_f64() / 1e6;
        let (length, hints) = (case.text.len() / 1000, hints.unwrap_or_default());
        println!("{}: {rate:.0} MB/s of at least {} ({length} KB, {hints} hints)", case.name, case.least);
    }
}

/// A file of this system.
fn file(path: &str) -> Option<Case> {
    let text = std::fs::read_to_string(path).ok()?;
    let file = match Path::new(path).extension()?.to_str()? {
        "css" => Some(Destination::Style),
        "js" | "mjs" => Some(Destination::Script),
        _ => None,
    };
    Some(Case::new(path, file, text))
}
