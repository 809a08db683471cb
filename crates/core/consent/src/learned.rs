//! What experience taught: hosts that cannot be looked into, for one client or for all, until further notice.
//!
//! A lesson is forgotten, so that what has been mended is tried again; when it has to be learned anew it lasts longer
//! each time. A client that trusts nothing that it is shown most likely lacks the CA: it is left alone altogether.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::moment::Moment;

/// Each time a lesson is learned anew it lasts this many times longer.
const LONGER: u32 = 4;
/// Hosts that a client must refuse in a row, trusting none in between, to count as one without the CA.
const UNTRUSTING: usize = 5;
/// Most lessons held, and most for one client: more are a client's game, not experience.
const MOST: usize = 4096;
const MOST_OF_ONE: usize = 256;

/// Why a host cannot be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lesson {
    /// The client broke the handshake off as one that pins a key or lacks the CA does.
    Distrusted,
    /// The client spoke something else than TLS.
    NotTls,
    /// The client offered only protocols (ALPN) that are not spoken here.
    UnknownAlpn,
    /// The client's handshake names another host than it connects to: who it is for is encrypted (ECH).
    NameDiffers,
    /// Inside TLS the client spoke something else than HTTP, or waited for the server to begin.
    NotHttpWithin,
    /// The origin asks for a certificate that only the client has.
    ClientCertificate,
    /// The origin speaks something else than HTTP.
    NotHttp,
}

impl Lesson {
    /// Whether it is true for every client, as what the origin wants is, or only for the one that taught it.
    pub const fn concerns_all(self) -> bool {
        matches!(self, Lesson::ClientCertificate | Lesson::NotHttp)
    }

    /// As lists and events spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Lesson::Distrusted => "distrusted",
            Lesson::NotTls => "not_tls",
            Lesson::UnknownAlpn => "unknown_alpn",
            Lesson::NameDiffers => "name_differs",
            Lesson::NotHttpWithin => "not_http_within",
            Lesson::ClientCertificate => "client_certificate",
            Lesson::NotHttp => "not_http",
        }
    }
}

/// What a lesson is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The client; `None` for all of them.
    pub client: Option<IpAddr>,
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// How long lessons last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The first time.
    pub first: Duration,
    /// At most, however often.
    pub longest: Duration,
}

impl Terms {
    fn lasts(&self, times: u32) -> Duration {
        self.first.saturating_mul(LONGER.saturating_pow(times.saturating_sub(1))).min(self.longest)
    }
}

/// A lesson as it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What it says.
    pub lesson: Lesson,
    /// How often it had to be learned.
    pub times: u32,
    /// Until when it counts. It is remembered for as long again as it may last, to know it when it comes back.
    pub until: Moment,
}

/// A client that has refused hosts in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Untrusting {
    /// The hosts that it refused since it trusted one.
    pub hosts: BTreeSet<Host>,
    /// How often it was found to trust nothing.
    pub times: u32,
    /// Until when it is left alone altogether.
    pub until: Option<Moment>,
}

/// All lessons, those that count and those that are only remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Learned {
    pub(crate) records: BTreeMap<Place, Record>,
    pub(crate) untrusting: BTreeMap<IpAddr, Untrusting>,
}

impl Learned {
    /// Learns that `host` cannot be looked into for `client`, or for anyone where the lesson [`Lesson::concerns_all`].
    /// Gives what is new: nothing when it counts already, as when a browser tried on several connections at once.
    pub fn learn(
        &mut self,
        lesson: Lesson,
        (client, host, port): (IpAddr, &Host, u16),
        now: Moment,
        terms: &Terms,
    ) -> Option<Record> {
        self.forget_the_old(now, terms);
        let client = client.to_canonical();
        let place = Place { client: (!lesson.concerns_all()).then_some(client), host: host.clone(), port };
        let known = self.records.get(&place);
        if known.is_some_and(|record| record.until > now) {
            return None;
        }
        let times = known.map_or(0, |record| record.times).saturating_add(1);
        let record = Record { lesson, times, until: now.after(terms.lasts(times)) };
        self.make_room(&place);
        self.records.insert(place, record.clone());
        if lesson == Lesson::Distrusted {
            self.doubt(client, host, now, terms);
        }
        Some(record)
    }

