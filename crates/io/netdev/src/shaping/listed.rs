//! A table as nftables lists it, without what changes by itself. What the kernel prints of a rule is not what it was given: numbers,
//! names and orders are its own, and other ones in other versions. So nothing is compared with what was written, but with how the same
//! kernel listed it just after.

use std::fmt::Write as _;

use super::{early, media};

/// How a table was listed after it was last changed from here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// What calls have: their media, and the chains of these.
    pub(super) calls: String,
    /// All else.
    pub(super) rules: String,
}

impl Listed {
    /// `nft -n list table`. Left out is what counts, who speaks for what is dropped, and for how long; and of the chains that are told what to
    /// drop, what they were told.
    pub(super) fn read(table: &str) -> Listed {
        let mut listed = Listed::default();
        let (mut block, mut elements) = ("", None);
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(started) = line.strip_suffix('{').map(str::trim)
                && !line.starts_with("elements")
            {
                block = started;
            }
            // A list of elements may have several lines, and is in the order of a hash.
            if elements.is_none() && line.starts_with("elements = {") {
                elements = Some(String::new());
            }
            if let Some(list) = &mut elements {
                list.push(' ');
                list.push_str(line);
                if line.ends_with('}') {
                    if block != "set governed" {
                        let list = sorted(list);
                        let _ = writeln!(listed.part(block), "{list}");
                    }
                    elements = None;
                }
                continue;
            }
            let is_told =
                block.strip_prefix("chain ").is_some_and(early::is_losing_chain) && early::is_told(line);
            let line = if is_told { "as it was told" } else { line };
            let _ = writeln!(listed.part(block), "{}", without_counts(line));
        }
        listed
    }

    fn part(&mut self, block: &str) -> &mut String {
        if media::is_block(block) { &mut self.calls } else { &mut self.rules }
    }
}

/// `elements = { b, a }`
fn sorted(list: &str) -> String {
    let inner = list.trim().trim_start_matches("elements = {").trim_end_matches('}');
    let mut items: Vec<&str> = inner.split(',').map(str::trim).collect();
    items.sort_unstable();
    items.join(", ")
}

/// `counter packets 7 bytes 420`: the numbers go.
fn without_counts(line: &str) -> String {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    while let Some(at) =
        words.windows(5).position(|it| it[0] == "counter" && it[1] == "packets" && it[3] == "bytes")
    {
        words.drain(at + 1..at + 5);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
table inet farhop_link_sat0 {
\tmap media_ip {
\t\ttype ipv4_addr . inet_service : verdict
\t\telements = { 10.0.0.1 . 16384 : goto call_0,
\t\t\t     10.0.0.2 . 9 : goto call_0 }
\t}

\tset governed {
\t\ttype ifname
\t\tflags timeout
\t\telements = { \"sat0\" timeout 3s expires 1s964ms }
\t}

\tchain losing_50_1 {
\t\toifname @governed numgen random mod 100 < 35 meta priority set fa40:f0
\t}

\tchain higher_50_1 {
\t\tip dscp set 0x0c
\t\tcounter packets 7 bytes 420
\t\tgoto losing_50_1
\t}

\tchain leave {
\t\ttype filter hook postrouting priority -150; policy accept;
\t\toifname != \"sat0\" accept
\t}
}
";

    #[test]
    fn what_changes_by_itself_or_by_the_managers_word_is_no_change() {
        let listed = Listed::read(TABLE);
        for (one, other) in [
            ("packets 7 bytes 420", "packets 9 bytes 999"),
            ("expires 1s964ms", "expires 1s"),
            ("elements = { \"sat0\" timeout 3s expires 1s964ms }", ""),
            ("oifname @governed numgen random mod 100 < 35 meta priority set fa40:f0", "accept"),
            ("numgen random mod 100 < 35 ", ""),
            (
                "10.0.0.1 . 16384 : goto call_0,\n\t\t\t     10.0.0.2 . 9 :",
                "10.0.0.2 . 9 : goto call_0, 10.0.0.1 . 16384 :",
            ),
        ] {
            let changed = TABLE.replace(one, other);
            assert_ne!(changed, TABLE);
            assert_eq!(Listed::read(&changed), listed, "{other}");
        }
    }

    #[test]
    fn what_calls_have_is_told_from_the_rules() {
        let listed = Listed::read(TABLE);
        let other = Listed::read(&TABLE.replace("10.0.0.2 . 9", "10.0.0.3 . 9"));
        assert_eq!(listed.rules, other.rules);
        assert_ne!(listed.calls, other.calls);
    }

    #[test]
    fn each_rule_chain_and_element_counts() {
        let listed = Listed::read(TABLE);
        for (one, other) in [
            ("0x0c", "0x0a"),
            ("goto losing_50_1", "goto leaf_10"),
            ("!= \"sat0\"", "!= \"sat1\""),
            ("policy accept", "policy drop"),
            ("10.0.0.2 . 9 : goto call_0", "10.0.0.2 . 9 : goto call_1"),
            (",\n\t\t\t     10.0.0.2 . 9 : goto call_0", ""),
            ("< 35 meta priority set fa40:f0", "< 35 drop"),
            ("\t\tcounter packets 7 bytes 420\n", ""),
            (
                "\t\tip dscp set 0x0c\n\t\tcounter packets 7 bytes 420\n",
                "\t\tcounter packets 7 bytes 420\n\t\tip dscp set 0x0c\n",
            ),
            ("\t\toifname @governed numgen random mod 100 < 35 meta priority set fa40:f0\n", ""),
            ("set governed", "set others"),
            ("{\n\tmap", "{\n\tflags dormant\n\tmap"),
        ] {
            let changed = TABLE.replace(one, other);
            assert_ne!(changed, TABLE, "{one}");
            assert_ne!(Listed::read(&changed), listed, "{other}");
        }
    }
}
