//! What the origins saw, one JSON line each: for checks that nothing crosses the link that should not. Never read by the
//! program itself to decide anything.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use serde_json::json;

use super::dns::Question;

/// A log that may be absent.
#[derive(Debug, Default)]
pub(super) struct Log(Option<Mutex<File>>);

impl Log {
    pub(super) fn open(path: Option<&Path>) -> std::io::Result<Log> {
        Ok(Log(path.map(File::create).transpose()?.map(Mutex::new)))
    }

    pub(super) fn request(&self, origin: &str, head: &http::request::Parts, status: http::StatusCode) {
        self.line(|| {
            json!({
                "request": head.uri.to_string(), "method": head.method.as_str(), "origin": origin,
                "version": format!("{:?}", head.version), "status": status.as_u16(),
                "via": head.headers.get("via").and_then(|via| via.to_str().ok()),
            })
        });
    }

    pub(super) fn question(&self, question: &Question) {
        self.line(|| json!({ "dns": question.name, "type": question.kind, "code": question.code }));
    }

    fn line(&self, content: impl FnOnce() -> serde_json::Value) {
        let Some(file) = &self.0 else { return };
        let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = writeln!(file, "{}", content()); // a full disk must not change what is measured
    }
}