    /// Notes that `client` trusted what it was shown: it has the CA, whatever it refuses elsewhere.
    pub fn trusted(&mut self, client: IpAddr) {
        self.untrusting.remove(&client.to_canonical());
    }

    /// The lesson that counts for this client, host and port.
    pub fn find(&self, client: IpAddr, host: &Host, port: u16, now: Moment) -> Option<Lesson> {
        let client = client.to_canonical();
        let alone = self.untrusting.get(&client).and_then(|it| it.until).is_some_and(|until| until > now);
        if alone {
            return Some(Lesson::Distrusted);
        }
        [None, Some(client)].into_iter().find_map(|client| {
            let record = self.records.get(&Place { client, host: host.clone(), port })?;
            (record.until > now).then_some(record.lesson)
        })
    }

    /// Every lesson that counts, in order.
    pub fn records(&self, now: Moment) -> impl Iterator<Item = (&Place, &Record)> {
        self.records.iter().filter(move |(_, record)| record.until > now)
    }

    /// Every client that is left alone altogether, in order.
    pub fn untrusting(&self, now: Moment) -> impl Iterator<Item = (IpAddr, &Untrusting)> {
        let alone = move |it: &Untrusting| it.until.is_some_and(|until| until > now);
        self.untrusting.iter().filter(move |(_, it)| alone(it)).map(|(client, it)| (*client, it))
    }

    /// What `client` itself has taught: whether it is left alone altogether, and the hosts that it is not looked into at.
    pub fn of(&self, client: IpAddr, now: Moment) -> (bool, Vec<&Host>) {
        let client = client.to_canonical();
        let is_alone = self.untrusting(now).any(|(known, _)| known == client);
        let mut hosts: Vec<_> = self
            .records(now)
            .filter(|(place, _)| place.client == Some(client))
            .map(|(it, _)| &it.host)
            .collect();
        hosts.dedup();
        (is_alone, hosts)
    }

    /// Forgets what is known of `client` (of all where it is `None`) and `host` (of all where it is `None`), so that it is
    /// tried anew; gives how many lessons that were.
    pub fn forget(&mut self, client: Option<IpAddr>, host: Option<&Host>) -> usize {
        let client = client.map(|client| client.to_canonical());
        let before = self.records.len() + self.untrusting.len();
        self.records.retain(|place, _| {
            let is_meant =
                (client.is_none() || place.client == client) && host.is_none_or(|host| place.host == *host);
            !is_meant
        });
        if host.is_none() {
            self.untrusting.retain(|known, _| client.is_some_and(|client| client != *known));
        }
        before - self.records.len() - self.untrusting.len()
    }

    fn doubt(&mut self, client: IpAddr, host: &Host, now: Moment, terms: &Terms) {
        if self.untrusting.len() >= MOST && !self.untrusting.contains_key(&client) {
            // The one of which the least is known, so that a game of many clients shuts nobody else out.
            let least = self.untrusting.iter().min_by_key(|(_, it)| (it.until, it.times, it.hosts.len()));
            if let Some(least) = least.map(|(known, _)| *known) {
                self.untrusting.remove(&least);
            }
        }
        let it = self.untrusting.entry(client).or_default();
        if it.hosts.len() < UNTRUSTING {
            it.hosts.insert(host.clone());
        }
        if it.hosts.len() >= UNTRUSTING && it.until.is_none_or(|until| until <= now) {
            it.times = it.times.saturating_add(1);
            it.until = Some(now.after(terms.lasts(it.times)));
        }
    }

    fn forget_the_old(&mut self, now: Moment, terms: &Terms) {
        let is_remembered = |until: Moment| until.after(terms.longest) > now;
        self.records.retain(|_, record| is_remembered(record.until));
        self.untrusting.retain(|_, it| it.until.is_none_or(is_remembered));
    }

