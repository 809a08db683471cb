//! The component manager at ground: told what is sent to whom, it says by which image policy a user's images go. The rules are
//! the settings', the judgement is `farhop_squeeze`'s; here are the clock, the lock, and the events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use farhop_events::{Bus, Event};
use farhop_settings::ground::SqueezeSettings;
use farhop_squeeze::{Manager, Moved, Policy, Rule};
use farhop_units::{BitRate, Bytes};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// See the module.
pub(crate) struct Policies {
    manager: Mutex<Manager>,
    /// Rung when there is something to be judged again, and when this ends.
    bell: Arc<Notify>,
    since: Instant,
}

/// To whom something is sent.
#[derive(Debug, Clone)]
pub(crate) struct Outlet {
    /// The remote, by its name in the settings.
    pub(crate) remote: Arc<str>,
    /// HTOTP's UserId.
    pub(crate) user: u64,
}

impl Policies {
    /// With the rules of the settings, nobody moved.
    pub(crate) fn new(settings: &SqueezeSettings) -> Policies {
        let policies = Policies { manager: Mutex::default(), bell: Arc::default(), since: Instant::now() };
        policies.lock().set(settings.policy, rules(settings));
        policies
    }

    /// Puts the rules of new settings into force.
    pub(crate) fn set(&self, settings: &SqueezeSettings, bus: &Bus) {
        self.lock().set(settings.policy, rules(settings));
        self.tell(bus);
    }

    /// So many bytes go to a user, over a link of this rate.
    pub(crate) fn sent(&self, to: &Outlet, bytes: usize, rate: Option<BitRate>) {
        let now = self.since.elapsed();
        let is_first = self.lock().handle_sent(&to.remote, to.user, Bytes(bytes as u64), rate, now);
        if is_first {
            self.bell.notify_one();
        }
    }

    /// The policy for images that go to a user of a remote, asked for or not.
    pub(crate) fn policy(&self, remote: &str, user: u64, unasked: bool) -> Policy {
        self.lock().policy(remote, user, unasked)
    }

    /// For `status`: each link that is in use, how much of it, and which rules are in force for whom. Nothing without rules.
    pub(crate) fn status(&self) -> Value {
        let moved = self.lock().moved(self.since.elapsed());
        let told = |Moved { link, in_use, rules }| {
            let rule = |(rule, users): (usize, Vec<u64>)| json!({ "rule": rule, "users": users });
            let in_force: Vec<Value> = rules.into_iter().map(rule).collect();
            let percent = (in_use * 100.0_f64).round() as u64;
            json!({ "remote": &*link, "in_use_percent": percent, "in_force": in_force })
        };
        moved.into_iter().map(told).collect()
    }

    fn judge(&self, cpu: f64, bus: &Bus) {
        self.lock().handle_timeout(cpu, self.since.elapsed());
        self.tell(bus);
    }

