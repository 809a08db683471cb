//! What the control socket tells of bypasses and switches, and how they are forgotten.

use std::net::IpAddr;
use std::sync::Arc;

use farhop_consent::Host;
use farhop_control::Server;
use serde_json::{Value, json};

use super::{Consent, now};

/// Adds the commands `bypasses` and `forget`.
pub(crate) fn server(consent: &Arc<Consent>, server: Server) -> Server {
    let (told, forgetting) = (Arc::clone(consent), Arc::clone(consent));
    server
        .command(
            "bypasses",
            "what goes through untouched: learned hosts, clients without the CA, users' switches",
            {
                move || {
                    let list = told.list();
                    async move { Ok(list) }
                }
            },
        )
        .command_with(
            "forget",
            "forgets what was learned: {\"host\":HOST}, {\"client\":ADDRESS}, both, or {\"all\":true}",
            &["host", "client", "all"],
            {
                move |args| {
                    let outcome = forget(&forgetting, &args);
                    async move { outcome }
                }
            },
        )
}

fn forget(consent: &Consent, args: &Value) -> Result<Value, String> {
    let usage = "say what: {\"host\":\"a.example\"}, {\"client\":\"10.0.0.7\"}, both, or {\"all\":true}";
    let args = args.as_object().filter(|args| !args.is_empty()).ok_or(usage)?;
    let text = |name: &str| args.get(name).map(|value| value.as_str().ok_or(usage)).transpose();
    let host: Option<Host> = match text("host")? {
        Some(host) => Some(host.parse().map_err(|error| format!("{host} is {error}"))?),
        None => None,
    };
    let client: Option<IpAddr> = match text("client")? {
        Some(client) => Some(client.parse().map_err(|_| format!("{client} is not an address"))?),
        None => None,
    };
    let all = args.get("all").map(|all| all.as_bool().ok_or(usage)).transpose()?.unwrap_or(false);
    if all == (host.is_some() || client.is_some()) {
        return Err(usage.into());
    }
    Ok(json!({ "forgotten": consent.forget(client, host.as_ref()) }))
}

impl Consent {
    fn list(&self) -> Value {
        let (kept, now) = (self.kept(), now());
        let learned = kept.learned.records(now).map(|(place, record)| {
            json!({
                "client": place.client.map(|client| client.to_string()),
                "host": place.host.to_string(),
                "port": place.port,
                "lesson": record.lesson.as_str(),
                "times": record.times,
                "left_s": record.until.from_now(now).as_secs(),
            })
        });
        let untrusting = kept.learned.untrusting(now).map(|(client, it)| {
            json!({
                "client": client.to_string(),
                "times": it.times,
                "left_s": it.until.map(|until| until.from_now(now).as_secs()),
            })
        });
        let agreed = kept.switches.all(now).filter(|(_, choices)| choices.has_agreed);
        let left = |until: &Option<farhop_consent::Moment>| until.map(|until| until.from_now(now).as_secs());
        let switched_off = kept.switches.all(now).flat_map(|(user, choices)| {
            let everything = choices.everything.map(|until| (None, until));
            let sites = choices.sites.into_iter().map(|(site, until)| (Some(site.to_string()), until));
            let all = everything.into_iter().chain(sites);
            let shown =
                all.map(|(site, until)| json!({ "user": user, "site": site, "left_s": left(&until) }));
            shown.collect::<Vec<_>>()
        });
        json!({
            "learned": learned.collect::<Vec<_>>(),
            "without_ca": untrusting.collect::<Vec<_>>(),
            "switched_off": switched_off.collect::<Vec<_>>(),
            "agreed": agreed.map(|(user, _)| user).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_consent::Lesson;
    use farhop_events::Bus;

    fn consent() -> Consent {
        let sets = ["ground.0.name=\"g\"", "ground.0.address=\"127.0.0.1:1\"", "ground.0.keys=[\"x\"]"];
        let sets = sets.map(str::to_owned);
        let settings: farhop_settings::RemoteSettings = farhop_settings::load(None, &sets).unwrap();
        let consent = Consent::open(&settings.interception, false, Bus::new()).unwrap();
        for client in ["10.0.0.1", "10.0.0.2"] {
            consent.learn(Lesson::Distrusted, client.parse().unwrap(), "pinned.example", 443);
        }
        consent.learn(Lesson::ClientCertificate, "10.0.0.1".parse().unwrap(), "cards.example", 443);
        consent
    }

    fn hosts(consent: &Consent) -> Vec<String> {
        let list = consent.list();
        let learned = list["learned"].as_array().unwrap();
        learned.iter().map(|it| format!("{} {}", it["host"].as_str().unwrap(), it["client"])).collect()
    }

    #[test]
    fn lessons_are_listed_and_forgotten_by_host_and_client() {
        let consent = consent();
        assert_eq!(
            hosts(&consent),
            ["cards.example null", "pinned.example \"10.0.0.1\"", "pinned.example \"10.0.0.2\""]
        );
        assert_eq!(consent.list()["learned"][1]["lesson"], "distrusted");
        let args = json!({"host": "PINNED.example", "client": "10.0.0.1"});
        assert_eq!(forget(&consent, &args), Ok(json!({"forgotten": 1})));
        assert_eq!(hosts(&consent), ["cards.example null", "pinned.example \"10.0.0.2\""]);
        forget(&consent, &json!({"all": true})).unwrap();
        assert!(hosts(&consent).is_empty());
    }

    #[test]
    fn what_is_to_be_forgotten_must_be_said() {
        let consent = consent();
        for args in [
            Value::Null,
            json!({}),
            json!({"all": false}),
            json!({"all": true, "host": "a"}),
            json!({"host": 1}),
            json!({"host": "a b"}),
            json!({"client": "a"}),
        ] {
            assert!(forget(&consent, &args).is_err(), "{args}");
        }
        assert_eq!(hosts(&consent).len(), 3);
    }
}
