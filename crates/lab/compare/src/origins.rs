//! The origins of a comparison: every site of every page at an address of its own, and, for the variants that want it, a
//! second server of each that sends with BBR, or one that speaks HTTP/3. All are the same site by name; the browser finds the
//! others under another name in the DNS, so that loads differ in nothing but the server's way of sending.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use farhop_testbed::{Place, Running, Testbed, require_congestion_control};
use farhop_workload::origins::{OriginSpec, OriginsSpec, Ready, await_ready};

use crate::scene::{last_words, spawn, this_program};
use crate::variant::{BBR, GATEWAY, H3};
use crate::{CompareError, Plan, Variant};

/// What the origins process is told for a plan.
///
/// # Errors
/// A host name used twice; BBR is wanted and the kernel has none.
pub(crate) fn spec(plan: &Plan, testbed: &Testbed, folder: &Path) -> Result<OriginsSpec, CompareError> {
    let with_bbr = plan.variants.iter().any(|variant| variant.is_bbr());
    let with_h3 = plan.variants.contains(&Variant::DirectH3) && Variant::DirectH3.lacks().is_none();
    if with_bbr {
        require_congestion_control(BBR)?;
    }
    let mut origins: Vec<OriginSpec> = Vec::new();
    let mut names = BTreeMap::new();
    // Every server has an address of its own, those of others too.
    let address = |taken: usize| testbed.addresses.origin(u16::try_from(taken).unwrap_or(u16::MAX));
    for site in plan.pages.iter().flat_map(|page| &page.sites) {
        if origins.iter().any(|origin| origin.name == site.host) {
            return Err(CompareError::Arguments(format!(
                "two sites are called {}: name one of them DIR=HOST",
                site.host
            )));
        }
        let origin = OriginSpec {
            delay_ms: site.delay.as_millis() as u64,
            caching: site.caching.clone(),
            brotli: site.brotli,
            ..OriginSpec::new(&site.host, address(origins.len() + names.len()), &site.folder)
        };
        origins.push(origin.clone());
        if with_bbr {
            origins.push(OriginSpec {
                address: address(origins.len() + names.len()).into(),
                dns_name: Some(name_for(BBR, &site.host)),
                congestion_control: BBR.into(),
                ..origin
            });
        }
        if with_h3 {
            names.insert(name_for(H3, &site.host), address(origins.len() + names.len()).into());
        }
    }
    let identities = folder.join("identities");
    if with_h3 {
        std::fs::create_dir_all(&identities).map_err(CompareError::file(&identities))?;
    }
    Ok(OriginsSpec {
        origins,
        dns: Some((testbed.addresses.dns, 53).into()),
        http_port: 80,
        https_port: 443,
        ca: folder.join("ca.pem"),
        ready: folder.join("origins-ready.json"),
        log: Some(folder.join("origins.log")),
        names,
        identities: with_h3.then_some(identities),
    })
}

/// Has every site be served at the gateway, too, by a program of others that stands in for it there with its key.
///
/// # Errors
/// The folder for the keys cannot be made.
pub(crate) fn at_gateway(spec: &mut OriginsSpec, gateway: IpAddr, folder: &Path) -> Result<(), CompareError> {
    let own = spec.origins.iter().filter(|origin| origin.dns_name.is_none());
    let names: Vec<String> = own.map(|origin| name_for(GATEWAY, &origin.name)).collect();
    spec.names.extend(names.into_iter().map(|name| (name, gateway)));
    let identities = folder.join("identities");
    std::fs::create_dir_all(&identities).map_err(CompareError::file(&identities))?;
    spec.identities = Some(identities);
    Ok(())
}

/// What is looked up instead of each host to reach what stands in for it at the gateway.
pub(crate) fn looked_up_at_gateway(spec: &OriginsSpec) -> Vec<(String, String)> {
    let named = |origin: &OriginSpec| (origin.name.clone(), name_for(GATEWAY, &origin.name));
    spec.origins.iter().map(named).filter(|(_, name)| spec.names.contains_key(name)).collect()
}

/// The name in the DNS of another server of a site.
fn name_for(kind: &str, host: &str) -> String {
    format!("{kind}.{host}")
}

/// The servers of `spec` that speak HTTP/3, with the origins that they stand for.
pub(crate) fn h3_servers(spec: &OriginsSpec) -> Vec<(&OriginSpec, IpAddr)> {
    let own = spec.origins.iter().filter(|origin| origin.dns_name.is_none());
    own.filter_map(|origin| Some((origin, *spec.names.get(&name_for(H3, &origin.name))?))).collect()
}

/// What the browser looks up instead of each host, to reach the servers that the variant wants.
pub(crate) fn looked_up_as(spec: &OriginsSpec, variant: Variant) -> Vec<(String, String)> {
    let elsewhere = |name: &dyn Fn(&OriginSpec) -> Option<String>| {
        spec.origins.iter().filter_map(|origin| Some((origin.name.clone(), name(origin)?))).collect()
    };
    match variant {
        Variant::DirectH3 => {
            elsewhere(&|origin| Some(name_for(H3, &origin.name)).filter(|name| spec.names.contains_key(name)))
        }
        variant if variant.is_bbr() => elsewhere(&|origin| origin.dns_name.clone()),
        _ => Vec::new(),
    }
}

/// Every name that loads may rightly ask the DNS for.
pub(crate) fn names(spec: &OriginsSpec) -> Vec<&str> {
    let own = spec.origins.iter().map(|origin| origin.dns_name.as_deref().unwrap_or(&origin.name));
    own.chain(spec.names.keys().map(String::as_str)).collect()
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
