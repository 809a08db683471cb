//! Lines of bounded length from a stream, safe to abandon and take up again.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Collects one line at a time.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    partial: Vec<u8>,
    longest: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Lines of at most `longest` bytes.
    pub(crate) fn new(reader: R, longest: usize) -> Self {
        Lines { reader, partial: Vec::new(), longest }
    }

    /// The next line without its end; `None` at the end of the stream. When the future is dropped, what was
    /// read stays for the next call.
    ///
    /// # Errors
    /// The stream fails, or the line is longer than allowed; nothing sensible can follow either.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                // A line that nobody ended is not known to be whole.
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            if self.partial.len() + taken > self.longest {
                let reason = format!("line longer than {} bytes", self.longest);
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            self.partial.extend_from_slice(&chunk[..taken]);
            self.reader.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
        }
    }
}
