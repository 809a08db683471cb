//! Answers callers: looks commands up, runs them, passes events on.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use farhop_events::{Bus, Subscription};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use crate::lines::Lines;
use crate::protocol::{LONGEST_REQUEST, Reply, Request, line};
use crate::socket::Socket;

/// More callers than an operator has hands; beyond it something leaks connections.
const MOST_CALLERS: usize = 64;

/// Events that have happened already are written together up to so many bytes.
const TOGETHER: usize = 16 * 1024;

/// Pause after a failed accept, so that a lack of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Outcome = Result<Value, String>;
type Handler = Arc<dyn Fn(Value) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;

/// The commands of one end, and its events.
#[derive(Clone)]
pub struct Server {
    bus: Bus,
    commands: BTreeMap<&'static str, Command>,
}

#[derive(Clone)]
struct Command {
    doc: &'static str,
    /// Names of its arguments.
    takes: &'static [&'static str],
    handler: Handler,
}

impl Server {
    /// A server that knows `commands` (the list), `counters` and `subscribe`.
    pub fn new(bus: Bus) -> Self {
        let counters = bus.clone();
        Server { bus, commands: BTreeMap::new() }.command(
            "counters",
            "every counter since the start",
            move || {
                let snapshot = counters.counters().snapshot();
                async move { Ok(snapshot) }
            },
        )
    }

    /// Adds a command that takes nothing; `doc` is its line in the list. The handler's error text is what the caller sees. A later
    /// command of the same name wins.
    #[must_use]
    pub fn command<H, F>(self, name: &'static str, doc: &'static str, handler: H) -> Self
    where
        H: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.command_with(name, doc, &[], move |_| handler())
    }

    /// Adds a command with arguments of these names, and of no others: what a command does not know is refused before it begins. The
    /// handler is given the request's `args`, null when there are none.
    #[must_use]
    pub fn command_with<H, F>(
        mut self,
        name: &'static str,
        doc: &'static str,
        takes: &'static [&'static str],
        handler: H,
    ) -> Self
    where
        H: Fn(Value) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Value, String>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |args| Box::pin(handler(args)));
        self.commands.insert(name, Command { doc, takes, handler });
        self
    }

    /// Answers callers until the future is dropped, which hangs up on all of them and removes the socket.
    pub async fn serve(self, socket: Socket) {
        let server = Arc::new(self);
        let mut callers = JoinSet::new();
        loop {
            tokio::select! {
                accepted = socket.listener.accept() => match accepted {
                    Ok((stream, _)) if callers.len() < MOST_CALLERS => {
                        let server = server.clone();
                        callers.spawn(async move { server.attend(stream).await });
                    }
                    Ok((mut stream, _)) => {
                        let error = format!("{MOST_CALLERS} callers are connected already; close some");
                        // A fresh socket has room for one line; this never waits for the caller.
                        let _ = stream.try_write(&line(&Reply::answer(Err(error))));
                        let _ = stream.shutdown().await;
                    }
                    // Out of descriptors, most likely: callers that leave give some back.
                    Err(error) => {
                        tracing::warn!(%error, "control socket: cannot accept a caller");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = callers.join_next() => {}
            }
        }
    }

    /// One caller, until it hangs up.
    async fn attend(&self, mut stream: UnixStream) {
        let (reader, mut writer) = stream.split();
        let mut lines = Lines::new(BufReader::new(reader), LONGEST_REQUEST);
        let mut subscription: Option<Subscription> = None;
        loop {
            let reply = tokio::select! {
                read = lines.next() => match read {
                    Ok(Some(text)) => Reply::answer(self.run(&text, &mut subscription).await),
                    Ok(None) => return,
                    Err(error) => {
                        let _ = writer.write_all(&line(&Reply::answer(Err(error.to_string())))).await;
                        return;
                    }
                },
                Some(told) = next_event(&mut subscription) => Reply::told(told),
            };
            let mut text = line(&reply);
            // Events come in swarms, and a write each would cost an end more than what they tell of.
            while text.len() < TOGETHER
                && let Some(told) = subscription.as_mut().and_then(Subscription::next_now)
            {
                text.extend(line(&Reply::told(told)));
            }
            if writer.write_all(&text).await.is_err() {
                return;
            }
        }
    }

    async fn run(&self, text: &[u8], subscription: &mut Option<Subscription>) -> Outcome {
        let request = Request::read(text)?;
        match request.command.as_str() {
            "subscribe" => {
                known("subscribe", &[], &request.args)?;
                *subscription = Some(self.bus.subscribe());
                Ok(Value::Null)
            }
            "commands" => known("commands", &[], &request.args).map(|()| self.list()),
            name => match self.commands.get(name) {
                Some(command) => {
                    known(name, command.takes, &request.args)?;
                    (command.handler)(request.args).await
                }
                None => Err(format!("unknown command '{name}'; this end knows {}", self.names())),
            },
        }
    }

    fn list(&self) -> Value {
        let own = [("commands", "this list"), ("subscribe", "every event from now on, on this connection")];
        let registered = self.commands.iter().map(|(name, command)| (*name, command.doc));
        Value::Object(
            own.into_iter().chain(registered).map(|(name, doc)| (name.into(), json!(doc))).collect(),
        )
    }

    fn names(&self) -> String {
        let list = self.list();
        list.as_object().map(|list| list.keys().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default()
    }
}

/// Sees that a command is told nothing that it does not know: it may be what the caller relies on.
fn known(command: &str, takes: &[&str], args: &Value) -> Result<(), String> {
    let what = match takes {
        [] => "takes nothing".to_owned(),
        takes => format!("takes {}", takes.join(", ")),
    };
    match args {
        Value::Null => Ok(()),
        Value::Object(args) => match args.keys().find(|name| !takes.contains(&name.as_str())) {
            Some(unknown) => Err(format!("unknown argument '{unknown}': {command} {what}")),
            None => Ok(()),
        },
        _ => Err(format!("\"args\" is no JSON object: {command} {what}")),
    }
}

/// The next event for a subscriber; never, for a caller that is none.
async fn next_event(
    subscription: &mut Option<Subscription>,
) -> Option<Result<Arc<farhop_events::Stamped>, u64>> {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => std::future::pending().await,
    }
}
