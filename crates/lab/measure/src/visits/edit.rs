//! Changing a share of a text without breaking what it is: words of an HTML page that stand between its tags, and new text of the
//! file's own words where there are too few. Pure.

use std::path::Path;

/// Whether a file is text that sites change: documents, style sheets, scripts, data.
pub(super) fn is_text(file: &Path) -> bool {
    matches!(kind(file), "html" | "css" | "js" | "mjs")
}

/// The same text with about this share of its bytes changed.
pub(super) fn edited(file: &Path, text: &str, share: f64, seed: u64) -> String {
    let wanted = (text.len() as f64 * share).ceil() as usize;
    let mut dice = Dice(seed.wrapping_add(text.len() as u64));
    let words: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 2).collect();
    let (mut new, mut changed) = match kind(file) {
        "html" => words_changed(text, wanted, &words, &mut dice),
        _ => (text.to_owned(), 0),
    };
    if changed < wanted {
        let mut more = String::new();
        while changed < wanted {
            let word = if words.is_empty() { "word" } else { words[dice.below(words.len())] };
            more.push(' ');
            more.push_str(word);
            changed += word.len() + 1;
        }
        match kind(file) {
            "html" => {
                let at = new.rfind("</body>").or(new.rfind("</html>")).unwrap_or(new.len());
                new.insert_str(at, &format!("<!--{} -->\n", more.replace("--", "")));
            }
            _ => new.push_str(&format!("\n/*{} */\n", more)),
        }
    }
    new
}

/// Words that stand between tags, and not in a script, style or title, become other words of the text, evenly over it.
fn words_changed(text: &str, wanted: usize, words: &[&str], dice: &mut Dice) -> (String, usize) {
    let mut spans = Vec::new();
    let (mut inside, mut opaque, mut start) = (false, None::<&str>, None);
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        match (c, opaque) {
            ('<', Some(name))
                if rest.get(2..).is_some_and(|it| it.starts_with(name)) && rest.starts_with("</") =>
            {
                (opaque, inside, start) = (None, true, None);
            }
            (_, Some(_)) => continue,
            ('<', None) => {
                (inside, start) = (true, None);
                opaque =
                    ["script", "style", "title", "svg"].into_iter().find(|name| rest[1..].starts_with(name));
            }
            ('>', None) => inside = false,
            _ if inside => {}
            _ if c.is_ascii_alphabetic() => {
                start.get_or_insert(at);
            }
            // What follows an ampersand is a character's name.
            ('&', None) => start = None,
            _ => {
                if let Some(from) = start.take().filter(|from| at - from > 3 && !text[..*from].ends_with('&'))
                {
                    spans.push(from..at);
                }
            }
        }
    }
    let available: usize = spans.iter().map(|span| span.len()).sum();
    let every = (available / wanted.max(1)).max(1);
    let (mut new, mut changed, mut end) = (String::with_capacity(text.len()), 0, 0);
    for span in spans.into_iter().step_by(every) {
        if changed >= wanted || words.is_empty() {
            break;
        }
        new.push_str(&text[end..span.start]);
        new.push_str(words[dice.below(words.len())]);
        changed += span.len();
        end = span.end;
    }
    new.push_str(&text[end..]);
    (new, changed)
}

fn kind(file: &Path) -> &str {
    file.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// A number that leads to the next (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % count.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!doctype html><title>never this title</title><script>var never = 'touched';</script>\
        <body class=\"some thing\"><p>these words between tags may well become others &nbsp; here</p></body>";

    fn html(text: &str, share: f64) -> String {
        edited(Path::new("a.html"), text, share, 1)
    }

    #[test]
    fn only_words_between_tags_change_and_no_tag_or_script() {
        let new = html(PAGE, 0.05);
        assert_ne!(new, PAGE);
        for kept in
            ["<title>never this title</title>", "var never = 'touched';", "class=\"some thing\"", "&nbsp;"]
        {
            assert!(new.contains(kept), "{kept} in {new}");
        }
        assert!(!new.contains("<!--"), "{new}");
    }

    #[test]
    fn what_has_too_few_words_gets_a_comment() {
        let tags = "<img src=a.png alt=abc>".repeat(40);
        let new = html(&format!("<body>{tags}</body>"), 0.05);
        assert!(new.contains(&tags) && new.ends_with("-->\n</body>"), "{new}");
        let grown = new.len() - tags.len();
        assert!((40..120).contains(&grown), "{grown}");
        let css = edited(Path::new("a.css"), "p { color: red }\n", 0.05, 1);
        assert!(css.starts_with("p { color: red }\n") && css.ends_with(" */\n"), "{css}");
    }

    #[test]
    fn another_seed_changes_other_words() {
        assert_ne!(html(PAGE, 0.2), edited(Path::new("a.html"), PAGE, 0.2, 2));
        assert_eq!(html(PAGE, 0.2), html(PAGE, 0.2));
    }
}
