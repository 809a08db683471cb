//! Whether a connection may be looked into: holds the operator's policy and what is kept, tells the time, and sees to it
//! that the latter outlives the process. The rules themselves are pure, in `farhop_consent`.

mod commands;
mod state;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farhop_consent::{
    Asked, Choices, Decision, Doubts, Host, Kept, Leavers, Lesson, Moment, Policy, Rules, Scope, Stage,
    Terms, TooMany, Why,
};
use farhop_events::{Bus, Bypass, Event};
use farhop_settings::remote::InterceptionSettings;
use tokio::sync::{Notify, watch};

pub(crate) use commands::server;
pub use state::ConsentError;

use crate::users::User;

/// Lessons come in bursts; one writing a second is enough for them.
const PAUSE: Duration = Duration::from_secs(1);
/// A browser leaves one of several connections as soon as another is there; that one is given the time to go on.
const MOMENT: Duration = Duration::from_secs(1);

/// The remote's word on interception.
pub(crate) struct Consent {
    policy: RwLock<Arc<Policy>>,
    kept: Mutex<Kept>,
    leavers: Mutex<Leavers>,
    doubts: Mutex<Doubts>,
    /// Where it is kept; `None` where it ends with the process.
    file: Option<PathBuf>,
    has_changed: AtomicBool,
    changed: Notify,
    /// How often users have switched something.
    switched: watch::Sender<u64>,
    bus: Bus,
}

impl Consent {
    /// Consent by these settings. What was kept is read if interception is on, and nothing is where `is_kept` is false.
    ///
    /// # Errors
    /// The file cannot be read. One of another version, or damaged, is set aside with a line in the log.
    pub(crate) fn open(
        settings: &InterceptionSettings,
        is_kept: bool,
        bus: Bus,
    ) -> Result<Consent, ConsentError> {
        let file = (is_kept && settings.enabled).then(|| settings.state.clone());
        let kept = file.as_deref().map_or(Ok(Kept::default()), state::load)?;
        Ok(Consent {
            policy: RwLock::new(Arc::new(policy(settings))),
            kept: Mutex::new(kept),
            leavers: Mutex::default(),
            doubts: Mutex::default(),
            file,
            has_changed: AtomicBool::new(false),
            changed: Notify::new(),
            switched: watch::Sender::new(0),
            bus,
        })
    }

