//! From a file and `--set` arguments to checked settings.

use std::path::Path;

use crate::end::End;
use crate::error::{Place, SettingsError};
use crate::section::{Definition, Described, Section};
use crate::source::Source;

/// A whole settings file, with the rules that no single setting can hold.
pub trait Checked: Section {
    /// Whose settings these are.
    const END: End;

    /// Rules between settings; `source` is there to name the place of the culprit.
    ///
    /// # Errors
    /// What contradicts what.
    fn check(&self, source: &Source) -> Result<(), SettingsError>;
}

/// Reads `file`, where one is named, with each of `sets` (`key=value`) over it.
///
/// # Errors
/// The first thing wrong, in one line: what, where, what to do.
pub fn load<S: Checked>(file: Option<&Path>, sets: &[String]) -> Result<S, SettingsError> {
    let (text, path) = text_of(file)?;
    parse(&text, path, sets)
}

/// As [`load`], from a text that was read already; `path` names it in errors, and its folder is where the
/// relative paths of the text start.
///
/// # Errors
/// As [`load`].
pub fn parse<S: Checked>(text: &str, path: &Path, sets: &[String]) -> Result<S, SettingsError> {
    checked(&written(text, path, sets)?).map_err(|error| laid_to::<S>(error, text, path, sets))
}

/// A contradiction that there is only with one of `sets`, whatever it is told of, is that argument's: the file is good without.
fn laid_to<S: Checked>(error: SettingsError, text: &str, path: &Path, sets: &[String]) -> SettingsError {
    let SettingsError::Conflict { reason, place } = error else { return error };
    let contradicts = |count: &usize| {
        let settings = written(text, path, &sets[..*count]).and_then(|source| checked::<S>(&source));
        matches!(settings, Err(SettingsError::Conflict { reason: other, .. }) if other == reason)
    };
    let argument = match place {
        Place::Argument(_) => None,
        _ => (0..=sets.len()).find(contradicts).and_then(|count| count.checked_sub(1)),
    };
    let place = argument.map_or(place, |index| Place::Argument(sets[index].clone()));
    SettingsError::Conflict { place, reason }
}

/// Whether `file` or one of `sets` says what `key` is, in place of its default.
///
/// # Errors
/// The file cannot be read, or a line of it.
pub fn is_given(file: Option<&Path>, sets: &[String], key: &str) -> Result<bool, SettingsError> {
    let (text, path) = text_of(file)?;
    Ok(written(&text, path, sets)?.is_given(key))
}

/// What `file` says, and how errors name it.
fn text_of(file: Option<&Path>) -> Result<(String, &Path), SettingsError> {
    let Some(path) = file else { return Ok((String::new(), Path::new(""))) };
    let text = std::fs::read_to_string(path)
        .map_err(|source| SettingsError::Unreadable { path: path.into(), source })?;
    Ok((text, path))
}

fn written(text: &str, path: &Path, sets: &[String]) -> Result<Source, SettingsError> {
    let mut source = Source::from_toml(text, path)?;
    for argument in sets {
        source.set(argument)?;
    }
    Ok(source)
}

fn checked<S: Checked>(source: &Source) -> Result<S, SettingsError> {
    source.refuse_unknown(S::END, &definitions::<S>(), |key| other_end(S::END, key))?;
    source.refuse_gaps()?;
    let settings = S::read(source, "")?;
    settings.check(source)?;
    Ok(settings)
}

/// Entry point of the fuzz target: whatever a file holds, reading it ends in settings or in one line.
#[doc(hidden)]
pub fn fuzz_settings(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let path = Path::new("fuzz.toml");
    let errors = [
        parse::<crate::RemoteSettings>(&text, path, &[]).err(),
        parse::<crate::GroundSettings>(&text, path, &[]).err(),
        parse::<crate::LocalSettings>(&text, path, &[]).err(),
        parse::<crate::LinkManagerSettings>(&text, path, &[]).err(),
        parse::<crate::RemoteSettings>("", path, &[text.clone().into_owned()]).err(),
    ];
    for error in errors.into_iter().flatten() {
        assert!(!error.to_string().contains('\n'), "an error is one line: {error:?}");
    }
}

/// The end that knows `key` (as definitions are named) where `ours` does not. The names of `farhop local` are those
/// of both ends in tables, so the nearest one says more there than whose it is.
fn other_end(ours: End, key: &str) -> Option<End> {
    let known = |definitions: Vec<Definition>| definitions.iter().any(|definition| definition.key == key);
    match ours {
        End::Remote if known(definitions::<crate::GroundSettings>()) => Some(End::Ground),
        End::Ground if known(definitions::<crate::RemoteSettings>()) => Some(End::Remote),
        End::Remote | End::Ground if known(definitions::<crate::LocalSettings>()) => Some(End::Local),
        _ => None,
    }
}

pub(crate) fn definitions<S: Section>() -> Vec<Definition> {
    let mut described = Vec::new();
    S::describe("", &mut described);
    described
        .into_iter()
        .filter_map(|line| match line {
            Described::Setting(definition) => Some(definition),
            Described::Table { .. } => None,
        })
        .collect()
}

/// Peers must be there and be told apart by name.
pub(crate) fn check_peers<'a>(
    source: &Source,
    list: &str,
    names: impl Iterator<Item = &'a crate::PeerName>,
) -> Result<(), SettingsError> {
    let mut seen = std::collections::BTreeMap::new();
    for (index, name) in names.enumerate() {
        if let Some(first) = seen.insert(name, index) {
            let place = source.place_of(&format!("{list}.{index}.name"));
            let reason = format!(
                "[[{list}]] number {} and {} are both named {name}; rename one",
                first + 1,
                index + 1
            );
            return Err(SettingsError::Conflict { place, reason });
        }
    }
    Ok(())
}

/// A conflict at the place where `key` was given, or in the file as a whole where it was not.
pub(crate) fn conflict(source: &Source, key: &str, reason: impl Into<String>) -> SettingsError {
    SettingsError::Conflict { place: source.place_of(key), reason: reason.into() }
}
