//! The settings files of Farhop's two ends as an experiment writes them. Pure.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ends::Key;
use crate::stand::Stand;
use crate::{Interception, Variant};

/// What the settings files of both ends have in common.
#[derive(Clone)]
pub(crate) struct EndSettings<'a> {
    pub(crate) listen: SocketAddr,
    pub(crate) control: &'a Path,
    pub(crate) profile: &'a str,
    pub(crate) own: &'a Key,
    /// The public keys of the other side: of a remote ground's alone.
    pub(crate) others: Vec<&'a str>,
    pub(crate) tuning: &'a Tuning,
}

/// What stands in the settings files of both ends beside what an experiment always writes. Lines of TOML, each ended.
#[derive(Debug, Clone, Default)]
pub struct Tuning {
    /// Of the remote, outside of any table.
    pub remote: String,
    /// Of ground, outside of any table.
    pub ground: String,
    /// Of `[link]`, at both ends.
    pub link: String,
    /// The profile that both ends are told, if not the link's own.
    pub profile: Option<String>,
    /// Where both ends are.
    pub stand: Stand,
}

impl EndSettings<'_> {
    /// The keys of the file itself, then the tables.
    fn common(&self, own: &str) -> String {
        format!(
            "listen = {}\ncontrol = {}\nidentity = {}\n{own}[link]\nprofile = {}\n{}[log]\nlevel = \"warn\"\n",
            quoted(&self.listen.to_string()),
            path(self.control),
            path(&self.own.file),
            quoted(self.tuning.profile.as_deref().unwrap_or(self.profile)),
            self.tuning.link,
        )
    }
}

/// Ground's settings file: it may fetch from `allowed`, which is private like all of the testbed, and believes the origins'
/// own CA where it has to.
pub(crate) fn ground_settings(
    end: &EndSettings<'_>,
    allowed: &str,
    variant: Variant,
    interception: Option<&Interception>,
) -> String {
    let judging = interception
        .map(|with| format!("[origin]\nroots = [{}]\ncrls = [{}]\n", paths(&with.roots), paths(&with.crls)));
    let remotes = end.others.iter().enumerate().map(|(number, key)| {
        let name = if number == 0 { "lab".to_owned() } else { format!("lab-{number}") };
        format!("[[remote]]\nname = {}\nkeys = [{}]\n", quoted(&name), quoted(key))
    });
    format!(
        "allow = [{}]\n{}{}{}{}",
        quoted(allowed),
        end.common(&end.tuning.ground),
        remotes.collect::<String>(),
        variant.ground_settings(),
        judging.unwrap_or_default()
    )
}

/// The remote's settings file. Each load is done as the others: what is compared here is not to compare by itself.
pub(crate) fn remote_settings(
    end: &EndSettings<'_>,
    ground: SocketAddr,
    interception: Option<&Interception>,
) -> String {
    let address = quoted(&ground.to_string());
    let intercepting = interception.map(|with| {
        format!("[interception]\nenabled = true\nca = {}\nstate = {}\n", path(&with.ca), path(&with.state))
    });
    format!(
        "{}[evidence]\nenabled = false\n{}[[ground]]\nname = \"lab\"\naddress = {address}\nkeys = [{}]\n",
        end.common(&end.tuning.remote),
        intercepting.unwrap_or_default(),
        end.others.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(", ")
    )
}

/// Paths as the items of a TOML array.
fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|one| path(one)).collect::<Vec<_>>().join(", ")
}

/// A path as a TOML string.
fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A TOML basic string: JSON's escapes are a part of its own.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_accept_the_settings_written_for_them() {
        use clap::ValueEnum;
        use farhop_settings::{CarrierKind, GroundSettings, RemoteSettings, parse};
        let own = Key { file: "/lab/a \"key\"".into(), public: "farhop-ed25519 AAAA".into() };
        let end = EndSettings {
            listen: "10.0.0.1:4433".parse().unwrap(),
            control: Path::new("/lab/end.sock"),
            profile: "geo-20m",
            own: &own,
            others: vec![own.public.as_str(), "farhop-ed25519 BBBB"],
            tuning: &Tuning {
                remote: "carrier = \"tcp\"\n".into(),
                ground: "tcp_congestion = \"cubic\"\n".into(),
                link: "congestion = \"hybla\"\n".into(),
                ..Tuning::default()
            },
        };
        let interception = Interception {
            ca: "/lab/ca".into(),
            state: "/lab/consent.json".into(),
            certificate: "/lab/ca.pem".into(),
            roots: vec!["/lab/roots.pem".into()],
            crls: Vec::new(),
        };
        for (variant, with) in
            Variant::value_variants().iter().map(|variant| (*variant, None::<&Interception>))
        {
            let text = ground_settings(&end, "10.77.16.0/20", variant, with);
            let ground: GroundSettings = parse(&text, Path::new("ground.toml"), &[]).unwrap();
            assert_eq!((ground.identity, ground.link.told()), (own.file.clone(), "geo-20m"));
            let names: Vec<&str> = ground.remote.iter().map(|remote| remote.name.as_str()).collect();
            assert_eq!(names, ["lab", "lab-1"]);
            assert_eq!(ground.bundle.enabled, variant != Variant::FarhopTransport);
            assert_eq!(ground.tcp_congestion.as_deref(), Some("cubic"));
            assert_eq!(ground.link.congestion.map(|it| it.to_string()).as_deref(), Some("hybla"));
        }
        let tuning = Tuning { profile: Some("auto".into()), ..Tuning::default() };
        let measuring = EndSettings { tuning: &tuning, ..end.clone() };
        let text = ground_settings(&measuring, "10.77.16.0/20", Variant::FarhopTransport, None);
        let ground: GroundSettings = parse(&text, Path::new("ground.toml"), &[]).unwrap();
        assert_eq!(ground.link.profile, None, "what experiments say of it goes before the link's name");
        for with in [None, Some(&interception)] {
            let text = remote_settings(&end, "10.0.0.2:4433".parse().unwrap(), with);
            let remote: RemoteSettings = parse(&text, Path::new("remote.toml"), &[]).unwrap();
            assert_eq!((remote.listen, remote.ground.len()), (vec![end.listen], 1));
            assert_eq!(remote.interception.enabled, with.is_some());
            assert_eq!(remote.carrier, CarrierKind::Tcp);
        }
    }
}