    /// Takes new settings; those on which files and keys hang are the caller's to hold back.
    pub(crate) fn reload(&self, settings: &InterceptionSettings) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy(settings));
    }

    /// Whether a connection of `user` from `client` to `host` and `port` may be looked into.
    pub(crate) fn decide(&self, user: &User, client: IpAddr, host: &str, port: u16) -> Decision {
        let Ok(host) = host.parse::<Host>() else { return Decision::PassThrough(Why::NoHost) };
        let asked = Asked { user: &user.name, client, host: &host, port };
        self.policy().decide(&self.kept(), &asked, now())
    }

    /// Learns from a connection that could not be looked into: for this client, or for all of them where it is the
    /// origin that wants it so.
    pub(crate) fn learn(&self, lesson: Lesson, client: IpAddr, host: &str, port: u16) {
        let Ok(host) = host.parse::<Host>() else { return };
        let (terms, now) = (self.policy().terms, now());
        let Some(record) = self.kept().learned.learn(lesson, (client, &host, port), now, &terms) else {
            return;
        };
        self.bus.emit(Event::BypassLearned {
            client: (!lesson.concerns_all()).then(|| client.to_canonical().to_string()),
            host: host.to_string(),
            port,
            lesson: lesson.as_str().into(),
            times: record.times,
            lasts_s: record.until.from_now(now).as_secs(),
        });
        self.note_change();
    }

    /// Whether experience says that connections of `client` to `host` and `port` are not to be looked into.
    pub(crate) fn is_learned(&self, client: IpAddr, host: &str, port: u16) -> bool {
        host.parse::<Host>().is_ok_and(|host| self.kept().learned.find(client, &host, port, now()).is_some())
    }

    /// What `client` itself has taught: whether it is left alone altogether, and at which hosts.
    pub(crate) fn taught_by(&self, client: IpAddr) -> (bool, Vec<String>) {
        let kept = self.kept();
        let (is_alone, hosts) = kept.learned.of(client, now());
        (is_alone, hosts.into_iter().map(ToString::to_string).collect())
    }

    /// Notes that `client` has completed a handshake with a certificate of ours for `host`: it has the CA.
    pub(crate) fn trusted(&self, client: IpAddr, host: &str, port: u16) {
        self.kept().learned.trusted(client);
        self.went_on(Stage::Handshake, client, host, port);
    }

    /// Notes that `client` went through `stage` of a connection to `host`.
    pub(crate) fn went_on(&self, stage: Stage, client: IpAddr, host: &str, port: u16) {
        if let Ok(host) = host.parse::<Host>() {
            self.leavers().went_on(stage, (client, &host, port), now());
        }
    }

    /// Notes, in a moment, that `client` left `stage` when it had seen our certificate, and learns from it when that is
    /// its way.
    pub(crate) fn left(self: &Arc<Self>, stage: Stage, client: IpAddr, host: &str, port: u16) {
        let Ok(place) = host.parse::<Host>() else { return };
        let consent = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(MOMENT).await;
            let distrusts = consent.leavers().left(stage, (client, &place, port), now());
            if distrusts {
                consent.learn(Lesson::Distrusted, client, &place.to_string(), port);
            }
        });
    }

    /// Notes that a handshake with an origin was cut off; whether that is its way, and no outage, by now.
    pub(crate) fn cut_off(&self, host: &str, port: u16) -> bool {
        host.parse::<Host>().is_ok_and(|host| self.doubts().cut_off(&host, port, now()))
    }

    /// Notes that an origin has answered over TLS.
    pub(crate) fn answered(&self, host: &str, port: u16) {
        let mut doubts = self.doubts();
        if !doubts.is_empty()
            && let Ok(host) = host.parse::<Host>()
        {
            doubts.answered(&host, port);
        }
    }

    /// Forgets what was learned of `client` (all of them where it is `None`) and `host` (likewise), so that it is tried
    /// anew; gives how many lessons that were.
    pub(crate) fn forget(&self, client: Option<IpAddr>, host: Option<&Host>) -> usize {
        let count = self.kept().learned.forget(client, host);
        self.note_change();
        count
    }

    /// What `user` has switched off: everything, where users are asked first and this one has not agreed.
    pub(crate) fn choices(&self, user: &User) -> Choices {
        let mut choices = self.kept().switches.of(&user.name, now());
        if self.policy().asks && !choices.has_agreed {
            choices.everything.get_or_insert(None);
        }
        choices
    }

    /// Switches interception off for `user`, for ever or for a time.
    ///
    /// # Errors
    /// The user, or all users together, have switched off too much already.
    pub(crate) fn switch_off(
        &self,
        user: &User,
        scope: Scope,
        time: Option<Duration>,
    ) -> Result<(), TooMany> {
        let now = now();
        self.kept().switches.switch_off(&user.name, scope, time.map(|time| now.after(time)), now)?;
        self.note_switch();
        Ok(())
    }

    /// Switches interception on, or on again, for `user`: who does so for everything has agreed to it.
    pub(crate) fn switch_on(&self, user: &User, scope: &Scope) {
        let asks = self.policy().asks;
        let mut kept = self.kept();
        kept.switches.switch_on(&user.name, scope, now());
        if asks && *scope == Scope::Everything {
            kept.switches.agree(&user.name);
        }
        drop(kept);
        self.note_switch();
    }

    /// Changes whenever a user has switched something: what is decided on connections that stand may be another then.
    pub(crate) fn switches(&self) -> watch::Receiver<u64> {
        self.switched.subscribe()
    }

    fn note_switch(&self) {
        self.note_change();
        self.switched.send_modify(|switched| *switched += 1);
    }

    /// Keeps on disk what changes, until the future is dropped.
    pub(crate) async fn keep(&self) {
        loop {
            self.changed.notified().await;
            self.save().await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Keeps what has changed and is not on disk yet.
    pub(crate) async fn save(&self) {
        let Some(file) = self.file.clone() else { return };
        if !self.has_changed.swap(false, Ordering::AcqRel) {
            return;
        }
        let text = self.kept().to_text();
        let written = tokio::task::spawn_blocking(move || state::save(&file, &text)).await;
        if let Ok(Err(error)) = written {
            self.has_changed.store(true, Ordering::Release);
            tracing::warn!(target: "farhop", "{error}");
        }
    }

    fn note_change(&self) {
        self.has_changed.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn leavers(&self) -> MutexGuard<'_, Leavers> {
        self.leavers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn doubts(&self) -> MutexGuard<'_, Doubts> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reason as events tell it: the word, and the list or lesson behind it.
pub(crate) fn told(why: Why) -> (Bypass, Option<String>) {
    let word = match why {
        Why::Off => Bypass::Off,
        Why::Port => Bypass::Port,
        Why::NoHost => Bypass::NoHost,
        Why::NotAgreed => Bypass::NotAgreed,
        Why::SwitchedOff => Bypass::SwitchedOff,
        Why::SiteSwitchedOff => Bypass::SiteSwitchedOff,
        Why::Configured => Bypass::Configured,
        Why::BuiltIn(category) => return (Bypass::BuiltIn, Some(category.to_string())),
        Why::Learned(lesson) => return (Bypass::Learned, Some(lesson.as_str().into())),
    };
    (word, None)
}

fn policy(settings: &InterceptionSettings) -> Policy {
    Policy {
        enabled: settings.enabled,
        asks: settings.ask,
        ports: settings.ports.iter().map(|range| range.first..=range.last).collect(),
        rules: Rules::new(&settings.bypass, &settings.categories),
        terms: Terms { first: settings.learned, longest: settings.learned_most },
    }
}

fn now() -> Moment {
    Moment(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn settings(state: &Path) -> InterceptionSettings {
        let sets = [
            "ground.0.name=\"g\"".to_owned(),
            "ground.0.address=\"127.0.0.1:1\"".into(),
            "ground.0.keys=[\"x\"]".into(),
            "interception.enabled=true".into(),
            format!("interception.state={}", state.display()),
        ];
        farhop_settings::load::<farhop_settings::RemoteSettings>(None, &sets).unwrap().interception
    }

    fn anna() -> User {
        User { id: 1, name: "anna".into() }
    }

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[tokio::test]
    async fn choices_and_lessons_outlive_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder.path().join("consent.json"));
        let consent = Consent::open(&settings, true, Bus::new()).unwrap();
        assert_eq!(consent.decide(&anna(), CLIENT, "www.a.example", 443), Decision::Intercept);
        consent.switch_off(&anna(), Scope::site(&"www.a.example".parse().unwrap()), None).unwrap();
        consent.learn(Lesson::Distrusted, CLIENT, "pinned.example", 443);
        consent.save().await;
        let consent = Consent::open(&settings, true, Bus::new()).unwrap();
        let why = |host| consent.decide(&anna(), CLIENT, host, 443);
        assert_eq!(why("www.a.example"), Decision::PassThrough(Why::SiteSwitchedOff));
        assert_eq!(why("pinned.example"), Decision::PassThrough(Why::Learned(Lesson::Distrusted)));
        assert_eq!(why("other.example"), Decision::Intercept);
    }

    #[test]
    fn where_users_are_asked_first_it_is_off_until_they_switch_it_on() {
        let folder = tempfile::tempdir().unwrap();
        let settings = InterceptionSettings { ask: true, ..settings(&folder.path().join("s")) };
        let consent = Consent::open(&settings, false, Bus::new()).unwrap();
        let decide = || consent.decide(&anna(), CLIENT, "a.example", 443);
        assert_eq!(decide(), Decision::PassThrough(Why::NotAgreed));
        assert_eq!(consent.choices(&anna()).everything, Some(None));
        consent.switch_on(&anna(), &Scope::site(&"a.example".parse().unwrap()));
        assert_eq!(decide(), Decision::PassThrough(Why::NotAgreed), "a site alone is not everything");
        consent.switch_on(&anna(), &Scope::Everything);
        assert_eq!(decide(), Decision::Intercept);
        assert_eq!(consent.choices(&anna()).everything, None);
        consent.switch_off(&anna(), Scope::Everything, None).unwrap();
        assert_eq!(decide(), Decision::PassThrough(Why::SwitchedOff));
    }

    #[tokio::test]
    async fn nothing_is_written_where_nothing_is_to_be_kept() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(&folder.path().join("consent.json"));
        let off = InterceptionSettings { enabled: false, ..settings.clone() };
        for (settings, is_kept) in [(&settings, false), (&off, true)] {
            let consent = Consent::open(settings, is_kept, Bus::new()).unwrap();
            consent.switch_off(&anna(), Scope::Everything, None).unwrap();
            consent.save().await;
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_lesson_is_told_and_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let bus = Bus::new();
        let consent = Consent::open(&settings(&folder.path().join("s")), false, bus.clone()).unwrap();
        for _ in 0..2 {
            consent.learn(Lesson::Distrusted, CLIENT, "pinned.example", 443);
        }
        assert_eq!(bus.counters().bypasses_learned(), 1);
    }

    #[test]
    fn settings_are_taken_over_while_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let before = settings(&folder.path().join("s"));
        let consent = Consent::open(&before, false, Bus::new()).unwrap();
        let bypass = vec![".a.example".parse().unwrap()];
        consent.reload(&InterceptionSettings { bypass, ..before });
        let why = consent.decide(&anna(), CLIENT, "www.a.example", 443);
        assert_eq!(why, Decision::PassThrough(Why::Configured));
    }

    #[test]
    fn what_is_no_host_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let consent = Consent::open(&settings(&folder.path().join("s")), false, Bus::new()).unwrap();
        assert_eq!(consent.decide(&anna(), CLIENT, "a b", 443), Decision::PassThrough(Why::NoHost));
    }
}
