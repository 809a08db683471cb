//! A value as written, before any setting has given it a type.

use std::fmt;

/// A TOML value, reduced to what settings use.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
    /// An array.
    List(Vec<Raw>),
}

impl Raw {
    /// Reads a value of the command line: TOML where it is TOML (`true`, `["a", "b"]`), else plain text, so
    /// that `--set link.round_trip=650 ms` needs no second pair of quotes.
    pub fn from_argument(text: &str) -> Raw {
        let text = text.trim();
        match text.parse::<toml_edit::Value>() {
            Ok(value) => Raw::from_toml(&value).unwrap_or_else(|| Raw::Text(text.into())),
            Err(_) => Raw::Text(text.into()),
        }
    }

    /// The value of a TOML item; `None` for tables and for dates, which no setting uses.
    pub(crate) fn from_toml(value: &toml_edit::Value) -> Option<Raw> {
        use toml_edit::Value;
        Some(match value {
            Value::String(text) => Raw::Text(text.value().clone()),
            Value::Integer(number) => Raw::Integer(*number.value()),
            Value::Float(number) => Raw::Float(*number.value()),
            Value::Boolean(flag) => Raw::Flag(*flag.value()),
            Value::Array(items) => Raw::List(items.iter().map(Raw::from_toml).collect::<Option<_>>()?),
            Value::Datetime(_) | Value::InlineTable(_) => return None,
        })
    }

    /// The items of a list. A single value counts as a list of one, and a text is split at commas, so that
    /// `--set listen=127.0.0.1:3128,[::1]:3128` works; an empty text is the empty list.
    pub(crate) fn items(&self) -> Vec<Raw> {
        match self {
            Raw::List(items) => items.clone(),
            Raw::Text(text) if text.trim().is_empty() => Vec::new(),
            Raw::Text(text) => text.split(',').map(|part| Raw::Text(part.trim().into())).collect(),
            other => vec![other.clone()],
        }
    }
}

/// Writes a text as a TOML basic string, which stays on its line whatever it holds.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            _ if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
            _ => write!(f, "{c}")?,
        }
    }
    write!(f, "\"")
}

/// Writes the value as TOML.
impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Text(text) => write_text(f, text),
            Raw::Integer(number) => write!(f, "{number}"),
            Raw::Float(number) => write!(f, "{number:?}"),
            Raw::Flag(flag) => write!(f, "{flag}"),
            Raw::List(items) => {
                write!(f, "[")?;
                for (position, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if position > 0 { ", " } else { "" })?;
                }
                write!(f, "]")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_values_need_no_second_quotes() {
        assert_eq!(Raw::from_argument("650 ms"), Raw::Text("650 ms".into()));
        assert_eq!(Raw::from_argument("\"650 ms\""), Raw::Text("650 ms".into()));
        assert_eq!(Raw::from_argument("true"), Raw::Flag(true));
        assert_eq!(Raw::from_argument("[443, 8443]"), Raw::List(vec![Raw::Integer(443), Raw::Integer(8443)]));
        assert_eq!(Raw::from_argument("127.0.0.1:3128"), Raw::Text("127.0.0.1:3128".into()));
    }

    #[test]
    fn written_values_read_back() {
        for raw in [
            Raw::Text("a \"quoted\" \\ text".into()),
            Raw::Text("two\nlines and a \u{7f}".into()),
            Raw::Integer(-3),
            Raw::Float(1.0),
            Raw::List(vec![Raw::Text("x".into()), Raw::Text("y".into())]),
        ] {
            assert_eq!(Raw::from_argument(&raw.to_string()), raw);
        }
    }
}
