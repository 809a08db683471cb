//! What the portal's pages share: their frame and how text becomes HTML. Pure.

use std::fmt::{self, Display};
use std::time::Duration;

/// A text in HTML, between tags or within double quotes.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// A whole page around `main`.
pub(super) fn page(title: &str, main: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n\
         <header>\n<h1>{title}</h1>\n<nav aria-label=\"Pages\"><a href=\"/\">Overview</a> <a href=\"/install\">Certificate</a></nav>\n</header>\n\
         <main>\n{main}</main>\n\
         <footer><p>Farhop {version}, on this side of the satellite link. This page did not cross it.</p></footer>\n</html>\n",
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// A time as people read it.
pub(super) fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => "less than a second".to_owned(),
        1 => "1 second".to_owned(),
        seconds @ 2..120 => format!("{seconds} seconds"),
        seconds @ 120..7_200 => format!("{} minutes", seconds / 60),
        seconds => format!("{} hours", seconds / 3_600),
    }
}

/// Bytes as people read them.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_leave_its_place() {
        assert_eq!(Text("<a b=\"c\" d='e'>&").to_string(), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
    }

    #[test]
    fn times_are_for_people() {
        let told =
            [400, 1_900, 119_000, 120_000, 7_200_000, 90_000_000].map(|ms| time(Duration::from_millis(ms)));
        assert_eq!(
            told,
            ["less than a second", "1 second", "119 seconds", "2 minutes", "2 hours", "25 hours"]
        );
    }

    #[test]
    fn sizes_are_for_people() {
        assert_eq!(
            [0, 999, 1_500, 2_000_000, 3_210_000_000].map(size),
            ["0 B", "999 B", "1.5 KB", "2.0 MB", "3.21 GB"]
        );
    }
}
