//! Settings as they were written, by name and place: a file's tables flattened, with `--set` on top.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::end::End;
use crate::error::{Place, SettingsError, one_line};
use crate::nearest;
use crate::raw::Raw;
use crate::section::Definition;
use crate::setting::Setting;

/// Every value that was given, under its full name (`ground.0.name`).
#[derive(Debug, Default)]
pub struct Source {
    values: BTreeMap<String, (Raw, Place)>,
    /// Array elements, so that an empty `[[ground]]` counts and errors can name its line.
    elements: BTreeMap<String, Place>,
    /// The file; relative paths in it start at its folder. Empty when there is none.
    file: PathBuf,
}

impl Source {
    /// Reads the text of a settings file; `path` is only for error lines and relative paths.
    ///
    /// # Errors
    /// The text is not TOML, or holds a date, which no setting uses.
    pub fn from_toml(text: &str, path: &Path) -> Result<Source, SettingsError> {
        let at = |offset: usize| Place::File {
            path: path.into(),
            line: 1 + text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count(),
        };
        let document = toml_edit::Document::parse(text).map_err(|error| SettingsError::Syntax {
            place: at(error.span().map_or(0, |span| span.start)),
            reason: error.message().lines().next().unwrap_or_default().into(),
        })?;
        let mut source = Source { file: path.into(), ..Source::default() };
        source.add_table(document.as_table(), "", &at)?;
        Ok(source)
    }

    /// Takes one `--set key=value`, over whatever the file says.
    ///
    /// # Errors
    /// There is no `=`.
    pub fn set(&mut self, argument: &str) -> Result<(), SettingsError> {
        let place = Place::Argument(argument.into());
        let Some((key, value)) = argument.split_once('=') else {
            let reason = "has no '='; write it like --set link.round_trip='650 ms'".into();
            return Err(SettingsError::Conflict { place, reason });
        };
        let key = key.trim();
        self.values.insert(key.into(), (Raw::from_argument(value), place.clone()));
        for (position, segment) in key.split('.').enumerate() {
            if segment.parse::<usize>().is_ok() {
                let element = key.split('.').take(position + 1).collect::<Vec<_>>().join(".");
                self.elements.entry(element).or_insert_with(|| place.clone());
            }
        }
        Ok(())
    }

    /// Refuses the first name that no definition has; `other_end` tells who else has it.
    ///
    /// # Errors
    /// [`SettingsError::OtherEnd`], else [`SettingsError::Unknown`] with the nearest name that exists.
    pub(crate) fn refuse_unknown(
        &self,
        ours: End,
        known: &[Definition],
        other_end: impl Fn(&str) -> Option<End>,
    ) -> Result<(), SettingsError> {
        for (key, (_, place)) in &self.values {
            let pattern = pattern(key);
            if !known.iter().any(|definition| definition.key == pattern) {
                if let Some(theirs) = other_end(&pattern) {
                    let (place, key) = (place.clone(), nearest::in_words(&pattern));
                    return Err(SettingsError::OtherEnd { place, key, theirs, ours });
                }
                let nearest = nearest::nearest(&pattern, known.iter().map(|it| it.key.as_str()));
                return Err(SettingsError::Unknown {
                    place: place.clone(),
                    key: nearest::in_words(&pattern),
                    nearest: nearest.map(nearest::in_words),
                });
            }
        }
        Ok(())
    }

    /// The value of `key`, else its default.
    pub(crate) fn value<T: Setting>(
        &self,
        key: &str,
        default: Option<&str>,
        range: Option<(&str, &str)>,
        doc: &str,
    ) -> Result<T, SettingsError> {
        let given = self.values.get(key).cloned();
        let fallback = || default.map(|text| (Raw::from_argument(text), Place::Default));
        let Some((raw, place)) = given.or_else(fallback) else {
            let table = key.rsplit_once('.').map_or("", |(table, _)| table);
            return Err(SettingsError::Missing {
                place: self.place_of(table),
                key: nearest::in_words(&pattern(key)),
                doc: doc.split(". ").next().unwrap_or(doc).trim_end_matches('.').into(),
            });
        };
        let refuse = |reason: String| SettingsError::Value {
            place: place.clone(),
            key: nearest::in_words(&pattern(key)),
            reason,
        };
        let mut value = T::read(&raw).map_err(refuse)?;
        if let Some((low, high)) = range
            && !value.within(low, high).map_err(refuse)?
        {
            return Err(refuse(format!("{raw} is outside its range, {low} to {high}")));
        }
        // What is typed on the command line is relative to where it is typed.
        if !matches!(place, Place::Argument(_)) {
            value.settle(self.file.parent().unwrap_or(Path::new("")));
        }
        Ok(value)
    }

