//! A device's egress divided among classes: a hierarchical token bucket (tc-htb(8)) with a leaf for each, and an nftables table
//! of our own that says which packet waits where and what it is marked with. Packets are led by `meta priority`, the class of
//! the bucket itself, so that no filter of traffic control is needed.
//!
//! Mechanism only: rates, classes and rules are the caller's. What is ours bears our handle and our name; whatever else
//! stands on the device is left alone, and where that is in the way nothing is done.

mod counts;
mod early;
mod hold;
mod listed;
mod media;
mod rules;
mod size;
mod tree;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub use counts::{LeafCounts, Shaped};
pub use early::{Crowd, Losing, crowds, set_losing};
pub use hold::Hold;
pub use listed::Listed;
pub use media::Metered;

use crate::host::{feed, run};
use crate::{Error, Network, capability};

/// The handle of the root: what bears it on a device is ours.
const HANDLE: &str = "fa40:";

/// A leaf of the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// Its number below the root, from 2.
    pub minor: u16,
    /// The group that it borrows from, where it is in one.
    pub within: Option<u16>,
    /// Who has what is left over first: 0 to 7.
    pub priority: u8,
    /// What it has whatever the others do, in bits/s.
    pub rate: u64,
    /// What it never exceeds, in bits/s.
    pub ceiling: u64,
    /// Bytes that go at once after a pause.
    pub burst: u64,
    /// Bytes that it sends in turn with its equals.
    pub quantum: u64,
    /// Bytes that wait at most, where the leaf is a plain FIFO.
    pub room: u64,
    /// Whether flows in it are to be kept apart; else it is a plain FIFO, as suits packets that never queue.
    pub fair: bool,
    /// The codepoint that its packets leave with.
    pub codepoint: u8,
    /// Those of its packets of medium and high drop precedence (RFC 2597), where it has them: what comes marked so keeps that.
    pub higher: Option<[u8; 2]>,
}

/// Leaves that have a rate and a ceiling together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Its number below the root, from 2.
    pub minor: u16,
    /// What its leaves have together whatever the others do, in bits/s.
    pub rate: u64,
    /// What they never exceed together, in bits/s.
    pub ceiling: u64,
    /// Bytes that go at once after a pause.
    pub burst: u64,
    /// Bytes that they send in turn with their equals.
    pub quantum: u64,
}

/// Which packets wait at which leaf: all of what is given has to hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MarkRule {
    /// `tcp` or `udp`.
    pub protocol: Option<&'static str>,
    /// One of the ports is one of these, first and last.
    pub ports: Vec<(u16, u16)>,
    /// One of the addresses is in one of these.
    pub networks: Vec<Network>,
    /// They came with one of these codepoints.
    pub codepoints: Vec<u8>,
    /// The leaf.
    pub minor: u16,
    /// Their drop precedence there at the least: 0 is the lowest, and 2 the highest.
    pub precedence: u8,
}

/// What a device's egress is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaping {
    /// The device.
    pub interface: String,
    /// The rate of all together, in bits/s.
    pub rate: u64,
    /// Bytes that go at once after a pause.
    pub burst: u64,
    /// Its groups of leaves.
    pub groups: Vec<Group>,
    /// Its leaves.
    pub leaves: Vec<Leaf>,
    /// The round trip of the connections that cross; a leaf that measures its queue needs it.
    pub round_trip: Duration,
    /// Rules in order; the first that holds decides.
    pub rules: Vec<MarkRule>,
    /// The leaf of media that [`Shaping::media`] and [`Shaping::set_media`] name, which go before all rules as far as their meters let them.
    pub media_leaf: u16,
    /// Media of calls; none of them is named twice.
    pub media: Vec<Metered>,
    /// The leaf of what no rule holds for.
    pub otherwise: u16,
    /// The leaf of what finds neighbours on the link (ARP, RFC 826; neighbour discovery, RFC 4861), before all rules: while it waits nothing
    /// leaves for a neighbour that is not known yet.
    pub neighbours: u16,
    /// Whose echoes ([`crate::Ping`]) go before all rules, and by which leaf: they measure what waits beyond this device.
    pub echo: Option<(IpAddr, u16)>,
    /// Whether segments of many packets, which TCP and drivers hand over as one, are split before they wait: else what is urgent
    /// waits for the whole of one.
    pub splits: bool,
    /// Bytes of the largest IP packet that connections of TCP shall make where they leave by the device: whoever announces to take
    /// longer segments (RFC 9293 §3.7.1) is heard to say less. What is urgent waits for one packet at the most.
    pub longest: Option<u16>,
}

