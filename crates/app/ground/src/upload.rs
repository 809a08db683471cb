//! The body of a request on its way from the hop to the origin. What the remote does not finish, the origin never takes
//! for finished.

use farhop_htotp::RequestHead;
use farhop_origin::{Upload, UploadSender};
use farhop_transport::hop::{Arrival, Receiver};
use http::{Method, header};
use tokio::task::AbortHandle;

/// The task that carries a body; it ends when this is dropped.
pub(crate) struct Uploading(Option<AbortHandle>);

impl Drop for Uploading {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Begins to carry the body of `request` that comes through `receiver`. `None` when the remote has given it up.
pub(crate) async fn begin(mut receiver: Receiver, request: &RequestHead) -> Option<(Upload, Uploading)> {
    let fields = &request.fields;
    let length =
        fields.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    // Whether there is a body at all shows only when it begins or ends, which is with the head as a rule. Who expects a
    // 100 sends nothing before it, and who sends as it goes along may want to hear an answer first.
    let has_body = match length {
        Some(length) => length > 0,
        None => {
            fields.contains_key(header::EXPECT)
                || [Method::POST, Method::PUT, Method::PATCH].contains(&request.method)
        }
    };
    let first = match has_body {
        true => None,
        false => match receiver.next().await {
            Arrival::Ended => return Some((Upload::empty(), Uploading(None))),
            first @ (Arrival::Body(_) | Arrival::Trailers(_)) => Some(first),
            _ => return None,
        },
    };
    let (sender, upload) = Upload::streamed(length);
    let task = tokio::spawn(carry(first, receiver, sender));
    Some((upload, Uploading(Some(task.abort_handle()))))
}

async fn carry(mut first: Option<Arrival>, mut receiver: Receiver, mut sender: UploadSender) {
    let mut trailers = None;
    loop {
        let arrival = match first.take() {
            Some(arrival) => arrival,
            None => receiver.next().await,
        };
        match arrival {
            // Dropping the receiver stops the remote: the origin takes no more.
            Arrival::Body(bytes) => match sender.send(bytes).await {
                Ok(()) => {}
                Err(_) => return,
            },
            Arrival::Trailers(fields) => trailers = Some(fields),
            Arrival::Ended => {
                // Too late only for an exchange that is over.
                let _ = sender.finish(trailers).await;
                return;
            }
            _ => return,
        }
    }
}
