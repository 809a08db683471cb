//! A body as a client gets it: all of it, or the bytes of one range; from one place, or its beginning from one and its rest from
//! another.

use std::ops::Range;

use bytes::Bytes;
use farhop_store::{Broken, Piece, Reader};

/// See the module.
pub(crate) struct Section {
    reader: Reader,
    skip: u64,
    /// Where in the body it is.
    at: u64,
    /// Bytes still to be given; none where it goes to the body's end.
    left: Option<u64>,
    /// What was waited for and is not taken yet.
    first: Option<Piece>,
    /// Reads what comes behind it.
    then: Option<Reader>,
}

impl Section {
    /// What `reader` reads, from the body's beginning on.
    pub(crate) fn whole(reader: Reader) -> Section {
        Section::rest(reader, 0)
    }

    /// What `reader` reads, which is what comes behind so many bytes of the body.
    pub(crate) fn rest(reader: Reader, at: u64) -> Section {
        Section { reader, skip: 0, at, left: None, first: None, then: None }
    }

    /// Goes on where it is, with another reader of the same body from its beginning.
    pub(crate) fn go_on(&mut self, reader: Reader) {
        (self.reader, self.skip) = (reader, self.at);
    }

    /// These bytes of what `reader` reads from the body's beginning on.
    pub(crate) fn part(reader: Reader, range: &Range<u64>) -> Section {
        let left = Some(range.end - range.start);
        Section { reader, skip: range.start, at: range.start, left, first: None, then: None }
    }

    /// The same, and behind it all that `rest` reads.
    pub(crate) fn and_then(self, rest: Reader) -> Section {
        Section { then: Some(rest), ..self }
    }

    /// Whether it ends here; where something comes behind it, it goes on with that.
    fn is_over(&mut self) -> bool {
        if self.left != Some(0) {
            return false;
        }
        let Some(rest) = self.then.take() else { return true };
        (self.reader, self.left) = (rest, None);
        false
    }

    /// Waits for the first piece, which stays to be taken.
    ///
    /// # Errors
    /// The body breaks before it.
    pub(crate) async fn begin(&mut self) -> Result<(), Broken> {
        if self.first.is_none() {
            self.first = Some(self.next().await?);
        }
        Ok(())
    }

