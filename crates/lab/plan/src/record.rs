//! `farhop lab record`: a page as a browser of this machine loads it, directly or through a proxy, kept as a HAR that plans can
//! load again.

use std::path::PathBuf;
use std::time::Duration;

use farhop_workload::browser::{Browser, Order};
use farhop_workload::npm;
use farhop_workload::recorded::Recording;

use crate::error::PlanError;

/// Records a page as a browser loads it, for plans (`recording = "FILE"`). Needs the network that the page is on.
#[derive(Debug, clap::Args)]
pub struct RecordArguments {
    /// The page
    #[arg(value_name = "URL")]
    pub url: String,
    /// The HAR to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The proxy that it is loaded through, such as a Farhop remote's
    #[arg(long, value_name = "HOST:PORT")]
    pub proxy: Option<String>,
    /// The CA (PEM) that the browser is to trust, where the proxy intercepts
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// When it is given up
    #[arg(long, value_name = "TIME", default_value = "120 s", value_parser = farhop_units::parse_duration)]
    pub timeout: Duration,
}

/// Runs `farhop lab record`.
///
/// # Errors
/// There is no browser, the page does not load, or the file cannot be written.
pub fn record(arguments: &RecordArguments) -> Result<(), PlanError> {
    let node = npm::cache_folder();
    npm::ensure(&node, &[npm::PLAYWRIGHT]).map_err(farhop_compare::CompareError::from)?;
    let out = std::path::absolute(&arguments.out).map_err(PlanError::file(&arguments.out))?;
    let order = Order {
        proxy: arguments.proxy.clone(),
        authority: arguments.ca.clone(),
        timeout: arguments.timeout,
        har: Some(out.clone()),
        ..Order::new(&arguments.url)
    };
    let prepared = Browser::new(node).prepare(&order).map_err(farhop_compare::CompareError::from)?;
    let mut command = prepared.command().map_err(farhop_compare::CompareError::from)?;
    let ran = command.status();
    ran.map_err(PlanError::file("node"))?;
    let load = prepared.finish().map_err(farhop_compare::CompareError::from)?;
    if let Some(failure) = load.document_failure() {
        return Err(PlanError::Record { url: arguments.url.clone(), reason: failure });
    }
    let recording = Recording::read(&out)?;
    let Recording { entries, left_out } = &recording;
    eprintln!("{}: {} answers, {left_out} left out", out.display(), entries.len());
    Ok(())
}