/// What a leaf is made of; the kernel may lack the better ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafKind {
    /// Each flow in turn, and none with a standing queue (RFC 8290).
    FqCodel,
    /// Each flow in turn (tc-sfq(8)).
    Sfq,
    /// One after the other.
    Fifo,
}

/// What [`Shaping::apply`] has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// What leaves are made of.
    pub kind: LeafKind,
    /// Whether nothing of ours was there before.
    pub new: bool,
    /// Bytes of the largest packet that passes whole, where segments are split; the kernel may not be able to.
    pub whole: Option<u64>,
    /// How its rules are listed since. What changes them later gives it anew.
    pub rules: Listed,
    /// How the way of [`Shaping::neighbours`] is listed since; nothing where there is none.
    pub neighbours: String,
}

impl LeafKind {
    /// From the best on.
    pub const ALL: [LeafKind; 3] = [LeafKind::FqCodel, LeafKind::Sfq, LeafKind::Fifo];

    /// Its name in traffic control.
    pub fn as_str(self) -> &'static str {
        match self {
            LeafKind::FqCodel => "fq_codel",
            LeafKind::Sfq => "sfq",
            LeafKind::Fifo => "bfifo",
        }
    }
}

/// What stands at the root of a device's egress.
#[derive(Debug, PartialEq, Eq)]
enum Root {
    /// What the kernel puts there by itself.
    Default,
    Ours,
    /// Kind and handle.
    Foreign(String),
}

impl Shaping {
    /// Puts it into force, in place of what was of ours. Where it fails and nothing of ours was there, nothing is.
    ///
    /// # Errors
    /// No right to change networks, no such device, something of others' at its root, `tc` or `nft` missing or refusing,
    /// or a kernel without HTB.
    pub fn apply(&self, hold: &Hold) -> Result<Applied, Error> {
        debug_assert_eq!(hold.interface(), self.interface, "who changes a device holds it");
        require()?;
        let new = match root(&self.interface)? {
            Root::Default => true,
            Root::Ours => false,
            Root::Foreign(what) => {
                return Err(Error::ForeignQueue { interface: self.interface.clone(), what });
            }
        };
        // A table that nft would refuse is no reason to have touched the device.
        feed("nft", &["-c", "-f", "-"], &self.table())?;
        if new {
            self.put_root()?;
        }
        let applied = self.put(new);
        // Only what was made here just now.
        if applied.is_err() && new {
            let _ = remove_root(&self.interface);
        }
        applied
    }

    fn put_root(&self) -> Result<(), Error> {
        feed("tc", &["-batch", "-"], &self.root_line()).map_err(|error| match error {
            Error::Command { reason, .. } if is_unknown(&reason) => Error::NoHtb,
            other => other,
        })
    }

    fn put(&self, new: bool) -> Result<Applied, Error> {
        batch(&self.class_lines())?;
        self.put_neighbours()?;
        let (kind, whole) = self.put_leaves()?;
        feed("nft", &["-f", "-"], &self.table())?;
        let rules = Listed::read(&list(&self.interface)?);
        Ok(Applied { kind, new, whole, rules, neighbours: tree::neighbours(&self.interface)? })
    }

    /// A kernel without classifiers of traffic control, or somebody's filters on our queue that leave no place for this one, leave ARP
    /// with what no rule holds for.
    fn put_neighbours(&self) -> Result<(), Error> {
        match batch(&[self.neighbours_line()]) {
            Err(Error::Command { .. }) => Ok(()),
            done => done,
        }
    }

