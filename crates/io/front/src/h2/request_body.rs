//! The body of an HTTP/2 request; see [`crate::connection::RequestBody`].

use super::request::check_values;
use super::{Place, failure};
use crate::connection::BodyError;
use crate::h1::{Framing, vet_trailers};
use crate::settings::Settings;
use ::h2::RecvStream;
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use tokio::time::timeout;

/// The body of one request.
pub(crate) struct RequestBody {
    /// `None` once all is read, or when there is none to read.
    stream: Option<RecvStream>,
    framing: Framing,
    trailers: Option<HeaderMap>,
    settings: Arc<Settings>,
    place: Arc<Place>,
}

impl RequestBody {
    pub(super) fn new(
        stream: Option<RecvStream>,
        framing: Framing,
        place: Arc<Place>,
        settings: Arc<Settings>,
    ) -> Self {
        let stream = stream.filter(|_| framing != Framing::None);
        place.set_unread(stream.is_some());
        RequestBody { stream, framing, trailers: None, settings, place }
    }

    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    pub(crate) async fn data(&mut self) -> Result<Option<Bytes>, BodyError> {
        let patience = self.settings.body_timeout;
        let Some(stream) = &mut self.stream else { return Ok(None) };
        loop {
            match timeout(patience, stream.data()).await {
                Ok(Some(Ok(data))) => {
                    // The client may send as much again. Of a stream that is gone nothing need be said.
                    let _ = stream.flow_control().release_capacity(data.len());
                    if !data.is_empty() {
                        return Ok(Some(data));
                    }
                }
                Ok(Some(Err(error))) => return Err(failure(error).into()),
                Ok(None) => break,
                Err(_) => return Err(BodyError::Stalled),
            }
        }
        let trailers = match timeout(patience, stream.trailers()).await {
            Ok(trailers) => trailers.map_err(failure)?,
            Err(_) => return Err(BodyError::Stalled),
        };
        if let Some(trailers) = trailers {
            check_values(&trailers)?;
            self.trailers = Some(vet_trailers(trailers)?).filter(|trailers| !trailers.is_empty());
        }
        self.stream = None;
        self.place.set_unread(false);
        Ok(None)
    }

    pub(crate) fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }
}
