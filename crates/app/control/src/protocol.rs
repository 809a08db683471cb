//! The lines of the control protocol, as both sides read and write them.

use std::sync::Arc;

use farhop_events::Stamped;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol. A line of another version is answered with an error that names both.
pub const VERSION: u64 = 1;

/// The longest line that is read. Answers may be longer.
pub(crate) const LONGEST_REQUEST: usize = 64 * 1024;

/// What a caller asks.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Request {
    pub(crate) v: u64,
    pub(crate) command: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) args: Value,
}

impl Request {
    pub(crate) fn new(command: &str, args: Value) -> Self {
        Request { v: VERSION, command: command.into(), args }
    }

    /// Reads a request line.
    ///
    /// # Errors
    /// What is wrong with it, as the caller is told.
    pub(crate) fn read(line: &[u8]) -> Result<Request, String> {
        let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else {
            return Err("not a JSON object; write a line like {\"v\":1,\"command\":\"status\"}".into());
        };
        // The version first: everything else may mean something else in another version.
        match fields.get("v") {
            Some(Value::Number(version)) if version.as_u64() == Some(VERSION) => {}
            Some(other) => {
                return Err(format!("version {other} is not spoken here; this end speaks version {VERSION}"));
            }
            None => return Err(format!("there is no version; add \"v\":{VERSION}")),
        }
        let command = match fields.remove("command") {
            Some(Value::String(command)) => command,
            _ => return Err("there is no command; add \"command\":\"commands\" for a list".into()),
        };
        let args = fields.remove("args").unwrap_or(Value::Null);
        // A field that would be ignored may be one that the caller relies on.
        match fields.keys().find(|name| *name != "v") {
            Some(unknown) => Err(format!(
                "unknown field '{unknown}'; a request has \"v\", \"command\" and \"args\", an object with what the command takes"
            )),
            None => Ok(Request { v: VERSION, command, args }),
        }
    }
}

/// Entry point of the fuzz target: a line is refused in words, or understood and written as it was meant.
#[doc(hidden)]
pub fn fuzz_request(data: &[u8]) {
    match Request::read(data) {
        Ok(request) => assert_eq!(Request::read(&line(&request)), Ok(request)),
        Err(reason) => assert!(!reason.is_empty(), "a refusal has a reason"),
    }
}

/// What an end says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) v: u64,
    #[serde(flatten)]
    pub(crate) body: Body,
}

/// The three things that an end says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Body {
    Answer {
        ok: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    Event {
        event: Box<Stamped>,
    },
    Missed {
        missed: u64,
    },
}

impl Reply {
    pub(crate) fn answer(outcome: Result<Value, String>) -> Self {
        let (result, error) = match outcome {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Reply { v: VERSION, body: Body::Answer { ok: error.is_none(), result, error } }
    }

    pub(crate) fn told(told: Result<Arc<Stamped>, u64>) -> Self {
        let body = match told {
            Ok(event) => Body::Event { event: Box::new(Arc::unwrap_or_clone(event)) },
            Err(missed) => Body::Missed { missed },
        };
        Reply { v: VERSION, body }
    }
}

/// A value as one line, its end included.
pub(crate) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_else(|error| {
        // A command whose result cannot be written as JSON is a mistake of ours, but no reason to hang up.
        format!("{{\"v\":{VERSION},\"ok\":false,\"error\":\"the answer cannot be written: {error}\"}}").into()
    });
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_reads_back_as_it_was_written() {
        for request in [Request::new("status", Value::Null), Request::new("drain", json!({"seconds": 5}))] {
            assert_eq!(Request::read(&line(&request)), Ok(request));
        }
    }

    #[test]
    fn requests_that_cannot_be_understood_say_why() {
        let refused = |line: &str| Request::read(line.as_bytes()).expect_err("it must be refused");
        assert_eq!(
            refused(r#"{"v":2,"command":"status"}"#),
            "version 2 is not spoken here; this end speaks version 1"
        );
        assert!(refused(r#"{"command":"status"}"#).contains("add \"v\":1"));
        assert!(refused(r#"{"v":1}"#).contains("no command"));
        assert!(refused(r#"{"v":1,"command":"status","arg":1}"#).contains("unknown field 'arg'"));
        assert!(refused("status").contains("not a JSON object"));
        assert!(refused("[1]").contains("not a JSON object"));
    }
}