    /// Gives each class its rate, in place of the one that it has; queues, and what waits in them, stay.
    ///
    /// # Errors
    /// Nothing of ours is in force there, or `tc` is missing or refuses.
    pub fn apply_rates(&self, hold: &Hold) -> Result<(), Error> {
        debug_assert_eq!(hold.interface(), self.interface, "who changes a device holds it");
        require()?;
        batch(&self.class_lines())
    }

    /// Lets connections that begin from now on make no longer packets than [`Shaping::longest`], in one step; the other rules stay as they
    /// are.
    ///
    /// # Errors
    /// Nothing of ours is in force there, or `nft` is missing or refuses.
    pub fn apply_longest(&self, hold: &Hold) -> Result<Listed, Error> {
        debug_assert_eq!(hold.interface(), self.interface, "who changes a device holds it");
        require()?;
        change_rules(&self.interface, &self.segments_text())
    }

    /// Names other media than [`Shaping::media`] from now on, in one step; the other rules stay as they are.
    ///
    /// # Errors
    /// Nothing of ours is in force there, or `nft` is missing or refuses.
    pub fn set_media(&self, hold: &Hold, media: &[Metered]) -> Result<Listed, Error> {
        debug_assert_eq!(hold.interface(), self.interface, "who changes a device holds it");
        require()?;
        change_rules(&self.interface, &media::text(&self.interface, self.media.len(), media, self.media_leaf))
    }

