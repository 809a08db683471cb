//! Datagrams that are held back while TCP is not, and paths that are merely slow, congested or wet: what is suspected of each, and
//! what comes of the trial. The second kind may be tried, and must never be left for TCP.

use std::time::Duration;

use farhop_congestion::{Choice, Trial, Watch};
use farhop_orbit::{Policer, Profile};
use farhop_units::{BitRate, Bytes};

use crate::simulation::scenes::{RATE, RTT, controller};
use crate::simulation::{Object, Simulation};

const LOOK: Duration = Duration::from_secs(1);
const LOOK_CLOSELY: Duration = Duration::from_millis(100);
/// Seconds after which a path changes that does, and after which nobody looks any more.
const CHANGE: u32 = 15;
const END: u32 = 45;

fn link() -> Profile {
    let mut profile = Profile::symmetric_delay("link", RATE, BitRate::kbit(512), RTT / 2);
    profile.forward.queue = RATE.bytes_in(RTT);
    profile
}

fn share(percent: u64) -> BitRate {
    BitRate(RATE.0 * percent / 100)
}

/// A network that lets so much of it pass, and drops the rest.
fn policed(percent: u64) -> Profile {
    let mut profile = link();
    profile.forward.policer = Some(Policer { rate: share(percent), burst: Bytes(32_000) });
    profile
}

/// A network that lets so much of it pass, and more wait for a moment: 100 KB.
fn shaped(percent: u64) -> Profile {
    let mut profile = slow(percent);
    profile.forward.queue = Bytes(100_000);
    profile
}

/// A link that is slower itself.
fn slow(percent: u64) -> Profile {
    let mut profile = link();
    profile.forward.rate = Some(share(percent));
    profile
}

fn lossy(loss: f64) -> Profile {
    link().with_loss(loss, 0.0)
}

fn shallow() -> Profile {
    let mut profile = link();
    profile.forward.queue = Profile::SMALLEST_QUEUE;
    profile
}

/// What datagrams meet at first and later, and TCP then.
struct Case {
    first: Profile,
    later: Profile,
    tcp: Profile,
}

impl Case {
    /// One that concerns datagrams alone, all the time.
    fn alone(datagrams: Profile) -> Case {
        Case { first: datagrams.clone(), later: datagrams, tcp: link() }
    }

    /// One that begins after a while.
    fn later(self) -> Case {
        Case { first: link(), ..self }
    }

    /// One that concerns TCP, too.
    fn both(self) -> Case {
        Case { tcp: self.later.clone(), ..self }
    }

    /// When datagrams are suspected to be held back, in seconds since they may be, and whether TCP then proves better. `told` is
    /// what is known of the path from elsewhere.
    fn play(&self, choice: Choice, told: Option<BitRate>) -> String {
        let mut simulation = Simulation::new(&self.first, 1);
        let endless = Object { bytes: 200_000_000, urgent: false, at: Duration::ZERO };
        let flow = simulation.connect(controller(choice, None), RTT, &[endless]);
        let mut watch = Watch::new(told);
        let changes = self.first != self.later;
        for second in 0..END {
            simulation.run_until(LOOK * second);
            if let Some(held) = watch.look(simulation.arrived(flow)) {
                let since = if changes { second.saturating_sub(CHANGE) } else { second };
                let early = if changes && second < CHANGE { "too early " } else { "" };
                return format!("{early}{since} s {}", if self.proves(held) { "TCP" } else { "back" });
            }
            if changes && second == CHANGE {
                let (path, now) = simulation.path();
                path.switch(now, &self.later);
            }
        }
        "-".into()
    }

    /// Whether a transfer over TCP, driven as most kernels do, does better than what datagrams were `held` to.
    fn proves(&self, held: BitRate) -> bool {
        let mut simulation = Simulation::new(&self.tcp, 2);
        let flow = simulation.add(controller(Choice::Cubic, None), RTT, 200_000_000);
        let mut trial = Trial::new(held);
        (0..).find_map(|look| {
            simulation.run_until(LOOK_CLOSELY * look);
            trial.look(simulation.arrived(flow))
        }) == Some(true)
    }
}

