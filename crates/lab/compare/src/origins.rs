//! The origins of a comparison: every site of every page at an address of its own, and, for the variants that want it, a
//! second server of each that sends with BBR. Both are the same site by name; the browser finds the second one under
//! another name in the DNS, so that loads differ in nothing but the sender's congestion control.

use std::path::Path;
use std::time::Duration;

use farhop_testbed::{Place, Running, Testbed, require_congestion_control};
use farhop_workload::origins::{OriginSpec, OriginsSpec, Ready, await_ready};
use farhop_workload::pages::Site;

use crate::bench::{last_words, spawn, this_program};
use crate::variant::BBR;
use crate::{CompareError, Plan};

/// What the origins process is told for a plan.
///
/// # Errors
/// A host name used twice; BBR is wanted and the kernel has none.
pub(crate) fn spec(plan: &Plan, testbed: &Testbed, folder: &Path) -> Result<OriginsSpec, CompareError> {
    let with_bbr = plan.variants.iter().any(|variant| variant.is_bbr());
    if with_bbr {
        require_congestion_control(BBR)?;
    }
    let mut origins: Vec<OriginSpec> = Vec::new();
    for site in plan.pages.iter().flat_map(|page| &page.sites) {
        if origins.iter().any(|origin| origin.name == site.host) {
            return Err(CompareError::Arguments(format!(
                "two sites are called {}: name one of them DIR=HOST",
                site.host
            )));
        }
        let address = |number: usize| testbed.addresses.origin(u16::try_from(number).unwrap_or(u16::MAX));
        let origin = OriginSpec {
            delay_ms: site.delay.as_millis() as u64,
            ..OriginSpec::new(&site.host, address(origins.len()), &site.folder)
        };
        if with_bbr {
            let twin = OriginSpec {
                address: address(origins.len() + 1).into(),
                dns_name: Some(bbr_name(site)),
                congestion_control: BBR.into(),
                ..origin.clone()
            };
            origins.extend([origin, twin]);
        } else {
            origins.push(origin);
        }
    }
    Ok(OriginsSpec {
        origins,
        dns: Some((testbed.addresses.dns, 53).into()),
        http_port: 80,
        https_port: 443,
        ca: folder.join("ca.pem"),
        ready: folder.join("origins-ready.json"),
        log: Some(folder.join("origins.log")),
    })
}

/// The name in the DNS of a site's server that sends with BBR.
fn bbr_name(site: &Site) -> String {
    format!("{BBR}.{}", site.host)
}

/// What the browser looks up instead of each host, to reach the servers that send with BBR.
pub(crate) fn looked_up_as(origins: &[OriginSpec]) -> Vec<(String, String)> {
    let pair = |origin: &OriginSpec| Some((origin.name.clone(), origin.dns_name.clone()?));
    origins.iter().filter_map(pair).collect()
}

/// Every name that loads may rightly ask the DNS for.
pub(crate) fn names(origins: &[OriginSpec]) -> Vec<&str> {
    origins.iter().map(|origin| origin.dns_name.as_deref().unwrap_or(&origin.name)).collect()
}

/// `flags.test at 10.77.16.1, delay 0 ms`
pub(crate) fn in_words(origin: &OriginSpec) -> String {
    let twin = origin.dns_name.as_ref().map(|name| format!(", as {name} with {}", origin.congestion_control));
    let OriginSpec { name, address, delay_ms, .. } = origin;
    format!("{name} at {address}, delay {delay_ms} ms{}", twin.unwrap_or_default())
}

/// Starts the origins process and waits until it listens.
///
/// # Errors
/// It cannot be started, or does not come up.
pub(crate) fn start(
    testbed: &Testbed,
    spec: &OriginsSpec,
    folder: &Path,
) -> Result<(Running, Ready), CompareError> {
    let path = folder.join("origins.json");
    let text = serde_json::to_string_pretty(spec).unwrap_or_default();
    std::fs::write(&path, text).map_err(CompareError::file(&path))?;
    let stderr = folder.join("origins.stderr");
    let mut command = this_program()?;
    command.args(["lab", "origins", "--spec"]).arg(&path);
    let mut running = spawn(testbed, Place::Origins, command, &stderr)?;
    // Large folders take a while to be hashed and compressed.
    let ready = await_ready(&spec.ready, Duration::from_secs(120), || matches!(running.try_wait(), Ok(None)));
    match ready {
        Ok(ready) => Ok((running, ready)),
        Err(reason) => Err(CompareError::Origins { reason, said: last_words(&stderr) }),
    }
}
