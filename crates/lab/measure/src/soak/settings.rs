//! The settings files of the three ends, and how each is started. Everything is short that may be: what is kept for later uses
//! must be gone when it is counted.

use std::net::SocketAddr;
use std::path::Path;

use farhop_compare::Scene;
use farhop_testbed::Place;

use super::end::Recipe;
use super::media::MOST;
use super::place::{Map, NAMES_PORT, PROXY_PORT, RAW_PORT, VOICE_PORT};
use crate::MeasureError;
use crate::strangers::keygen;

/// Where ground listens.
pub(super) const CARRIER_PORT: u16 = 4433;

/// A setting that is live at both ends, and the line that changes it.
pub(super) const DRAIN: [&str; 2] = ["drain = \"10 s\"", "drain = \"11 s\""];

/// How the end of this name is started; its settings are those of its command.
pub(super) fn recipe(
    name: &'static str,
    command: &'static str,
    place: Place,
    ends: &Path,
    options: Vec<String>,
) -> Recipe {
    Recipe {
        name,
        command,
        place,
        options,
        settings: ends.join(format!("{command}.toml")),
        control: ends.join(format!("{name}.sock")),
        stderr: ends.join(name),
    }
}

/// A second remote with the settings of the first, but for what belongs to one process alone. Who is caught can be asked for no
/// password, and trusts no CA of ours.
pub(super) fn catching(at: &farhop_testbed::Addresses, ends: &Path) -> Recipe {
    let name = "catching remote";
    let own = |key: &str, file: &str| format!("{key}={}", ends.join(file).display());
    let sets = [
        own("control", &format!("{name}.sock")),
        own("paths", "catching.paths"),
        own("store.directory", "catching.store"),
        own("store.key", "catching.store-key"),
        format!("dns.listen={}:{}", at.remote, NAMES_PORT + 1),
        format!("listen={}:{}", at.remote, PROXY_PORT + 1),
        "auth.required=false".into(),
        "interception.enabled=false".into(),
        // The addresses of the testbed are private.
        "transparent.except=127.0.0.0/8".into(),
    ];
    let sets = sets.into_iter().flat_map(|set| ["--set".to_owned(), set]);
    let options = ["--transparent".to_owned()].into_iter().chain(sets).collect();
    recipe(name, "remote", Place::Remote, ends, options)
}

/// Writes them, with a key for each.
pub(super) fn write_settings(scene: &Scene, map: &Map, ca: &Path, ends: &Path) -> Result<(), MeasureError> {
    let at = scene.testbed.addresses;
    let (range, length) = at.origin_range;
    let carrier = SocketAddr::from((at.ground_satellite, CARRIER_PORT));
    let (remote_key, ground_key) = (keygen(ends, "remote")?, keygen(ends, "ground")?);
    let [drain, _] = DRAIN;
    let log = "[log]\nlevel = \"warn\"\n[link]\nprofile = \"none\"\n";
    let ground = format!(
        "listen = \"{carrier}\"\ncontrol = \"ground.sock\"\nidentity = \"ground.key\"\npaths = \"ground.paths\"\n\
         allow = [\"{range}/{length}\"]\n{drain}\n{log}\
         [origin]\nroots = [{ca:?}]\nkeep = \"5 s\"\nfirst_byte = \"5 s\"\nstall = \"5 s\"\n\
         [squeeze]\npolicy = \"gentle\"\n[streaming]\nmost = \"{MOST}\"\n\
         [store]\ndirectory = \"ground.store\"\nsize = \"16 MB\"\nentry = \"2 MB\"\n\
         [[remote]]\nname = \"lab\"\nkeys = [\"{remote_key}\"]\n",
        ca = map.lab_ca.to_string_lossy(),
    );
    let remote = format!(
        "listen = [\"{proxy}\"]\ncontrol = \"remote.sock\"\nidentity = \"remote.key\"\npaths = \"remote.paths\"\n\
         connect_ports = [443, {RAW_PORT}]\nquic_again = \"1 s\"\n{drain}\n{log}\
         [repository]\nsize = \"8 MB\"\nentry = \"1 MB\"\n\
         [store]\ndirectory = \"remote.store\"\nsize = \"16 MB\"\nentry = \"2 MB\"\n\
         [dns]\nlisten = [\"{names}\"]\n\
         [udp]\nvoice_ports = [{VOICE_PORT}]\nidle = \"10 s\"\n\
         [auth]\nrequired = true\nfile = \"users\"\n\
         [interception]\nenabled = true\nca = {ca:?}\nstate = \"consent.json\"\n\
         [[ground]]\nname = \"lab\"\naddress = \"{carrier}\"\nkeys = [\"{ground_key}\"]\n",
        proxy = map.proxy,
        names = map.names,
        ca = ca.to_string_lossy(),
    );
    let failed = MeasureError::system("an end's settings");
    std::fs::write(ends.join("ground.toml"), ground).map_err(&failed)?;
    std::fs::write(ends.join("remote.toml"), remote).map_err(&failed)
}
