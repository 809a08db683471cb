//! Two ends of which one does not know the other's key: both have to say so, and both have to stay up.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use farhop_compare::Interrupt;
use farhop_netdev::Running;

use crate::local::farhop;
use crate::{MeasureError, Row};

/// How long they have to say it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A row for each side that may have the wrong key.
pub(crate) fn wrong_key(interrupt: &Interrupt) -> Result<Vec<Row>, MeasureError> {
    // What the remote and ground have to say.
    let refused_here = ["refuses this end's key", "stranger_refused"];
    let refused_there = ["which is not among its peer's keys", "refuses this end's key"];
    Ok(vec![
        strangers(interrupt, "the remote's", true, refused_here)?,
        strangers(interrupt, "ground's", false, refused_there)?,
    ])
}

fn strangers(
    interrupt: &Interrupt,
    whose: &str,
    remotes: bool,
    says: [&str; 2],
) -> Result<Row, MeasureError> {
    let failed = MeasureError::system("the ends' folder");
    let folder = tempfile::tempdir().map_err(&failed)?;
    let folder = folder.path();
    let [remote, ground, other] =
        [keygen(folder, "remote")?, keygen(folder, "ground")?, keygen(folder, "other")?];
    let (remote, ground) = if remotes { (&other, &ground) } else { (&remote, &other) };
    // All of 127/8 is this machine; nobody else uses this part of it.
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    let host = format!("127.{}.{low}.77", high.max(1));
    let settings = [
        (
            "ground",
            format!(
                "listen = '{host}:4433'\nlink.profile = 'none'\n[[remote]]\nname = 'ship'\nkeys = ['{remote}']\n"
            ),
        ),
        (
            "remote",
            format!(
                "listen = ['{host}:3128']\nlink.profile = 'none'\n[[ground]]\nname = 'home'\naddress = '{host}:4433'\n\
                 keys = ['{ground}']\n"
            ),
        ),
    ];
    let mut ends = Vec::new();
    for (end, text) in &settings {
        let file = folder.join(format!("{end}.toml"));
        std::fs::write(&file, text).map_err(&failed)?;
        let stderr = std::fs::File::create(folder.join(end)).map_err(&failed)?;
        let mut command = farhop()?;
        command.args([end, "--config"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        ends.push(Running::start(&mut command).map_err(&failed)?);
    }
    let said = |end: &str, words: &str| {
        std::fs::read_to_string(folder.join(end)).is_ok_and(|log| log.contains(words))
    };
    let deadline = Instant::now() + PATIENCE;
    let (at_remote, at_ground) = loop {
        let both = (said("remote", says[0]), said("ground", says[1]));
        if both == (true, true) || Instant::now() > deadline {
            break both;
        }
        interrupt.sleep(Duration::from_millis(50))?;
    };
    let up = ends.iter_mut().all(|end| matches!(end.try_wait(), Ok(None)));
    let told = |there: bool| if there { "told" } else { "SILENT" };
    let state = if up { "both up" } else { "one DOWN" };
    let measured = format!("remote {}, ground {}, {state}", told(at_remote), told(at_ground));
    let bound = "told at both ends, both up";
    Ok(Row::judged(format!("{whose} key is wrong"), measured, bound, at_remote && at_ground && up))
}

/// Makes a key in `folder` and gives its public half.
pub(crate) fn keygen(folder: &Path, name: &str) -> Result<String, MeasureError> {
    let made = farhop()?.arg("keygen").arg(folder.join(format!("{name}.key"))).output();
    let made = made.map_err(MeasureError::system("farhop keygen"))?;
    Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
}
