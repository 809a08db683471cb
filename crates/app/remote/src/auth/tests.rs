//! The door in virtual time: hashes take none, waits take all.

use std::time::Duration;

use base64::Engine;
use farhop_settings::RemoteSettings;
use http::HeaderValue;
use http::header::PROXY_AUTHORIZATION;

use super::*;
use crate::passwords;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

struct Door {
    gate: Gate,
    settings: AuthSettings,
    bus: Bus,
    _folder: tempfile::TempDir,
}

impl Door {
    /// A door for anna (password "one") and ben ("two").
    fn new() -> Door {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("users");
        passwords::add(&file, "anna", "one", false).unwrap();
        passwords::add(&file, "ben", "two", false).unwrap();
        let sets = [
            "ground.0.name=\"g\"".to_owned(),
            "ground.0.address=\"127.0.0.1:1\"".into(),
            "ground.0.keys=[\"x\"]".into(),
            "auth.required=true".into(),
            format!("auth.file={}", file.display()),
        ];
        let settings = farhop_settings::load::<RemoteSettings>(None, &sets).unwrap().auth;
        let bus = Bus::new();
        Door { gate: Gate::open(&settings, bus.clone()).unwrap(), settings, bus, _folder: folder }
    }

    /// Under which name somebody is let in.
    async fn knock(&self, address: IpAddr, name: &str, password: &str) -> Result<Arc<str>, Refused> {
        match self.gate.admit(address, &fields(name, password)).await {
            Admission::As(account) => Ok(account.name),
            Admission::Refused(refused) => Err(refused),
            Admission::Open => panic!("everybody has to prove who they are"),
        }
    }
}

fn fields(name: &str, password: &str) -> HeaderMap {
    let pair = base64::prelude::BASE64_STANDARD.encode(format!("{name}:{password}"));
    let value = HeaderValue::from_str(&format!("Basic {pair}")).unwrap();
    HeaderMap::from_iter([(PROXY_AUTHORIZATION, value)])
}

const WRONG: Result<Arc<str>, Refused> = Err(Refused::Wrong);

#[tokio::test(start_paused = true)]
async fn who_is_right_is_let_in_under_that_name() {
    let door = Door::new();
    assert_eq!(door.knock(HERE, "anna", "one").await, Ok("anna".into()));
    assert_eq!(door.knock(HERE, "ben", "two").await, Ok("ben".into()));
    assert_eq!(door.gate.admit(HERE, &HeaderMap::new()).await, Admission::Refused(Refused::Missing));
    let bearer = HeaderMap::from_iter([(PROXY_AUTHORIZATION, HeaderValue::from_static("Bearer x"))]);
    assert_eq!(door.gate.admit(HERE, &bearer).await, Admission::Refused(Refused::Unreadable));
    for (name, password) in [("anna", "two"), ("ben", "one"), ("carl", "one"), ("", "")] {
        assert_eq!(door.knock(THERE, name, password).await, WRONG, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_nobody_has_to_prove_who_they_are_the_file_is_not_looked_at() {
    let settings = AuthSettings { required: false, file: "/nowhere".into(), ..Door::new().settings };
    let gate = Gate::open(&settings, Bus::new()).unwrap();
    assert_eq!(gate.admit(HERE, &fields("anna", "x")).await, Admission::Open);
}

#[tokio::test(start_paused = true)]
async fn guesses_wait_longer_each_time_and_others_do_not_wait_for_them() {
    let door = Door::new();
    let start = Instant::now();
    for (number, waited) in [(1, 0), (2, 500), (3, 1500), (4, 3500)] {
        assert_eq!(door.knock(HERE, "anna", &format!("guess {number}")).await, WRONG);
        // The timer's grain is a millisecond.
        let over = start.elapsed().as_millis() as u64 - waited;
        assert!(over < 10, "guess {number}: {over} ms too late");
    }
    let now = Instant::now();
    assert_eq!(door.knock(THERE, "anna", "one").await, Ok("anna".into()));
    assert!(now.elapsed() < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn guesses_on_many_connections_are_no_faster_than_on_one() {
    let door = Door::new();
    let start = Instant::now();
    let guesses: Vec<String> = (0..4).map(|number| format!("guess {number}")).collect();
    let [a, b, c, d] = [0, 1, 2, 3].map(|number| door.knock(HERE, "anna", &guesses[number]));
    assert_eq!(tokio::join!(a, b, c, d), (WRONG, WRONG, WRONG, WRONG));
    assert!(start.elapsed() >= Duration::from_millis(3500));
}

#[tokio::test(start_paused = true)]
async fn who_is_known_does_not_wait_for_guesses_from_the_same_address() {
    let door = Door::new();
    door.knock(HERE, "anna", "one").await.unwrap();
    for number in 0..5 {
        door.knock(HERE, "ben", &format!("guess {number}")).await.unwrap_err();
    }
    let now = Instant::now();
    assert_eq!(door.knock(HERE, "anna", "one").await, Ok("anna".into()));
    assert_eq!(now.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_page_of_requests_with_one_old_password_is_one_failure() {
    let door = Door::new();
    let requests = (0..100).map(|_| door.knock(HERE, "anna", "old"));
    for answer in futures(requests).await {
        assert_eq!(answer, WRONG);
    }
    assert_eq!(door.bus.counters().logins_refused(), 1);
}

/// All of them at once.
async fn futures<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        for (one, output) in &mut all {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = one.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        if all.iter().all(|(_, output)| output.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    all.into_iter().filter_map(|(_, output)| output).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_told_of_a_failure_names_users_and_nothing_else() {
    let door = Door::new();
    let mut events = door.bus.subscribe();
    for (typed, told) in [("anna", Some("anna")), ("hunter2", None)] {
        door.knock(HERE, typed, "x").await.unwrap_err();
        let Event::LoginRefused { address, user, .. } = events.next().await.unwrap().unwrap().event.clone()
        else {
            panic!("a refused login is told");
        };
        assert_eq!((address.as_str(), user.as_deref()), ("10.0.0.1", told));
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_read_anew_counts_at_once() {
    let door = Door::new();
    assert_eq!(door.knock(HERE, "anna", "one").await, Ok("anna".into()));
    assert_eq!(door.knock(HERE, "anna", "new").await, WRONG);
    passwords::add(&door.settings.file, "anna", "new", true).unwrap();
    passwords::remove(&door.settings.file, "ben").unwrap();
    assert_eq!(door.knock(HERE, "anna", "one").await, Ok("anna".into()), "not before it is asked for");
    door.gate.reload(&door.settings).unwrap();
    assert_eq!(door.knock(HERE, "anna", "one").await, WRONG);
    assert_eq!(door.knock(HERE, "anna", "new").await, Ok("anna".into()));
    assert_eq!(door.knock(HERE, "ben", "two").await, WRONG);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_became_damaged_changes_nothing() {
    let door = Door::new();
    farhop_files::replace(&door.settings.file, b"anna\n").unwrap();
    let error = door.gate.reload(&door.settings).unwrap_err().to_string();
    assert!(error.contains("users:1: not 'name:hash'"), "{error}");
    assert_eq!(door.knock(HERE, "anna", "one").await, Ok("anna".into()));
}
