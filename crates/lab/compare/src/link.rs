//! The link that a command line names: one that Farhop knows, or a satellite as a file.

use std::path::Path;

use clap::builder::{PossibleValue, TypedValueParser};
use farhop_orbit::Profile;

/// What a file may hold, so that a wrong path does not fill the memory. Recorded traces are the largest.
const LARGEST: u64 = 64 << 20;

/// Reads a link; the help lists those that are known by name.
pub fn links() -> impl TypedValueParser<Value = Profile> {
    Links
}

#[derive(Clone)]
struct Links;

impl TypedValueParser for Links {
    type Value = Profile;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Profile, clap::Error> {
        (|text: &str| link(text)).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let file = PossibleValue::new("FILE.toml").help("a satellite as a file, see docs/satellite.md");
        Some(Box::new(Profile::NAMES.into_iter().map(PossibleValue::new).chain([file])))
    }
}

/// The link of that name, or in that file: a file's name ends in `.toml` or has a folder.
fn link(text: &str) -> Result<Profile, String> {
    if !text.ends_with(".toml") && !text.contains('/') {
        let error = |error| format!("{error}; a satellite of your own is a file whose name ends in .toml");
        return Profile::named(text).map_err(error);
    }
    let file = Path::new(text);
    let folder = file.parent().unwrap_or(Path::new(""));
    let satellite = read(file).map_err(|error| format!("{text}: {error}"))?;
    // What a file names lies beside it.
    Profile::from_toml(&satellite, text, &mut |name| read(&folder.join(name)))
        .map_err(|error| error.to_string())
}

fn read(file: &Path) -> Result<String, String> {
    let size = std::fs::metadata(file).map_err(|error| format!("cannot be read: {error}"))?.len();
    if size > LARGEST {
        return Err(format!("cannot be read: it is larger than {} MB", LARGEST >> 20));
    }
    std::fs::read_to_string(file).map_err(|error| format!("cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_named_or_lies_in_a_file_with_its_traces_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("up.trace"), "10\n").unwrap();
        let file = folder.path().join("mine.toml");
        std::fs::write(&file, "like = 'geo-2m'\nreturn.trace = 'up.trace'\n").unwrap();
        let mine = link(file.to_str().unwrap()).unwrap();
        assert_eq!(
            (mine.name.as_str(), mine.return_.rate),
            ("mine", Some(farhop_units::BitRate::kbit(1200)))
        );
        assert_eq!(link("geo-2m").unwrap().forward, mine.forward);
    }

    #[test]
    fn what_is_neither_is_refused_in_one_line() {
        let error = link("geo-3m").unwrap_err();
        assert!(
            error.ends_with("none; a satellite of your own is a file whose name ends in .toml"),
            "{error}"
        );
        assert!(link("no-such.toml").unwrap_err().starts_with("no-such.toml: cannot be read: "));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bad.toml");
        std::fs::write(&file, "like = 'none'\nforward.lost = '1 %'\n").unwrap();
        let error = link(file.to_str().unwrap()).unwrap_err();
        assert!(error.starts_with(&format!("{}:2: unknown field `lost`", file.display())), "{error}");
    }
}