    /// What of it somebody has taken away or changed since it was put into force so; `None` where all of it stands.
    ///
    /// # Errors
    /// No such device, or `tc` or `nft` is missing or refuses.
    pub fn changed(&self, applied: &Applied) -> Result<Option<&'static str>, Error> {
        let Some(seen) = see(&self.interface)? else { return Ok(Some("its queues")) };
        let queues = counts::Queues::read(&seen.queues);
        let stands = |leaf: &Leaf| queues.of(leaf.minor) == Some(self.queue_of(leaf, applied));
        if !self.leaves.iter().all(stands) || queues.of(tree::LOST).is_none() {
            return Ok(Some("its queues"));
        }
        if !self.has_rates(&seen.classes) {
            return Ok(Some("the rates of its classes"));
        }
        if tree::neighbours(&self.interface)? != applied.neighbours {
            return Ok(Some("the way of ARP"));
        }
        let listed = Listed::read(&seen.table);
        let has_calls = listed.calls == applied.rules.calls;
        if listed.rules != applied.rules.rules {
            let are_more = !has_calls && !self.media.is_empty();
            return Ok(Some(if are_more { "its rules and the media of its calls" } else { "its rules" }));
        }
        if !has_calls {
            return Ok(Some("the media of its calls"));
        }
        let whole = applied.whole.map(|_| size::largest_packet(&self.interface)).transpose()?;
        Ok((whole != applied.whole).then_some("the size of its packets"))
    }

    /// The best leaves that this kernel has.
    fn put_leaves(&self) -> Result<(LeafKind, Option<u64>), Error> {
        let split = if self.splits { Some(size::largest_packet(&self.interface)?) } else { None };
        let splits: &[Option<u64>] = if split.is_some() { &[split, None] } else { &[None] };
        let mut last = Error::NoHtb;
        for whole in splits {
            for kind in LeafKind::ALL {
                match batch(&self.leaf_lines(kind, *whole)) {
                    Ok(()) => return Ok((kind, *whole)),
                    Err(Error::Command { reason, command }) if is_unknown(&reason) => {
                        last = Error::Command { command, reason };
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Err(last)
    }

    /// What [`Shaping::apply`] would run, line by line, on a device with nothing of ours and with such leaves.
    pub fn in_words(&self, kind: LeafKind) -> String {
        // Those of a device that is not there yet are the usual ones.
        let whole = || size::largest_packet(&self.interface).unwrap_or(size::USUAL);
        let leaves = self.leaf_lines(kind, self.splits.then(whole));
        let lines = [self.root_line()]
            .into_iter()
            .chain(self.class_lines())
            .chain([self.neighbours_line()])
            .chain(leaves);
        let mut text: String = lines.map(|line| format!("tc {line}\n")).collect();
        text.push_str("nft -f - <<END\n");
        text.push_str(&self.table());
        text.push_str("END\n");
        text
    }
}

/// Changes rules in one step; how they are listed then.
fn change_rules(interface: &str, text: &str) -> Result<Listed, Error> {
    feed("nft", &["-f", "-"], text).map_err(|error| gone(interface, error))?;
    Ok(Listed::read(&list(interface)?))
}

/// How many packets have left for or from each of the named media since they were named; those that share a meter share the count.
///
/// # Errors
/// Nothing of ours is in force there, or `nft` is missing or refuses.
pub fn media_passed(interface: &str) -> Result<Vec<(SocketAddr, u64)>, Error> {
    require()?;
    Ok(media::read_passed(&list(interface)?))
}

/// Whether an error of nft is that the table is gone: nft says the same of what the kernel does not know.
fn gone(interface: &str, error: Error) -> Error {
    match has_table(interface) {
        Ok(false) => Error::NoRules { interface: interface.into() },
        _ => error,
    }
}

/// The table as it is.
fn list(interface: &str) -> Result<String, Error> {
    let output = run("nft", &["-n", "list", "table", "inet", &rules::table_name(interface)]);
    let output = output.map_err(|error| gone(interface, error))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What is in force at a device, and what has passed; `None` where nothing of ours is.
///
/// # Errors
/// No such device, or `tc` is missing or refuses.
pub fn shaped(interface: &str) -> Result<Option<Shaped>, Error> {
    let seen = see(interface)?;
    Ok(seen.map(|seen| counts::read(&seen.classes, &seen.queues, rules::lead_anywhere(&seen.table))))
}

/// Bytes that wait at a device in what is ours.
///
/// # Errors
/// No such device, or `tc` is missing or refuses.
pub fn waiting(interface: &str) -> Result<u64, Error> {
    let classes = run("tc", &["-s", "class", "show", "dev", interface])?;
    let leaves = counts::read(&String::from_utf8_lossy(&classes.stdout), "", true).leaves;
    Ok(leaves.iter().map(|leaf| leaf.waiting).sum())
}

/// What is ours at a device, as the tools write it.
struct Seen {
    classes: String,
    queues: String,
    /// Empty where there is none.
    table: String,
}

fn see(interface: &str) -> Result<Option<Seen>, Error> {
    // `nft` says to nobody else what there is.
    capability::require_net_admin("seeing how a link is shaped")?;
    capability::pass_net_admin_on();
    if root(interface)? != Root::Ours {
        return Ok(None);
    }
    let text = |output: std::process::Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let classes = text(run("tc", &["-s", "class", "show", "dev", interface])?);
    let queues = text(run("tc", &["qdisc", "show", "dev", interface])?);
    let table = if has_table(interface)? { list(interface)? } else { String::new() };
    Ok(Some(Seen { classes, queues, table }))
}

/// Takes away what is ours at a device, and nothing else; whether there was something.
///
/// # Errors
/// No right to change networks, or `tc` or `nft` is missing or refuses.
pub fn unshape(hold: &Hold) -> Result<bool, Error> {
    require()?;
    let interface = hold.interface();
    // What has vanished has taken its queues along; the table stands.
    let is_ours = match root(interface) {
        Ok(root) => root == Root::Ours,
        Err(Error::NoInterface { .. }) => false,
        Err(error) => return Err(error),
    };
    let table = has_table(interface)?;
    if table {
        run("nft", &["delete", "table", "inet", &rules::table_name(interface)])?;
    }
    if is_ours {
        remove_root(interface)?;
    }
    Ok(table || is_ours)
}

/// Whether the device is there.
pub fn has_interface(interface: &str) -> bool {
    nix::net::if_::if_nametoindex(interface).is_ok()
}

/// The right to change networks, for this process and for the tools that it runs.
fn require() -> Result<(), Error> {
    capability::require_net_admin("shaping a link")?;
    capability::pass_net_admin_on();
    Ok(())
}

fn remove_root(interface: &str) -> Result<(), Error> {
    run("tc", &["qdisc", "del", "dev", interface, "root"]).map(drop)
}

fn has_table(interface: &str) -> Result<bool, Error> {
    let output = run("nft", &["list", "tables", "inet"])?;
    let line = format!("table inet {}", rules::table_name(interface));
    Ok(String::from_utf8_lossy(&output.stdout).lines().any(|it| it.trim() == line))
}

fn root(interface: &str) -> Result<Root, Error> {
    if !rules::is_device_name(interface) || !has_interface(interface) {
        return Err(Error::NoInterface { interface: interface.into() });
    }
    let output = run("tc", &["qdisc", "show", "dev", interface])?;
    Ok(read_root(&String::from_utf8_lossy(&output.stdout)))
}

/// `qdisc htb fa40: root refcnt 2 …`. Handle 0: is what the kernel chose.
fn read_root(text: &str) -> Root {
    let of_root = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("qdisc")).then_some(())?;
        let (kind, handle) = (words.next()?, words.next()?);
        (words.next() == Some("root")).then(|| (kind.to_owned(), handle.to_owned()))
    };
    match text.lines().find_map(of_root) {
        None => Root::Default,
        Some((_, handle)) if handle == "0:" => Root::Default,
        Some((kind, handle)) if kind == "htb" && handle == HANDLE => Root::Ours,
        Some((kind, handle)) => Root::Foreign(format!("{kind} {handle}")),
    }
}

/// What the kernel says of a kind that it does not have, today and of old.
fn is_unknown(reason: &str) -> bool {
    ["qdisc kind is unknown", "No such file or directory", "Unknown qdisc", "classifier not found"]
        .iter()
        .any(|it| reason.contains(it))
}

fn batch(lines: &[String]) -> Result<(), Error> {
    feed("tc", &["-batch", "-"], &lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_the_root_is_is_told_by_its_handle() {
        assert_eq!(read_root("qdisc noqueue 0: root refcnt 2 \n"), Root::Default);
        assert_eq!(read_root(""), Root::Default);
        let ours = "qdisc htb fa40: root refcnt 2 r2q 10 default 0x60\nqdisc bfifo fa51: parent fa40:10 limit 12112b\n";
        assert_eq!(read_root(ours), Root::Ours);
        assert_eq!(read_root("qdisc htb 1: root refcnt 2 r2q 10"), Root::Foreign("htb 1:".into()));
        assert_eq!(read_root("qdisc cake 8001: root refcnt 2"), Root::Foreign("cake 8001:".into()));
        // What is not at the root is in nobody's way.
        assert_eq!(read_root("qdisc ingress ffff: parent ffff:fff1 ----------------\n"), Root::Default);
    }

    #[test]
    fn who_may_not_change_networks_is_told_so_and_nothing_is_done() {
        let shaping = Shaping {
            interface: "lo".into(),
            rate: 1_000_000,
            burst: 64,
            groups: Vec::new(),
            leaves: Vec::new(),
            round_trip: Duration::from_millis(600),
            rules: Vec::new(),
            media_leaf: 0x10,
            media: Vec::new(),
            otherwise: 0x60,
            neighbours: 0x60,
            echo: None,
            splits: true,
            longest: None,
        };
        // Where this process has no right itself, that is what it is told.
        let held = Hold::take("lo");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                capability::give_up_net_admin().unwrap();
                let mut refusals = vec![Hold::take("lo").map(drop)];
                if let Ok(hold) = &held {
                    refusals.extend([
                        shaping.apply(hold).map(drop),
                        shaping.set_media(hold, &[]).map(drop),
                        shaping.apply_longest(hold).map(drop),
                        unshape(hold).map(drop),
                    ]);
                }
                let line = shaped("lo").unwrap_err().to_string();
                assert!(line.starts_with("seeing how a link is shaped needs CAP_NET_ADMIN"), "{line}");
                for refused in refusals {
                    let line = refused.unwrap_err().to_string();
                    assert!(line.starts_with("shaping a link needs CAP_NET_ADMIN"), "{line}");
                }
            });
        });
    }
}