    /// Room for one more: the lesson that lapses first goes, of the same client where that one has too many.
    fn make_room(&mut self, place: &Place) {
        if self.records.contains_key(place) {
            return;
        }
        let of_client = |it: &Place| place.client.is_some() && it.client == place.client;
        let of_one = self.records.keys().filter(|it| of_client(it)).count();
        let first = if of_one >= MOST_OF_ONE {
            self.records.iter().filter(|(it, _)| of_client(it)).min_by_key(|(_, record)| record.until)
        } else if self.records.len() >= MOST {
            self.records.iter().min_by_key(|(_, record)| record.until)
        } else {
            None
        };
        if let Some(first) = first.map(|(place, _)| place.clone()) {
            self.records.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const TERMS: Terms = Terms { first: HOUR, longest: Duration::from_secs(30 * 24 * 3600) };
    const START: Moment = Moment(1_800_000_000);

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    fn client(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Lessons of clients and of one host, on port 443.
    struct Class {
        learned: Learned,
        now: Moment,
    }

    impl Class {
        fn new() -> Self {
            Class { learned: Learned::default(), now: START }
        }

        fn learn(&mut self, lesson: Lesson, who: u8, name: &str) -> Option<Record> {
            self.learned.learn(lesson, (client(who), &host(name), 443), self.now, &TERMS)
        }

        fn find(&self, who: u8, name: &str) -> Option<Lesson> {
            self.learned.find(client(who), &host(name), 443, self.now)
        }

        fn wait(&mut self, time: Duration) {
            self.now = self.now.after(time);
        }
    }

    #[test]
    fn what_a_client_distrusts_is_left_alone_for_it_and_that_host_and_port_only() {
        let mut class = Class::new();
        assert_eq!(class.learn(Lesson::Distrusted, 1, "pinned.example").map(|it| it.times), Some(1));
        assert_eq!(class.find(1, "pinned.example"), Some(Lesson::Distrusted));
        assert_eq!(class.find(2, "pinned.example"), None);
        assert_eq!(class.find(1, "www.pinned.example"), None);
        assert_eq!(class.learned.find(client(1), &host("pinned.example"), 8443, class.now), None);
        let inside: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        assert!(class.learned.find(inside, &host("pinned.example"), 443, class.now).is_some());
    }

    #[test]
    fn what_an_origin_wants_is_learned_for_all() {
        for lesson in [Lesson::ClientCertificate, Lesson::NotHttp] {
            let mut class = Class::new();
            class.learn(lesson, 1, "a.example");
            assert_eq!(class.find(2, "a.example"), Some(lesson));
        }
    }

    #[test]
    fn a_lesson_lapses_and_lasts_longer_each_time_up_to_the_longest() {
        let mut class = Class::new();
        let mut lasted = Vec::new();
        for _ in 0..8 {
            let record = class.learn(Lesson::Distrusted, 1, "a.example").unwrap();
            let time = record.until.from_now(class.now);
            class.wait(time - Duration::from_secs(1));
            assert!(class.find(1, "a.example").is_some());
            class.wait(Duration::from_secs(1));
            assert_eq!(class.find(1, "a.example"), None);
            lasted.push(time.as_secs() / 3600);
        }
        assert_eq!(lasted, [1, 4, 16, 64, 256, 720, 720, 720]);
    }

    #[test]
    fn a_lesson_that_was_not_needed_for_long_begins_anew() {
        let mut class = Class::new();
        class.learn(Lesson::Distrusted, 1, "a.example");
        class.wait(HOUR + TERMS.longest);
        assert_eq!(class.learn(Lesson::Distrusted, 1, "a.example").map(|it| it.times), Some(1));
    }

    #[test]
    fn connections_that_fail_together_teach_one_lesson() {
        let mut class = Class::new();
        assert!(class.learn(Lesson::Distrusted, 1, "a.example").is_some());
        assert_eq!(class.learn(Lesson::Distrusted, 1, "a.example"), None);
    }

    #[test]
    fn a_client_that_trusts_nothing_is_left_alone_altogether_for_a_while() {
        let mut class = Class::new();
        for name in ["a", "b", "c", "d"] {
            class.learn(Lesson::Distrusted, 1, name);
        }
        assert_eq!(class.find(1, "new.example"), None);
        class.learn(Lesson::Distrusted, 1, "e");
        assert_eq!(class.find(1, "new.example"), Some(Lesson::Distrusted));
        assert_eq!(class.find(2, "new.example"), None);
        class.wait(HOUR);
        assert_eq!(class.find(1, "new.example"), None);
        // One more is enough to know it again, and for longer.
        class.learn(Lesson::Distrusted, 1, "f");
        class.wait(2 * HOUR);
        assert_eq!(class.find(1, "new.example"), Some(Lesson::Distrusted));
    }

    #[test]
    fn a_client_is_told_what_it_has_taught_itself_and_nothing_of_others() {
        let mut class = Class::new();
        class.learn(Lesson::NotTls, 2, "another.example");
        class.learn(Lesson::ClientCertificate, 2, "for-all.example");
        for name in ["a", "b", "c", "d"] {
            class.learn(Lesson::Distrusted, 1, name);
        }
        assert_eq!(
            class.learned.of(client(1), class.now),
            (false, ["a", "b", "c", "d"].map(host).iter().collect())
        );
        class.learn(Lesson::Distrusted, 1, "e");
        assert!(class.learned.of(client(1), class.now).0);
        class.wait(HOUR);
        assert_eq!(class.learned.of(client(1), class.now), (false, vec![]));
    }

    #[test]
    fn a_client_that_trusts_now_and_then_is_judged_by_the_host() {
        let mut class = Class::new();
        for name in ["a", "b", "c", "d"] {
            class.learn(Lesson::Distrusted, 1, name);
        }
        class.learned.trusted(client(1));
        class.learn(Lesson::Distrusted, 1, "e");
        assert_eq!(class.find(1, "new.example"), None);
        assert_eq!(class.find(1, "e"), Some(Lesson::Distrusted));
    }

    #[test]
    fn lessons_can_be_forgotten_by_client_and_by_host() {
        let mut class = Class::new();
        for who in [1, 2] {
            for name in ["a", "b"] {
                class.learn(Lesson::Distrusted, who, name);
            }
        }
        // The client's two, and what they say of the client itself.
        assert_eq!(class.learned.forget(Some(client(1)), None), 3);
        assert_eq!((class.find(1, "a"), class.find(2, "a")), (None, Some(Lesson::Distrusted)));
        assert_eq!(class.learned.forget(None, Some(&host("a"))), 1);
        assert_eq!(class.find(2, "a"), None);
        assert_eq!(class.learned.forget(None, None), 2);
        assert_eq!(class.learned, Learned::default());
    }

    #[test]
    fn one_client_cannot_crowd_out_what_others_taught() {
        let mut class = Class::new();
        class.learn(Lesson::Distrusted, 1, "mine.example");
        for number in 0..2 * MOST {
            class.wait(Duration::from_millis(1));
            class.learn(Lesson::NotTls, 2, &format!("h{number}.example"));
        }
        assert_eq!(class.learned.records.len(), 1 + MOST_OF_ONE);
        class.now = START;
        assert_eq!(class.find(1, "mine.example"), Some(Lesson::Distrusted));
    }

    #[test]
    fn many_clients_that_distrust_one_host_each_keep_no_other_from_being_left_alone() {
        let (mut learned, now) = (Learned::default(), START);
        let mut distrusts = |client: u32, name: &str| {
            let client = IpAddr::from(client.to_be_bytes());
            learned.learn(Lesson::Distrusted, (client, &host(name), 443), now, &TERMS);
            (learned.untrusting.len(), learned.untrusting(now).count())
        };
        for client in 0..MOST as u32 {
            distrusts(client, "a.example");
        }
        for number in 0..UNTRUSTING {
            assert_eq!(distrusts(u32::MAX, &format!("h{number}.example")).0, MOST);
        }
        assert_eq!(distrusts(7, "b.example"), (MOST, 1));
    }

    #[test]
    fn the_number_of_lessons_is_bounded() {
        let mut class = Class::new();
        for number in 0..MOST + 10 {
            class.learn(Lesson::NotHttp, 1, &format!("h{number}.example"));
        }
        assert_eq!(class.learned.records.len(), MOST);
    }
}
