//! Ground's side of a run: answers, promises, pushes, echoes.

use std::sync::{Arc, Mutex, PoisonError};

use farhop_htotp::ResponseHead;
use farhop_htotp::frame::{Coding, Priority};
use farhop_transport::hop::{Arrival, Gone, Hop, Incoming, Receiver, Sender};
use http::{HeaderMap, Method, StatusCode};

use crate::log::Log;
use crate::scene::{Course, Errand, Promise, Scene};
use crate::stream::{Body, Part, head};

/// What ground needs for everything.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) scene: Arc<Scene>,
    pub(crate) log: Arc<Log>,
    /// How often each errand has reached ground.
    asked: Arc<Mutex<Vec<u32>>>,
}

impl Ground {
    pub(crate) fn new(scene: Arc<Scene>, log: Arc<Log>) -> Ground {
        let asked = vec![0; scene.errands.len()];
        Ground { scene, log, asked: Arc::new(Mutex::new(asked)) }
    }

    pub(crate) fn asked(&self) -> Vec<u32> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The errand of that number, which has come.
    fn begin(&self, number: u64) -> Option<Errand> {
        let errand = self.scene.errands.get(number as usize)?.clone();
        self.log.arrived("asked", number, 0);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)[number as usize] += 1;
        Some(errand)
    }

    /// Serves one carrier until it ends.
    pub(crate) async fn serve(self, hop: Hop) {
        while let Some(incoming) = hop.accept().await {
            let (number, sender, receiver) = match incoming {
                Incoming::Exchange { exchange, sender, receiver, .. } => (exchange, sender, receiver),
                Incoming::Tunnel { asked, sender, receiver } => (asked.tunnel, sender, receiver),
                _ => continue,
            };
            let Some(errand) = self.begin(number) else {
                self.log.fault(format!("ground was asked for errand {number}, which nobody has asked"));
                continue;
            };
            let (ground, hop) = (self.clone(), hop.clone());
            tokio::spawn(async move {
                let outcome = match errand.course {
                    Course::Tunnel => ground.echo(number, sender, receiver).await,
                    _ => ground.answer(number, &errand, &hop, sender, receiver).await,
                };
                if let Err(fault) = outcome {
                    ground.log.fault(format!("errand {number}, at ground: {fault}"));
                }
            });
        }
    }

    async fn answer(
        &self,
        number: u64,
        errand: &Errand,
        hop: &Hop,
        mut sender: Sender,
        receiver: Receiver,
    ) -> Result<(), String> {
        let body = |part, size| Body::of(self.scene.seed, number as usize, part, size);
        let answer = body(Part::Answer, errand.down);
        let hearing =
            body(Part::Request, errand.up).listener().hear(receiver, &self.log, "said to ground", number);
        let response = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
        match &errand.course {
            Course::Exchange { is_early, promises } => {
                let mut answering = async || {
                    sender.answer(&response, Coding::Identity, None);
                    self.promise(number, promises, hop, &sender);
                    answer.say_whole(&mut sender).await.map_err(|gone| format!("the answer: {gone}"))
                };
                let (heard, answered) = if *is_early {
                    tokio::join!(hearing, answering())
                } else {
                    (hearing.await, answering().await)
                };
                heard.map_err(|fault| format!("the request's body: {fault}")).and(answered)
            }
            Course::Cancelled(_) => {
                sender.answer(&response, Coding::Identity, None);
                match answer.say_whole(&mut sender).await {
                    Ok(()) | Err(Gone::Stopped) => Ok(()),
                    Err(gone) => Err(format!("a cancelled answer: {gone}")),
                }
            }
            // What it has said so far is lost with the sender, as when an origin breaks off.
            Course::Abandoned(after) => {
                sender.answer(&response, Coding::Identity, None);
                answer.say(&mut sender, *after).await.map_err(|gone| format!("an abandoned answer: {gone}"))
            }
            Course::Tunnel => Err("asked as an exchange".into()),
        }
    }

    /// Announces what is pushed, and pushes it.
    fn promise(&self, number: u64, promises: &[Promise], hop: &Hop, sender: &Sender) {
        for (index, promise) in promises.iter().enumerate() {
            let path = format!("/{number}/{index}");
            let Some(id) = sender.promise(&head(Method::GET, path), Priority::default()) else { continue };
            let (hop, body) =
                (hop.clone(), Body::of(self.scene.seed, number as usize, Part::Promise(index), promise.size));
            let (log, is_wanted) = (Arc::clone(&self.log), promise.is_wanted);
            tokio::spawn(async move {
                // One that is refused before it begins is not pushed.
                let Some(mut sender) = hop.push(id) else { return };
                let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
                sender.answer(&head, Coding::Identity, None);
                if let Err(gone) = body.say_whole(&mut sender).await
                    && is_wanted
                {
                    log.fault(format!("errand {number}, promise {index}: {gone}"));
                }
            });
        }
    }

    async fn echo(&self, number: u64, mut sender: Sender, mut receiver: Receiver) -> Result<(), String> {
        sender.accept_tunnel();
        loop {
            match receiver.next().await {
                Arrival::Body(piece) => {
                    self.log.arrived("said into a tunnel", number, piece.len());
                    sender.write(piece).await.map_err(|gone| format!("the echo: {gone}"))?;
                }
                Arrival::Ended => {
                    sender.finish(None);
                    return Ok(());
                }
                other => return Err(format!("{other:?} in a tunnel")),
            }
        }
    }
}