    /// The next piece if it is here.
    pub(crate) fn take(&mut self) -> Option<Result<Piece, Broken>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        loop {
            if self.is_over() {
                return Some(Ok(Piece::End(None)));
            }
            let piece = self.reader.take()?;
            if let Some(given) = self.give(piece) {
                return Some(given);
            }
        }
    }

    /// The next piece, as soon as it is here. Cancel-safe.
    ///
    /// # Errors
    /// The body will not become whole, or is shorter than the range.
    pub(crate) async fn next(&mut self) -> Result<Piece, Broken> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        loop {
            if self.is_over() {
                return Ok(Piece::End(None));
            }
            let piece = self.reader.next().await;
            if let Some(given) = self.give(piece) {
                return given;
            }
        }
    }

    /// Bytes that came across for the body, each told once.
    pub(crate) fn take_crossed(&self) -> u64 {
        self.reader.take_crossed()
    }

    /// What of a piece belongs to the section, if anything does.
    fn give(&mut self, piece: Result<Piece, Broken>) -> Option<Result<Piece, Broken>> {
        match piece {
            Ok(Piece::Data(bytes)) => self.cut(bytes).map(|bytes| Ok(Piece::Data(bytes))),
            Ok(Piece::End(_)) if self.left.is_some() => {
                Some(Err(Broken::Failed("the body is shorter than was said".into())))
            }
            other => Some(other),
        }
    }

    fn cut(&mut self, mut bytes: Bytes) -> Option<Bytes> {
        let skipped = self.skip.min(bytes.len() as u64);
        self.skip -= skipped;
        drop(bytes.split_to(skipped as usize));
        if let Some(left) = &mut self.left {
            bytes.truncate((*left).min(bytes.len() as u64) as usize);
            *left -= bytes.len() as u64;
        }
        self.at += bytes.len() as u64;
        (!bytes.is_empty()).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_store::{Body, Budget};

    #[tokio::test]
    async fn a_range_is_cut_out_of_pieces_wherever_they_end() {
        let budget = Budget::new(1 << 20);
        for (start, end) in [(0, 3000), (0, 1), (999, 1001), (1500, 2500), (2999, 3000)] {
            let (mut intake, body) = Body::new(&budget, 1 << 20);
            let all: Vec<u8> = (0..3000_u32).map(|at| at as u8).collect();
            for piece in all.chunks(1000) {
                intake.write(Bytes::copy_from_slice(piece)).await;
            }
            let mut section = Section::part(body.reader().unwrap(), &(start..end));
            let mut got = Vec::new();
            while let Piece::Data(bytes) = section.next().await.unwrap() {
                got.extend_from_slice(&bytes);
            }
            assert_eq!(got, all[start as usize..end as usize], "{start}..{end}");
            drop(intake);
        }
    }

    #[tokio::test]
    async fn what_goes_on_with_another_reader_goes_on_where_it_is() {
        let body = Body::whole(&Budget::new(1 << 20), Bytes::from_static(b"0123456789"), None);
        let reader = || body.reader().unwrap();
        for cut in [2, 5, 7] {
            let rest = Body::whole(&Budget::new(1 << 20), Bytes::from_static(&b"0123456789"[2..cut]), None);
            let sections = [
                Section::part(
                    Body::whole(&Budget::new(10), Bytes::from_static(&b"0123456789"[..cut]), None)
                        .reader()
                        .unwrap(),
                    &(2..8),
                ),
                Section::rest(rest.reader().unwrap(), 2),
            ];
            for (mut section, end) in sections.into_iter().zip([8, 10]) {
                let mut got = Vec::new();
                while let Some(Ok(Piece::Data(bytes))) = section.take() {
                    got.extend_from_slice(&bytes);
                }
                section.go_on(reader());
                while let Piece::Data(bytes) = section.next().await.unwrap() {
                    got.extend_from_slice(&bytes);
                }
                assert_eq!(got, &b"0123456789"[2..end], "{cut}");
            }
        }
    }

    #[tokio::test]
    async fn what_comes_behind_it_is_read_where_it_ends() {
        let body = |bytes| Body::whole(&Budget::new(10), Bytes::from_static(bytes), None).reader().unwrap();
        for begun in [false, true] {
            let mut section = Section::part(body(b"01234"), &(2..5)).and_then(body(b"567"));
            if begun {
                section.begin().await.unwrap();
            }
            let mut got = Vec::new();
            while let Piece::Data(bytes) = section.next().await.unwrap() {
                got.extend_from_slice(&bytes);
            }
            assert_eq!(got, b"234567");
        }
    }

    #[tokio::test]
    async fn what_was_waited_for_is_given_once() {
        let body = Body::whole(&Budget::new(1 << 20), Bytes::from_static(b"0123"), None);
        for taken in [false, true] {
            let mut section = Section::part(body.reader().unwrap(), &(1..3));
            section.begin().await.unwrap();
            section.begin().await.unwrap();
            let first = if taken { section.take().unwrap() } else { section.next().await };
            assert_eq!(first, Ok(Piece::Data(Bytes::from_static(b"12"))));
            assert_eq!(section.next().await, Ok(Piece::End(None)));
        }
        let (intake, body) = Body::new(&Budget::new(1 << 20), 10);
        let mut section = Section::whole(body.reader().unwrap());
        intake.fail(Broken::Lost);
        assert_eq!(section.begin().await, Err(Broken::Lost));
    }

    #[tokio::test]
    async fn a_body_that_ends_within_the_range_is_broken() {
        let body = Body::whole(&Budget::new(1 << 20), Bytes::from_static(b"short"), None);
        let mut section = Section::part(body.reader().unwrap(), &(2..9));
        assert_eq!(section.next().await, Ok(Piece::Data(Bytes::from_static(b"ort"))));
        assert!(matches!(section.next().await, Err(Broken::Failed(_))));
    }
}
