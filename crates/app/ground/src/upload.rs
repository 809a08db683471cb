//! The body of a request on its way from the hop to the origin. What the remote does not finish, the origin never takes
//! for finished.

use farhop_origin::{Upload, UploadSender};
use farhop_transport::hop::{Arrival, Receiver};
use http::{HeaderMap, header};
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

/// Begins to carry the body that comes through `receiver`. `None` when the remote has given the request up.
pub(crate) async fn begin(mut receiver: Receiver, fields: &HeaderMap) -> Option<(Upload, Uploading)> {
    let length =
        fields.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    // Whether there is a body at all shows only when it begins or ends, which is with the head. Who expects a 100 sends
    // nothing before it.
    let first = match length.is_some_and(|length| length > 0) || fields.contains_key(header::EXPECT) {
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
