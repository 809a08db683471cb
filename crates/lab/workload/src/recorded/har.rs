//! HTTP Archive 1.2 as browsers and proxies write it. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{Entry, Recording, essence};

#[derive(Deserialize)]
struct Har {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Exchange>,
}

#[derive(Deserialize)]
struct Exchange {
    request: Request,
    response: Response,
}

#[derive(Deserialize)]
struct Request {
    method: String,
    url: String,
}

#[derive(Deserialize)]
struct Response {
    status: i64,
    content: Content,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    mime_type: String,
    text: Option<String>,
    encoding: Option<String>,
}

/// The answers of a HAR.
///
/// # Errors
/// It is none, in words.
pub(super) fn read(bytes: &[u8]) -> Result<Recording, String> {
    let har: Har = serde_json::from_slice(bytes).map_err(|error| format!("this is no HAR: {error}"))?;
    let mut recording = Recording::default();
    for exchange in har.log.entries {
        let Exchange { request, response } = exchange;
        let counts = request.method == "GET" && response.status == 200;
        let body = response.content.text.filter(|_| counts).and_then(|text| {
            match response.content.encoding.as_deref() {
                Some("base64") => STANDARD.decode(text).ok(),
                Some(_) => None,
                None => Some(text.into_bytes()),
            }
        });
        match body {
            Some(body) => {
                let media_type = essence(&response.content.mime_type);
                recording.entries.push(Entry { url: request.url, media_type, body });
            }
            None => recording.left_out += 1,
        }
    }
    Ok(recording)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_gets_count_and_their_bodies_are_decoded() {
        let har = r#"{"log": {"version": "1.2", "entries": [
            {"request": {"method": "GET", "url": "https://a.example/"},
             "response": {"status": 200, "content": {"mimeType": "text/html; charset=utf-8", "text": "<p>ä"}}},
            {"request": {"method": "GET", "url": "https://a.example/p.png"},
             "response": {"status": 200, "content": {"mimeType": "image/png", "text": "AAECAw==", "encoding": "base64"}}},
            {"request": {"method": "POST", "url": "https://a.example/log"},
             "response": {"status": 200, "content": {"mimeType": "text/plain", "text": "x"}}},
            {"request": {"method": "GET", "url": "https://a.example/gone"},
             "response": {"status": 404, "content": {"mimeType": "text/plain", "text": "x"}}},
            {"request": {"method": "GET", "url": "https://a.example/unseen"},
             "response": {"status": 200, "content": {}}}
        ]}}"#;
        let recording = read(har.as_bytes()).unwrap();
        let expected = [
            Entry { url: "https://a.example/".into(), media_type: "text/html".into(), body: "<p>ä".into() },
            Entry {
                url: "https://a.example/p.png".into(),
                media_type: "image/png".into(),
                body: vec![0, 1, 2, 3],
            },
        ];
        assert_eq!((recording.entries.as_slice(), recording.left_out), (&expected[..], 3));
        assert!(read(b"[]").unwrap_err().starts_with("this is no HAR: "));
    }
}