    fn tell(&self, bus: &Bus) {
        loop {
            // Without the lock: who listens may ask.
            let Some(change) = self.lock().poll_change() else { return };
            bus.emit(Event::PolicyMoved {
                remote: change.link.to_string(),
                user: change.user,
                rule: change.rule as u64,
                service: change.service.to_string(),
                before: change.before.to_string(),
                policy: change.policy.to_string(),
                why: change.why,
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Manager> {
        self.manager.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Policies {
    fn drop(&mut self) {
        self.bell.notify_one();
    }
}

/// Judges loads for as long as there are policies. `cpu` says how much of the saved-up processor time is used up; nothing once
/// nobody knows.
pub(crate) async fn keep(policies: Weak<Policies>, bus: Bus, cpu: impl Fn() -> Option<f64>) {
    let Some(bell) = policies.upgrade().map(|policies| Arc::clone(&policies.bell)) else { return };
    loop {
        let Some(known) = policies.upgrade() else { return };
        let due = known.lock().poll_timeout().map(|due| known.since + due);
        // Held no longer than it takes: what waits here keeps nothing alive.
        drop(known);
        let Some(due) = due else {
            bell.notified().await;
            continue;
        };
        sleep_until(due).await;
        let (Some(known), Some(cpu)) = (policies.upgrade(), cpu()) else { return };
        known.judge(cpu, &bus);
    }
}

fn rules(settings: &SqueezeSettings) -> Vec<Rule> {
    let rule = |rule: &farhop_settings::ground::PolicyRuleSettings| Rule {
        when: rule.when,
        above: rule.above.fraction(),
        below: rule.below.fraction(),
        hold: rule.hold,
        users: rule.users,
        service: rule.service,
        policy: rule.policy,
    };
    settings.rule.iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn settings(rules: &str) -> SqueezeSettings {
        let text = format!("[[remote]]\nname = 'ship'\nkeys = ['made in the test']\n{rules}");
        let settings: farhop_settings::GroundSettings =
            farhop_settings::parse(&text, std::path::Path::new("ground.toml"), &[]).unwrap();
        settings.squeeze
    }

    async fn send(policies: &Policies, tenths: u32) {
        let (to, rate) = (Outlet { remote: "ship".into(), user: 7 }, BitRate::mbit(8));
        for _ in 0..tenths {
            policies.sent(&to, 100_000, Some(rate));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_moved_under_load_is_told_of_and_moved_back_when_nothing_is_sent_any_more() {
        let bus = Bus::new();
        let mut heard = bus.subscribe();
        let policies = Arc::new(Policies::new(&settings("[[squeeze.rule]]\npolicy = 'strong'\n")));
        let keeping = tokio::spawn(keep(Arc::downgrade(&policies), bus.clone(), || Some(0.0)));
        send(&policies, 100).await;
        assert_eq!(policies.policy("ship", 7, false), Policy::Gentle);
        send(&policies, 150).await;
        assert_eq!(policies.policy("ship", 7, false), Policy::Strong);
        assert_eq!(policies.status()[0]["in_force"][0]["rule"], 0);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(policies.policy("ship", 7, false), Policy::Gentle);
        let mut moves = Vec::new();
        while let Some(Ok(stamped)) = heard.next_now() {
            if let Event::PolicyMoved { remote, before, policy, .. } = &stamped.event {
                moves.push(format!("{remote}: {before} to {policy}"));
            }
        }
        assert_eq!(moves, ["ship: gentle to strong", "ship: strong to gentle"]);
        assert_eq!(bus.counters().snapshot()["policies_moved"], 2);
        drop(policies);
        keeping.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_move_names_the_rule_that_made_it() {
        let bus = Bus::new();
        let mut heard = bus.subscribe();
        let rules =
            "[[squeeze.rule]]\npolicy = 'httpep'\n[[squeeze.rule]]\nusers = 'heavy'\npolicy = 'strong'\n";
        let policies = Arc::new(Policies::new(&settings(rules)));
        let keeping = tokio::spawn(keep(Arc::downgrade(&policies), bus.clone(), || Some(0.0)));
        let other = Outlet { remote: "ship".into(), user: 8 };
        for _ in 0..25 {
            policies.sent(&other, 100_000, Some(BitRate::mbit(8)));
            send(&policies, 10).await;
        }
        policies.set(&settings(""), &bus);
        let mut moves = Vec::new();
        while let Some(Ok(stamped)) = heard.next_now() {
            if let Event::PolicyMoved { user, rule, .. } = &stamped.event {
                moves.push((*user, *rule));
            }
        }
        moves.sort_unstable();
        assert_eq!(moves, [(None, 0), (None, 0), (Some(7), 1), (Some(7), 1)]);
        drop(policies);
        keeping.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn without_rules_nothing_is_counted_and_nobody_moved() {
        let policies = Policies::new(&settings(""));
        send(&policies, 300).await;
        assert_eq!(policies.status(), json!([]));
        assert_eq!(policies.policy("ship", 7, true), Policy::Gentle);
    }
}
