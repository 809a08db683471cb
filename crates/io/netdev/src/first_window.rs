//! How much TCP connections to one address send before they hear anything, beside all others: a route to that address alone with a
//! window of its own (ip-route(8), `initcwnd`), made like the one that leads there anyway. The kernel has no such option for sockets.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use crate::Error;
use crate::host::run;

/// The protocol by which routes of ours are known (rtnetlink(7)): nobody else's in iproute2's list.
const PROTOCOL: &str = "250";
/// More addresses are nobody's: a ground of that many remotes leaves the later ones to the system.
const MOST: usize = 1024;
/// What a route of ours takes over from the one that leads there anyway.
const TAKEN: [&str; 5] = ["via", "dev", "src", "mtu", "advmss"];

/// The addresses with a window of their own.
#[derive(Debug, Default)]
pub(crate) struct FirstWindows(BTreeSet<IpAddr>);

impl FirstWindows {
    /// Gives connections to `address` that begin from now on a first window of so many segments, by the way that leads there now.
    pub(crate) fn put(&mut self, address: IpAddr, segments: u32) -> Result<(), Error> {
        if self.0.len() >= MOST && !self.0.contains(&address) {
            return Err(refused(address, format!("{MOST} addresses have one already")));
        }
        // The way may have changed since: ours would hide that.
        take_back(address);
        self.0.remove(&address);
        let (family, whole) = (family(address), whole(address));
        let there = run("ip", &[family, "route", "show", "exact", &whole])?;
        if !there.stdout.is_empty() {
            return Err(refused(
                address,
                format!("there is a route to it alone; add 'initcwnd {segments}' to that"),
            ));
        }
        let shown = run("ip", &[family, "route", "get", &address.to_string()])?;
        let way = way(&String::from_utf8_lossy(&shown.stdout))
            .ok_or_else(|| refused(address, "it is not beyond any device".into()))?;
        let segments = segments.to_string();
        let mut words = vec![family, "route", "add", &whole];
        words.extend(way.iter().map(String::as_str));
        words.extend(["initcwnd", &segments, "proto", PROTOCOL]);
        run("ip", &words)?;
        self.0.insert(address);
        Ok(())
    }

    /// Takes all of them back. Best effort: a device that is gone has taken its routes with it.
    pub(crate) fn end(&self) {
        self.0.iter().copied().for_each(take_back);
    }
}

fn take_back(address: IpAddr) {
    // Fails where there is none.
    let _ = run("ip", &[family(address), "route", "del", &whole(address), "proto", PROTOCOL]);
}

fn refused(address: IpAddr, why: String) -> Error {
    let what = format!("set the first window of connections to {address}");
    Error::System { what, source: io::Error::other(why) }
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "-4" } else { "-6" }
}

fn whole(address: IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 })
}

/// `10.78.2.2 via 10.78.1.1 dev lan0 src 10.78.1.2 uid 0`, as far as a route needs it. None of what stays in this machine, or of what leads
/// nowhere, which begins with another word.
fn way(shown: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = shown.lines().next()?.split_whitespace().collect();
    words.first()?.parse::<IpAddr>().ok()?;
    let pairs = words.windows(2).filter(|pair| TAKEN.contains(&pair[0]) && pair[1] != "lock");
    let taken: Vec<String> = pairs.flatten().map(|word| (*word).to_owned()).collect();
    taken.iter().any(|word| word == "dev").then_some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_read_as_ip_shows_it_and_what_leads_nowhere_is_none() {
        let way = |text: &str| way(text).map(|words| words.join(" "));
        assert_eq!(
            way("10.78.2.2 via 10.78.1.1 dev lan0 src 10.78.1.2 uid 0 \n    cache expires 9sec mtu 1400\n")
                .as_deref(),
            Some("via 10.78.1.1 dev lan0 src 10.78.1.2")
        );
        assert_eq!(
            way("fd78:2::2 from :: via fe80::1 dev lan0 proto ra src fd78:1::2 metric 1024 mtu 1400 pref medium\n").as_deref(),
            Some("via fe80::1 dev lan0 src fd78:1::2 mtu 1400")
        );
        assert_eq!(way("local 127.0.0.1 dev lo src 127.0.0.1 uid 0"), None);
        assert_eq!(way("unreachable 10.0.0.1"), None);
        assert_eq!(way(""), None);
    }
}
