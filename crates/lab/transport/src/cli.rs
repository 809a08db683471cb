//! The command line of `farhop lab transport`, and where its result goes.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};
use farhop_compare::{Interrupt, Peers, links};
use farhop_orbit::Profile;
use farhop_report::{Transports, transport_html, transport_table};

use crate::TransportError;
use crate::course::carry_out;
use crate::plan::Plan;
use crate::route::{ROUTES, Route};
use crate::workload::WORKLOADS;

/// What is measured unless one says otherwise: everything, or with `--quick` what shows the difference in some minutes.
const LINKS: [&str; 2] = ["geo-hylas2", "geo-20m"];
const LOSSES: [f64; 3] = [0.0, 0.01, 0.03];
const QUEUES: [f64; 2] = [1.0, 0.25];
const RUNS: u32 = 3;
const QUICK_LOSSES: [f64; 2] = [0.0, 0.01];
const QUICK_WORKLOADS: [&str; 3] = ["2m", "200x5k", "urgent"];
const QUICK_ROUTES: [&str; 6] = ["farhop", "farhop-rate", "direct-cubic", "direct-bbr", "pepsal", "qpep"];

/// Downloads over every kind of carrier, directly, and through PEPsal and QPEP, in turn over an emulated satellite link, each as
/// a multiple of what the link allows. Needs root. Links, losses, queues, workloads and routes are crossed with one another.
#[derive(Debug, clap::Args)]
pub struct TransportArguments {
    /// A few minutes: one link, with and without loss, three workloads, Farhop beside direct TCP
    #[arg(long)]
    pub quick: bool,
    /// The links, separated by commas [default: geo-hylas2,geo-20m; quick: geo-hylas2]
    #[arg(long, value_name = "LINK", value_delimiter = ',', value_parser = links())]
    pub links: Vec<Profile>,
    /// Shares of packets lost at random, each way; none is always among them [default: 0 %,1 %,3 %; quick: 0 %,1 %]
    #[arg(long, value_name = "SHARE", value_delimiter = ',', value_parser = share)]
    pub losses: Vec<f64>,
    /// Queues of the forward way as multiples of the link's own [default: 1,0.25; quick: 1]
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = times)]
    pub queues: Vec<f64>,
    /// What is downloaded [default: all; quick: 2m,200x5k,urgent]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = workloads())]
    pub workloads: Vec<String>,
    /// Which ways it takes [default: all; quick: farhop,farhop-rate,direct-cubic,direct-bbr,pepsal,qpep]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = routes())]
    pub routes: Vec<String>,
    /// Loads of each workload on each route [default: 3; quick: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// The program PEPsal, to be measured beside the others
    #[arg(long, value_name = "PATH")]
    pub pepsal: Option<PathBuf>,
    /// The program QPEP, to be measured beside the others
    #[arg(long, value_name = "PATH")]
    pub qpep: Option<PathBuf>,
    /// Where the result goes as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Where the result goes as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

fn workloads() -> PossibleValuesParser {
    PossibleValuesParser::new(
        WORKLOADS.iter().map(|workload| PossibleValue::new(workload.name).help(workload.words)),
    )
}

fn routes() -> PossibleValuesParser {
    PossibleValuesParser::new(ROUTES.iter().map(|route| PossibleValue::new(route.name).help(route.words)))
}

fn share(text: &str) -> Result<f64, String> {
    let share = farhop_units::parse_share(text).map_err(|error| error.to_string())?;
    if share < 1.0 { Ok(share) } else { Err("with all packets lost there is nothing to measure".into()) }
}

fn times(text: &str) -> Result<f64, String> {
    let times = text.trim().parse::<f64>().ok();
    times
        .filter(|times| (0.01..=100.0).contains(times))
        .ok_or_else(|| format!("'{text}' is no number from 0.01 to 100"))
}

