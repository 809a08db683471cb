//! The pages whose scripts ask for what no reading finds, since each name is computed: `modules`, a chain in which each module
//! imports the next; `amd`, a loader that puts script elements into the page, as RequireJS does; `rendered`, a page that its script
//! makes of a list (JSON) of images. Writes files into the folder it is given, nothing else.

use std::path::Path;

use super::photos::photo;
use super::{BY_SCRIPT, PageError, jpeg, write};

/// Modules of the chain, without the first, which the document names.
const MODULES: u32 = 8;
/// Parts that the loader loads, each of which needs the next.
const PARTS: u32 = 12;
/// Images of the list.
const IMAGES: u32 = 12;

/// Writes the page of this name into `folder`.
pub(super) fn build(name: &str, folder: &Path) -> Result<(), PageError> {
    let late = folder.join(BY_SCRIPT.trim_matches('/'));
    let file = |name: &str, text: &str| write(&folder.join(name), text.as_bytes());
    match name {
        "modules" => {
            file("index.html", &document("<script type=\"module\" src=\"first.mjs\"></script>"))?;
            file("first.mjs", &module(0, "./late/"))?;
            for number in 1..=MODULES {
                write(&late.join(format!("m{number}.mjs")), module(number, "./").as_bytes())?;
            }
        }
        "amd" => {
            file("index.html", &document("<script src=\"loader.js\"></script>"))?;
            file("loader.js", LOADER)?;
            for number in 1..=PARTS {
                write(&late.join(format!("part-{number}.js")), part(number).as_bytes())?;
            }
        }
        _ => {
            file("index.html", &document("<script src=\"app.js\"></script>"))?;
            file("app.js", APP)?;
            let names: Vec<String> = (1..=IMAGES).map(|number| format!("\"{number}\"")).collect();
            write(&late.join("list.json"), format!("{{\"photos\":[{}]}}", names.join(",")).as_bytes())?;
            for number in 1..=IMAGES {
                write(&late.join(format!("photo-{number}.jpg")), &jpeg(&photo(number))?)?;
            }
        }
    }
    Ok(())
}

fn document(script: &str) -> String {
    let text = "<p>Some words of text, as pages have them beside what their scripts make.</p>\n".repeat(30);
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>made by scripts</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<main id=\"main\"></main>\n{text}{script}\n</html>\n"
    )
}

/// A module that computes the name of the next.
fn module(number: u32, folder: &str) -> String {
    let next = if number < MODULES {
        format!("const next = ['m', {number} + 1].join('');\nawait import('{folder}' + next + '.mjs');\n")
    } else {
        String::new()
    };
    format!("{}export const number = {number};\n{next}", filler(number))
}

/// A part that asks the loader for the next.
fn part(number: u32) -> String {
    let next = if number < PARTS { format!("need({number} + 1);\n") } else { String::new() };
    format!("{}window.parts = [...(window.parts ?? []), {number}];\n{next}", filler(number))
}

/// Code as it is between what matters here, different in each file.
fn filler(number: u32) -> String {
    let function = |index: u32| {
        let value = number.wrapping_mul(2_654_435_761).wrapping_add(index.wrapping_mul(40_503));
        format!(
            "function f{index}(a, b) {{ const c = a.length > {} ? b[a] : null; return c?.items ?? [{value}]; }}\n",
            value % 97
        )
    };
    (0..60).map(function).collect()
}

const LOADER: &str = "\
const base = ['', 'late', 'part'].join('/').slice(1);
function need(number) {
  const script = document.createElement('script');
  script.src = base + '-' + number + '.js';
  document.head.append(script);
}
need(1);
";

const APP: &str = "\
const folder = ['late', ''].join('/');
async function render() {
  const list = await (await fetch(folder + 'list' + '.json')).json();
  for (const name of list.photos) {
    const image = new Image(200, 150);
    image.src = folder + 'photo-' + name + '.jpg';
    document.getElementById('main').append(image);
  }
}
render();
";

#[cfg(test)]
mod tests {
    use super::super::SCRIPTED;
    use super::*;

    #[test]
    fn what_scripts_ask_for_is_there_and_named_nowhere() {
        for (name, late, files) in
            SCRIPTED.iter().zip([MODULES, PARTS, IMAGES + 1]).map(|(name, files)| (name, "late", files))
        {
            let folder = tempfile::tempdir().unwrap();
            build(name, folder.path()).unwrap();
            let there: Vec<String> = std::fs::read_dir(folder.path().join(late))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            assert_eq!(there.len() as u32, files, "{name}");
            for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    let text = std::fs::read_to_string(entry.path()).unwrap();
                    assert!(
                        there.iter().all(|late| !text.contains(late.as_str())),
                        "{name}: {:?}",
                        entry.path()
                    );
                }
            }
        }
    }
}
