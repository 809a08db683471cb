//! The `settings!` macro: the one place in which a setting is declared, and what derives from it.

use crate::error::SettingsError;
use crate::raw::Raw;
use crate::source::Source;

/// Everything the reference, the sample and `--set` need to know of one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Full name, with `[]` for "each": `link.round_trip`, `ground[].name`.
    pub key: String,
    /// The type, with its unit.
    pub kind: &'static str,
    /// Whether the value is a list.
    pub list: bool,
    /// The default as written in TOML; `None` when the setting must be given.
    pub default: Option<Raw>,
    /// Lowest and highest value allowed.
    pub range: Option<(&'static str, &'static str)>,
    /// What the setting does.
    pub doc: String,
    /// Whether SIGHUP puts a changed value into force without a restart.
    pub live: bool,
    /// The link that the default was chosen for, and why.
    pub chosen_for: Option<&'static str>,
}

/// One line of a section's description, in the order of its declaration.
#[derive(Debug, Clone, PartialEq)]
pub enum Described {
    /// A table begins.
    Table {
        /// Its name: `link`, or `ground[]` for an array of tables.
        path: String,
        /// What it holds.
        doc: String,
    },
    /// A setting of the table that began last.
    Setting(Definition),
}

/// A struct declared by `settings!`.
pub trait Section: Sized {
    /// Adds tables and settings, each name with `prefix` before it.
    fn describe(prefix: &str, out: &mut Vec<Described>);

    /// Takes the values found under `prefix`, and defaults for the rest.
    ///
    /// # Errors
    /// The first value that is missing, unreadable or outside its range.
    fn read(source: &Source, prefix: &str) -> Result<Self, SettingsError>;

    /// Adds every setting's name, value and whether it is live.
    fn show(&self, prefix: &str, out: &mut Vec<(String, Raw, bool)>);
}

/// Joins a table's name and a setting's.
pub(crate) fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.into() } else { format!("{prefix}.{key}") }
}

/// Documentation lines as one text.
pub(crate) fn doc_text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().into()
}

/// Declares a struct of settings.
///
/// `values` are settings, each `name: Type` followed, in this order, by `default "text as for --set"` (a
/// setting without one must be given), `range "low" to "high"`, `chosen "link and reason"` and `live true`.
/// `tables` are structs of settings in a table of their own, `lists` arrays of such tables.
macro_rules! settings {
    (
        $(#[doc = $struct_doc:literal])*
        pub struct $name:ident {
            values {$(
                $(#[doc = $doc:literal])*
                $key:ident: $type:ty
                $(, default $default:literal)?
                $(, range $low:literal to $high:literal)?
                $(, chosen $link:literal)?
                $(, live $live:literal)?;
            )*}
            $(tables {$(
                $(#[doc = $table_doc:literal])*
                $table:ident: $table_type:ty;
            )*})?
            $(lists {$(
                $(#[doc = $list_doc:literal])*
                $list:ident: $list_type:ty;
            )*})?
        }
    ) => {
        $(#[doc = $struct_doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])* pub $key: $type,)*
            $($($(#[doc = $table_doc])* pub $table: $table_type,)*)?
            $($($(#[doc = $list_doc])* pub $list: Vec<$list_type>,)*)?
        }

        impl $crate::section::Section for $name {
            #[allow(unused_variables)]
            fn describe(prefix: &str, out: &mut Vec<$crate::section::Described>) {
                use $crate::section::{Described, doc_text, join};
                $(out.push(Described::Setting($crate::section::Definition {
                    key: join(prefix, stringify!($key)),
                    kind: <$type as $crate::setting::Setting>::KIND,
                    list: stringify!($type).starts_with("Vec"),
                    default: None$(.or(Some($crate::raw::Raw::from_argument($default))))?,
                    range: None$(.or(Some(($low, $high))))?,
                    doc: doc_text(&[$($doc),*]),
                    live: false$(|| $live)?,
                    chosen_for: None$(.or(Some($link)))?,
                }));)*
                $($(
                    let path = join(prefix, stringify!($table));
                    out.push(Described::Table { path: path.clone(), doc: doc_text(&[$($table_doc),*]) });
                    <$table_type as $crate::section::Section>::describe(&path, out);
                )*)?
                $($(
                    let path = format!("{}[]", join(prefix, stringify!($list)));
                    out.push(Described::Table { path: path.clone(), doc: doc_text(&[$($list_doc),*]) });
                    <$list_type as $crate::section::Section>::describe(&path, out);
                )*)?
            }

            #[allow(unused_imports)] // Section: only where there are tables or lists
            fn read(
                source: &$crate::source::Source,
                prefix: &str,
            ) -> Result<Self, $crate::error::SettingsError> {
                use $crate::section::{Section, doc_text, join};
                Ok($name {
                    $($key: source.value::<$type>(
                        &join(prefix, stringify!($key)),
                        None$(.or(Some($default)))?,
                        None$(.or(Some(($low, $high))))?,
                        &doc_text(&[$($doc),*]),
                    )?,)*
                    $($($table: <$table_type as Section>::read(source, &join(prefix, stringify!($table)))?,)*)?
                    $($($list: source
                        .indices(&join(prefix, stringify!($list)))
                        .map(|path| <$list_type as Section>::read(source, &path))
                        .collect::<Result<_, _>>()?,)*)?
                })
            }

            #[allow(unused_imports)] // as above
            fn show(&self, prefix: &str, out: &mut Vec<(String, $crate::raw::Raw, bool)>) {
                use $crate::section::{Section, join};
                $(out.push((
                    join(prefix, stringify!($key)),
                    $crate::setting::Setting::show(&self.$key),
                    false$(|| $live)?,
                ));)*
                $($(Section::show(&self.$table, &join(prefix, stringify!($table)), out);)*)?
                $($(for (index, item) in self.$list.iter().enumerate() {
                    item.show(&format!("{}.{index}", join(prefix, stringify!($list))), out);
                })*)?
            }
        }
    };
}
pub(crate) use settings;