impl TransportArguments {
    /// What is to be measured.
    fn plan(&self) -> Plan {
        let quick = self.quick;
        let or = |given: &[f64], all: &[f64]| if given.is_empty() { all.to_vec() } else { given.to_vec() };
        let named = |names: &[&str]| names.iter().filter_map(|name| Profile::named(name).ok()).collect();
        let wanted = |given: &[String], quick_ones: &[&str], name: &str| match given {
            [] => !quick || quick_ones.contains(&name),
            given => given.iter().any(|given| given == name),
        };
        Plan {
            links: match (self.links.as_slice(), quick) {
                ([], true) => named(&LINKS[..1]),
                ([], false) => named(&LINKS),
                (links, _) => links.to_vec(),
            },
            queues: or(&self.queues, if quick { &QUEUES[..1] } else { &QUEUES }),
            losses: or(&self.losses, if quick { &QUICK_LOSSES } else { &LOSSES }),
            workloads: WORKLOADS
                .iter()
                .filter(|it| wanted(&self.workloads, &QUICK_WORKLOADS, it.name))
                .collect(),
            routes: ROUTES
                .iter()
                .filter(|it| wanted(&self.routes, &QUICK_ROUTES, it.name))
                .filter_map(|it| Route::named(it.name))
                .collect(),
            runs: self.runs.unwrap_or(if quick { 1 } else { RUNS }),
        }
    }
}

/// Runs `farhop lab transport`. The table goes to standard output unless the JSON does.
///
/// # Errors
/// See [`TransportError`].
pub fn transport(arguments: &TransportArguments) -> Result<(), TransportError> {
    let peers = Peers { pepsal: arguments.pepsal.clone(), qpep: arguments.qpep.clone() };
    peers.check()?;
    farhop_testbed::require_privileges()?;
    let interrupt = Interrupt::install()?;
    let plan = arguments.plan();
    eprintln!("{} loads", plan.loads());
    let found = carry_out(&plan, &peers, &interrupt, &mut |line| eprintln!("{line}"))?;
    let json_to_stdout = arguments.json.as_deref() == Some(Path::new("-"));
    if let Some(file) = &arguments.html {
        write(file, &transport_html(&found))?;
    }
    if let Some(file) = arguments.json.as_ref().filter(|_| !json_to_stdout) {
        write(file, &json(&found))?;
    }
    let text = if json_to_stdout { json(&found) } else { transport_table(&found) };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(TransportError::file("standard output"))
}

fn json(found: &Transports) -> String {
    // Every field is a number, a text or a list of them: there is nothing that JSON could refuse.
    serde_json::to_string_pretty(found).map(|text| text + "\n").unwrap_or_default()
}

fn write(file: &Path, text: &str) -> Result<(), TransportError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(TransportError::file(folder))?;
    }
    std::fs::write(file, text).map_err(TransportError::file(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    fn plan(line: &str) -> Plan {
        let command = TransportArguments::augment_args(clap::Command::new("transport"));
        let matches =
            command.try_get_matches_from(["transport"].into_iter().chain(line.split_whitespace())).unwrap();
        TransportArguments::from_arg_matches(&matches).unwrap().plan()
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.routes.iter().map(|route| route.name).collect()
    }

    #[test]
    fn all_of_everything_is_measured_unless_told_otherwise() {
        let all = plan("");
        assert_eq!(
            (all.links.len(), all.workloads.len(), all.routes.len()),
            (2, WORKLOADS.len(), ROUTES.len())
        );
        assert_eq!((all.weathers().len(), all.runs), (6, 3));
    }

    #[test]
    fn quick_is_a_choice_of_which_every_part_can_still_be_chosen() {
        let quick = plan("--quick");
        assert_eq!(names(&quick), QUICK_ROUTES);
        assert_eq!((quick.links.len(), quick.weathers().len(), quick.loads()), (1, 2, 36));
        let other = plan("--quick --routes farhop-tcp-8,direct-reno --losses 3% --runs 2");
        assert_eq!(names(&other), ["farhop-tcp-8", "direct-reno"]);
        assert_eq!((other.losses, other.runs), (vec![0.03], 2));
    }

    #[test]
    fn what_leaves_nothing_to_measure_is_refused() {
        assert_eq!(share("1 %"), Ok(0.01));
        assert!(share("100 %").is_err() && share("many").is_err());
        assert!(times("0").is_err() && times("0.25").is_ok());
    }
}