/// Without anything known of the path, and with its rate known: from settings, or from an earlier carrier.
fn rows(cases: impl IntoIterator<Item = (&'static str, Case)>) -> Vec<String> {
    cases
        .into_iter()
        .map(|(name, case)| {
            let played = [(Choice::Bbr, None), (Choice::Bbr, Some(RATE)), (Choice::Rate, Some(RATE))]
                .map(|(choice, told)| case.play(choice, told));
            format!("{name:<28} {}", played.map(|cell| format!("{cell:<12}")).join(" ")).trim_end().to_owned()
        })
        .collect()
}

#[test]
fn what_holds_datagrams_alone_back_is_left_for_tcp() {
    let rows = rows([
        ("10 %", Case::alone(policed(10))),
        ("30 %", Case::alone(policed(30))),
        ("60 %", Case::alone(policed(60))),
        ("10 % after a while", Case::alone(policed(10)).later()),
        ("30 % after a while", Case::alone(policed(30)).later()),
        ("60 % after a while", Case::alone(policed(60)).later()),
        ("shaped to 10 %", Case::alone(shaped(10))),
        ("shaped to 20 %", Case::alone(shaped(20))),
        ("shaped to 10 %, later", Case::alone(shaped(10)).later()),
        ("shaped to 20 %, later", Case::alone(shaped(20)).later()),
        ("loss of 25 %", Case::alone(lossy(0.25))),
        ("loss of 25 % after a while", Case::alone(lossy(0.25)).later()),
    ]);
    #[rustfmt::skip]
    let expected = [
        //                            nothing known  known        known, kept to
        "10 %                         7 s TCP      7 s TCP      4 s TCP",
        "30 %                         7 s TCP      7 s TCP      4 s TCP",
        "60 %                         8 s TCP      8 s TCP      4 s TCP",
        "10 % after a while           4 s TCP      4 s TCP      4 s TCP",
        "30 % after a while           4 s TCP      4 s TCP      4 s TCP",
        "60 % after a while           4 s TCP      4 s TCP      4 s TCP",
        "shaped to 10 %               -            15 s TCP     5 s TCP",
        "shaped to 20 %               -            14 s TCP     4 s TCP",
        "shaped to 10 %, later        5 s TCP      5 s TCP      5 s TCP",
        "shaped to 20 %, later        5 s TCP      5 s TCP      5 s TCP",
        "loss of 25 %                 7 s TCP      7 s TCP      4 s TCP",
        "loss of 25 % after a while   5 s TCP      5 s TCP      5 s TCP",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn what_concerns_tcp_as_well_is_never_left_for_it() {
    let rows = rows([
        ("nothing", Case::alone(link())),
        ("a short queue", Case::alone(shallow()).both()),
        ("a rate of 60 %", Case::alone(slow(60)).both()),
        ("a rate of 10 %", Case::alone(slow(10)).both()),
        ("60 % after a while", Case::alone(slow(60)).both().later()),
        ("30 % after a while", Case::alone(slow(30)).both().later()),
        ("10 % after a while", Case::alone(slow(10)).both().later()),
        ("loss of 3 %", Case::alone(lossy(0.03)).both()),
        ("loss of 10 % after a while", Case::alone(lossy(0.10)).both().later()),
        ("policed, both, to 30 %", Case::alone(policed(30)).both().later()),
    ]);
    #[rustfmt::skip]
    let expected = [
        //                            nothing known  known        known, kept to
        "nothing                      -            -            -",
        "a short queue                8 s back     -            -",
        "a rate of 60 %               -            -            -",
        "a rate of 10 %               -            -            11 s back",
        "60 % after a while           -            -            -",
        "30 % after a while           -            -            -",
        "10 % after a while           11 s back    11 s back    11 s back",
        "loss of 3 %                  -            -            -",
        "loss of 10 % after a while   -            -            -",
        "policed, both, to 30 %       4 s back     4 s back     4 s back",
    ];
    assert_eq!(rows, expected);
}
