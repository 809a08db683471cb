//! Calls an end over its control socket.

use std::path::Path;

use farhop_events::Stamped;
use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::error::ControlError;
use crate::lines::Lines;
use crate::protocol::{Body, Reply, Request, VERSION, line};

/// The longest answer that is read, in bytes: an end's whole status stays far below.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;

/// A connection to the control socket of an end.
#[derive(Debug)]
pub struct Client {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Client {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// Nobody listens there, or it is not ours to open.
    pub async fn connect(path: &Path) -> Result<Client, ControlError> {
        let stream = UnixStream::connect(path)
            .await
            .map_err(|source| ControlError::Connect { path: path.into(), source })?;
        let (reader, writer) = stream.into_split();
        Ok(Client { lines: Lines::new(BufReader::new(reader), LONGEST_ANSWER), writer })
    }

    /// Runs a command; `args` is null where it takes none.
    ///
    /// # Errors
    /// The command was refused or failed at the end ([`ControlError::Refused`], in its words), or the
    /// connection broke.
    pub async fn call(&mut self, command: &str, args: Value) -> Result<Value, ControlError> {
        let sent = self.writer.write_all(&line(&Request::new(command, args))).await;
        // An end that refused us has said why and hung up: its word is worth more than "broken pipe".
        match self.reply().await {
            Ok(Some(Body::Answer { ok: true, result, .. })) => Ok(result.unwrap_or(Value::Null)),
            Ok(Some(Body::Answer { ok: false, error, .. })) => {
                Err(ControlError::Refused(error.unwrap_or_else(|| "refused without a reason".into())))
            }
            Ok(Some(other)) => Err(ControlError::Unreadable(format!("{other:?} is no answer"))),
            Ok(None) => Err(ControlError::Closed),
            Err(error) => Err(sent.err().map_or(error, ControlError::Broken)),
        }
    }

    /// Turns the connection into a stream of every event from now on.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn subscribe(mut self) -> Result<Events, ControlError> {
        self.call("subscribe", Value::Null).await?;
        Ok(Events(self))
    }

    async fn reply(&mut self) -> Result<Option<Body>, ControlError> {
        let Some(text) = self.lines.next().await? else { return Ok(None) };
        let reply: Reply =
            serde_json::from_slice(&text).map_err(|error| ControlError::Unreadable(error.to_string()))?;
        if reply.v != VERSION {
            return Err(ControlError::Unreadable(format!("it is of version {}, not {VERSION}", reply.v)));
        }
        Ok(Some(reply.body))
    }
}

/// What a subscriber is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// Something happened.
    Event(Stamped),
    /// This many events were dropped because they were read too slowly.
    Missed(u64),
}

/// The events of an end.
#[derive(Debug)]
pub struct Events(Client);

impl Events {
    /// The next event; `None` when the end has closed the connection. Nothing is lost when the future is
    /// dropped.
    ///
    /// # Errors
    /// The connection broke, or holds what is no event of this version.
    pub async fn next(&mut self) -> Result<Option<Told>, ControlError> {
        match self.0.reply().await? {
            None => Ok(None),
            Some(Body::Event { event }) => Ok(Some(Told::Event(*event))),
            Some(Body::Missed { missed }) => Ok(Some(Told::Missed(missed))),
            Some(other) => Err(ControlError::Unreadable(format!("{other:?} is no event"))),
        }
    }
}
