//! A return link whose capacity has to be asked for: acknowledgements wait for it, and are no sign of a queue the other way.

use std::time::Duration;

use farhop_congestion::Choice;
use farhop_orbit::Profile;

use crate::simulation::scenes::{LONG, controller};
use crate::simulation::{Object, Simulation};

/// The category that a terminal has, as in a link's file.
const CATEGORIES: [&str; 4] = [
    r#"cra = "512 kbit/s""#,
    r#"rbdc = "512 kbit/s""#,
    r#"volume = "vbdc""#,
    r#"rbdc = "256 kbit/s", volume = "vbdc""#,
];

fn profile(category: &str) -> Profile {
    let demand = format!(
        r#"on_demand = {{ capacity = "512 kbit/s", superframe = "26.5 ms", slot = "53 B", header = "5 B", {category} }}"#
    );
    let text = format!(
        "like = \"geo-hylas2\"\nname = \"on-demand\"\n[forward]\ndelay = \"300 ms\"\n[return]\ndelay = \"300 ms\"\n{demand}\n"
    );
    Profile::from_toml(&text, "on-demand.toml", &mut |_| unreachable!("it names no file"))
        .expect("a link as its file has it")
}

/// Seconds that a page and what it names take on a connection of which a handshake came so much before.
fn page(choice: Choice, category: &str, before: u64) -> f64 {
    let mut simulation = Simulation::new(&profile(category), 1);
    simulation.add(controller(choice, None), Duration::from_millis(1_000), 3_000);
    for (bytes, at) in [(3_000, before), (200_000, before + 20)] {
        simulation.ask(0, Object { bytes, urgent: false, at: Duration::from_millis(at) });
    }
    simulation.run_until(LONG);
    simulation.took(0, 2).unwrap_or(LONG).as_secs_f64()
}

#[test]
fn acknowledgements_that_wait_for_capacity_hardly_hold_the_search_up() {
    for category in CATEGORIES {
        for before in [700, 1_000, 1_400, 2_000, 5_000] {
            let [bbr, newreno] = [Choice::Bbr, Choice::NewReno].map(|choice| page(choice, category, before));
            assert!(bbr <= 1.25 * newreno, "{category}, {before} ms: {bbr} s against {newreno} s");
        }
    }
}
