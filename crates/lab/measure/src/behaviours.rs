//! The behaviours of RFC 9111 through the program itself: in the clear and intercepted, with no link between its ends and with a
//! satellite's. `core/freshness` has a test for each rule; these are the ones that a client can see.

use farhop_testkit::behaviours::{Origins, SETTING, count};

use crate::group::Context;
use crate::local::Local;
use crate::{MeasureError, Row};

/// The origins' ports are the system's choice.
const EVERYWHERE: [&str; 6] =
    ["--allow", "127.0.0.0/8", "--set", "remote.connect_ports=1-65535", "--set", "remote.log.level=error"];

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let runtime = tokio::runtime::Runtime::new().map_err(MeasureError::system("a runtime"))?;
    let failed = MeasureError::system("a folder");
    let folder = tempfile::tempdir().map_err(&failed)?;
    let mut rows = Vec::new();
    for link in ["none", "geo-hylas2"] {
        for secure in [false, true] {
            context.interrupt.check()?;
            let origins = runtime.block_on(Origins::start(secure));
            let (root, own) = (folder.path().join("root.pem"), folder.path().join("own.pem"));
            std::fs::write(&root, origins.root()).map_err(&failed)?;
            let trust = format!("ground.origin.roots={}", root.display());
            let own_name = own.display().to_string();
            let mut options = [&EVERYWHERE[..], &["--set", SETTING, "--link", link]].concat();
            if secure {
                let ports = "remote.interception.ports=1-65535";
                options.extend(["--intercept", "--ca-out", &own_name, "--set", ports, "--set", &trust]);
            }
            let mut local = Local::start(&options)?;
            let authority =
                if secure { std::fs::read_to_string(&own).map_err(&failed)? } else { String::new() };
            let verdicts = runtime.block_on(origins.run(local.proxy(), &authority));
            let wrong: Vec<_> = verdicts
                .iter()
                .filter_map(|verdict| Some((verdict, verdict.wrong.as_ref()?)))
                .map(|(verdict, wrong)| format!("{}: {wrong}", verdict.behaviour))
                .collect();
            for line in &wrong {
                eprintln!("{line}");
            }
            let way = if secure { "intercepted" } else { "in the clear" };
            let up = if local.runs() { "process up" } else { "process DOWN" };
            rows.push(Row::judged(
                format!("RFC 9111 through both ends, {way}, link {link}"),
                format!("{} behaviours, {} not as said, {up}", verdicts.len(), wrong.len()),
                format!("all {} as the RFC says", count()),
                wrong.is_empty() && verdicts.len() == count() && local.runs(),
            ));
        }
    }
    Ok(rows)
}
