//! A client's body on its way across the hop. What the client does not finish, ground never takes for finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use farhop_events::Side;
use farhop_front::{BodyError, RequestBody};
use farhop_transport::capacity::Expected;
use farhop_transport::hop::Sender;
use http::StatusCode;
use tokio::task::JoinHandle;

use crate::answers::Trouble;

/// The task that carries a body; it ends when this is dropped.
pub(crate) struct Uploading {
    /// `None` once it has said how it ended.
    task: Option<JoinHandle<Result<(), BodyError>>>,
}

impl Uploading {
    /// Carries `body` as it comes, counting its bytes; capacity is asked for as long as some are `expected`.
    pub(crate) fn begin(
        body: RequestBody,
        sender: Sender,
        uploaded: Arc<AtomicU64>,
        expected: Expected,
    ) -> Self {
        Uploading { task: Some(tokio::spawn(carry(body, sender, uploaded, expected))) }
    }

    /// Resolves when the client's body turns out not to be whole, to what the client is told; never when it is whole or
    /// nobody wants the rest. Dropping the future loses nothing.
    pub(crate) async fn broken(&mut self) -> Trouble {
        if let Some(task) = &mut self.task {
            let ended = task.await;
            self.task = None;
            if let Ok(Err(error)) = ended {
                let status = match error {
                    BodyError::Stalled => StatusCode::REQUEST_TIMEOUT,
                    BodyError::Malformed(_) | BodyError::Connection(_) => StatusCode::BAD_REQUEST,
                };
                return Trouble::new(status, Side::User, "http_request_error", error.to_string());
            }
        }
        std::future::pending().await
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn carry(
    mut body: RequestBody,
    mut sender: Sender,
    uploaded: Arc<AtomicU64>,
    mut expected: Expected,
) -> Result<(), BodyError> {
    while let Some(bytes) = body.data().await? {
        let length = bytes.len() as u64;
        uploaded.fetch_add(length, Relaxed);
        if sender.write(bytes).await.is_err() {
            return Ok(());
        }
        expected.sent(length);
    }
    sender.finish(body.trailers().as_ref());
    Ok(())
}
