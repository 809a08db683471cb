//! HTTP/1 connections to origins. Knows nothing of who uses them.

use crate::error::Error;
use crate::settings::Settings;
use crate::upload::UploadBody;
use crate::vet::{Vetted, Vetting};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

/// A connection. Dropping it closes it, whatever it was doing.
pub(crate) struct Http1 {
    pub(crate) sender: SendRequest<UploadBody>,
    /// Wants to know of each request before it is sent.
    pub(crate) vetting: Vetting,
    driver: AbortHandle,
}

impl Http1 {
    /// Speaks HTTP/1 on `io`.
    pub(crate) async fn start<T>(io: T, settings: &Settings) -> Result<Http1, Error>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (io, vetting) = Vetted::new(io, settings);
        let head = usize::try_from(settings.head.0).unwrap_or(usize::MAX);
        let handshake = http1::Builder::new()
            .title_case_headers(true)
            .max_headers(settings.fields)
            .max_header_size(head)
            // hyper refuses less than 8 KiB; the head bound above still holds then.
            .max_buf_size(head.max(8 * 1024))
            .handshake(TokioIo::new(io));
        let (mut sender, driver) = handshake.await.map_err(|error| Error::Malformed(error.to_string()))?;
        // Its errors reach the exchange as well.
        let driver = tokio::spawn(async move { drop(driver.with_upgrades().await) });
        // Without it, whoever looks before the driver has run takes the connection for a closed one.
        sender.ready().await.map_err(|_| Error::Closed)?;
        Ok(Http1 { sender, vetting, driver: driver.abort_handle() })
    }
}

impl Drop for Http1 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
