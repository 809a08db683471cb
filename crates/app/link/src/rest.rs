//! The calls as resources of HTTP, for programs that speak no other way. On a socket of its own (unix(7)), whose file only its
//! owner may use: no page in a browser can reach it.
//!
//! | | |
//! |---|---|
//! | `GET /status` | the device, its rates, and what calls hold |
//! | `GET /calls` | the calls that hold a rate |
//! | `POST /calls` | NEW_VOICE_CALL: 201, 200 where it was there, 409 where there is no room, 400 where it is no call |
//! | `PUT /calls/NAME` | its lease begins anew |
//! | `DELETE /calls/NAME` | VOICE_CALL_RELEASE |
//! | `GET /counters` | every counter since the start |

use std::sync::Arc;
use std::time::Duration;

use farhop_control::Socket;
use farhop_diffserv::calls::Admitted;
use farhop_front::{Connection, Exchange, Head, RequestBody, Settings, Target};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::arguments::named;
use crate::manager::{Manager, NotAdmitted};

/// A call is a few hundred bytes.
const LONGEST: usize = 16 * 1024;
/// Programs that are served at once.
const MOST_CALLERS: usize = 64;
/// After an accept that failed, so that a lack of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An answer: its status, and what it says.
struct Answer(StatusCode, Value);

impl Answer {
    fn error(status: StatusCode, reason: impl Into<String>) -> Answer {
        Answer(status, json!({"error": reason.into()}))
    }

    fn no_such(path: &str) -> Answer {
        Answer::error(
            StatusCode::NOT_FOUND,
            format!("there is no '{path}'; there are /status, /calls, /calls/NAME and /counters"),
        )
    }
}

/// Answers whoever asks, until the future is dropped.
pub(crate) async fn serve(manager: &Arc<Manager>, socket: Socket) {
    let settings = Arc::new(Settings::default());
    let mut callers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.accept(), if callers.len() < MOST_CALLERS => match accepted {
                Ok(stream) => {
                    let (manager, settings) = (Arc::clone(manager), Arc::clone(&settings));
                    callers.spawn(async move {
                        let mut connection = Connection::new(stream, settings);
                        while let Ok(Some(exchange)) = connection.next_request().await {
                            attend(&manager, exchange).await;
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "REST: cannot accept a caller");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = callers.join_next() => {}
        }
    }
}

async fn attend(manager: &Manager, exchange: Exchange) {
    let Exchange { head, body, responder } = exchange;
    let path = match &head.target {
        Target::Origin(path) | Target::Absolute { path, .. } => path.path().to_owned(),
        Target::Authority { .. } | Target::Asterisk => String::new(),
    };
    let Answer(status, value) = answer(manager, &head.method, &path, body).await;
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        fields.insert(ALLOW, HeaderValue::from_static(allowed(&path)));
    }
    // Who has left has no use for it.
    let _ = responder.respond(Head { status, fields }, format!("{value}\n").into()).await;
}

/// RFC 9110 §10.2.1: what may be done with this resource.
fn allowed(path: &str) -> &'static str {
    match path {
        "/calls" => "GET, POST",
        _ if path.starts_with("/calls/") => "PUT, DELETE",
        _ => "GET",
    }
}

async fn answer(manager: &Manager, method: &Method, path: &str, body: RequestBody) -> Answer {
    let name = path.strip_prefix("/calls/");
    match (method.as_str(), path, name) {
        ("GET", "/status", _) => told(&manager.status()),
        ("GET", "/calls", _) => told(&manager.calls()),
        ("GET", "/counters", _) => Answer(StatusCode::OK, manager.bus().counters().snapshot()),
        ("POST", "/calls", _) => match read(body).await {
            Ok(args) => new_call(manager, args),
            Err(answer) => answer,
        },
        ("PUT", _, Some(name)) => with(name, |args| manager.renew(args)),
        ("DELETE", _, Some(name)) => with(name, |args| manager.release(args)),
        (_, "/status" | "/calls" | "/counters", _) | (_, _, Some(_)) => {
            Answer::error(StatusCode::METHOD_NOT_ALLOWED, format!("'{path}' takes {}", allowed(path)))
        }
        _ => Answer::no_such(path),
    }
}

fn told(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_value(value) {
        Ok(value) => Answer(StatusCode::OK, value),
        Err(error) => Answer::error(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn new_call(manager: &Manager, args: Value) -> Answer {
    let offer = match manager.offered(args) {
        Ok(offer) => offer,
        Err(reason) => return Answer::error(StatusCode::BAD_REQUEST, reason),
    };
    let rate = offer.rate;
    match manager.admit(offer) {
        Ok(Admitted::New) => Answer(StatusCode::CREATED, manager.admission(Admitted::New, rate)),
        Ok(admitted) => Answer(StatusCode::OK, manager.admission(admitted, rate)),
        Err(error) => {
            let status = match &error {
                NotAdmitted::Refused(refusal) if refusal.is_for_want_of_room() => StatusCode::CONFLICT,
                NotAdmitted::Refused(_) => StatusCode::BAD_REQUEST,
                NotAdmitted::Unwritten(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Answer::error(status, error.to_string())
        }
    }
}

/// A call by its name in the path (RFC 3986 §2.1).
fn with(name: &str, act: impl Fn(Value) -> Result<Value, String>) -> Answer {
    let Ok(name) = percent_decode_str(name).decode_utf8() else {
        return Answer::error(StatusCode::BAD_REQUEST, "the call's name is no UTF-8");
    };
    let args = json!({"call": name});
    if let Err(reason) = named(args.clone()) {
        return Answer::error(StatusCode::BAD_REQUEST, reason);
    }
    match act(args) {
        Ok(value) => Answer(StatusCode::OK, value),
        Err(reason) => Answer::error(StatusCode::NOT_FOUND, reason),
    }
}

async fn read(mut body: RequestBody) -> Result<Value, Answer> {
    let mut text = Vec::new();
    while let Some(bytes) = body
        .data()
        .await
        .map_err(|_| Answer::error(StatusCode::BAD_REQUEST, "the request ends before its body does"))?
    {
        text.extend_from_slice(&bytes);
        if text.len() > LONGEST {
            let reason = format!("a call has {LONGEST} bytes at most");
            return Err(Answer::error(StatusCode::PAYLOAD_TOO_LARGE, reason));
        }
    }
    serde_json::from_slice(&text)
        .map_err(|error| Answer::error(StatusCode::BAD_REQUEST, format!("the body is no JSON: {error}")))
}