    /// Whether anything says what `key` is.
    pub(crate) fn is_given(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Where `key` was given, else where the element of a list begins that would have it, else the file as a whole.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        let element = || key.rsplit_once('.').and_then(|(element, _)| self.elements.get(element));
        let given = self.values.get(key).map(|(_, place)| place).or(self.elements.get(key)).or_else(element);
        match given {
            Some(place) => place.clone(),
            None if self.file.as_os_str().is_empty() => Place::Default,
            None => Place::Whole(self.file.clone()),
        }
    }

    /// The elements of an array of tables, `ground.0`, `ground.1`, … in order.
    pub(crate) fn indices(&self, list: &str) -> impl Iterator<Item = String> + use<> {
        let list = list.to_owned();
        let count = (0..).take_while(|index| self.elements.contains_key(&format!("{list}.{index}"))).count();
        (0..count).map(move |index| format!("{list}.{index}"))
    }

    /// Refuses `--set ground.5.name=x` when there is no `ground.4`: it would be dropped in silence.
    ///
    /// # Errors
    /// Names the element and the index that would be next.
    pub(crate) fn refuse_gaps(&self) -> Result<(), SettingsError> {
        for (element, place) in &self.elements {
            let Some((list, index)) = element.rsplit_once('.') else { continue };
            let index: usize = index.parse().unwrap_or(0);
            let count = self.indices(list).count();
            if index >= count {
                let reason =
                    format!("there is no element {index} of {list}; the next new one is {list}.{count}");
                return Err(SettingsError::Conflict { place: place.clone(), reason });
            }
        }
        Ok(())
    }

    fn add_table(
        &mut self,
        table: &dyn toml_edit::TableLike,
        prefix: &str,
        at: &dyn Fn(usize) -> Place,
    ) -> Result<(), SettingsError> {
        for (name, item) in table.iter() {
            let key = crate::section::join(prefix, name);
            let key_span = table.key(name).and_then(toml_edit::Key::span);
            let place = at(key_span.or(item.span()).map_or(0, |span| span.start));
            if let Some(tables) = item.as_array_of_tables() {
                for (index, table) in tables.iter().enumerate() {
                    let element = format!("{key}.{index}");
                    let place = at(table.span().map_or(0, |span| span.start));
                    self.elements.insert(element.clone(), place);
                    self.add_table(table, &element, at)?;
                }
            } else if let Some(table) = item.as_table_like() {
                self.add_table(table, &key, at)?;
            } else if let Some(tables) = inline_tables(item) {
                for (index, table) in tables.into_iter().enumerate() {
                    let element = format!("{key}.{index}");
                    self.elements.insert(element.clone(), place.clone());
                    self.add_table(table, &element, at)?;
                }
            } else {
                let raw = item.as_value().and_then(Raw::from_toml).ok_or_else(|| SettingsError::Value {
                    place: place.clone(),
                    key: nearest::in_words(&pattern(&key)),
                    reason: format!(
                        "{} is no value that a setting can have",
                        one_line(item.to_string().trim())
                    ),
                })?;
                self.values.insert(key, (raw, place));
            }
        }
        Ok(())
    }
}

/// `ground = [{ name = "x" }, …]` means the same as `[[ground]]`.
fn inline_tables(item: &toml_edit::Item) -> Option<Vec<&toml_edit::InlineTable>> {
    let array = item.as_array().filter(|array| !array.is_empty())?;
    array.iter().map(toml_edit::Value::as_inline_table).collect()
}

/// `ground.0.name` → `ground[].name`, as definitions are named.
pub(crate) fn pattern(key: &str) -> String {
    let mut pattern = String::new();
    for segment in key.split('.') {
        if segment.parse::<usize>().is_ok() {
            pattern.push_str("[]");
        } else {
            if !pattern.is_empty() {
                pattern.push('.');
            }
            pattern.push_str(segment);
        }
    }
    pattern
}
