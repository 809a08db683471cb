//! Where a response is kept while its body comes: in memory as long as it is short, on disk once it is too long for that. What a
//! lost carrier has cut short is put aside, for whoever asks for the rest of it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use farhop_store::{Body, Intake, Keeping, Piece};
use http::HeaderMap;

use crate::Remote;

/// See the module.
pub(crate) struct Kept {
    place: Place,
    /// Bytes that came across for it on earlier carriers.
    crossed: u64,
    slot: Slot,
    /// How long it will be, where that is known.
    length: Option<u64>,
}

/// Where a body is kept.
pub(crate) enum Place {
    Nowhere,
    /// In the repository, under this number.
    Held(u64),
    /// On its way to the disk, and found there while it comes.
    Passing(Box<Keeping>),
}

impl Kept {
    pub(crate) fn at(place: Place, slot: Slot, crossed: u64) -> Kept {
        Kept { place, crossed, slot, length: None }
    }

    /// The same of a body that will be so long.
    pub(crate) fn of_length(self, length: Option<u64>) -> Kept {
        Kept { length, ..self }
    }

    /// Bytes that it still lacks, where it is on its way to the disk.
    pub(crate) fn lacks(&self) -> Option<u64> {
        match &self.place {
            Place::Passing(keeping) if keeping.offered().is_some() => {
                self.length?.checked_sub(keeping.length())
            }
            _ => None,
        }
    }

    /// More of the body, for `intake` and for where it is kept besides.
    pub(crate) async fn take(&mut self, bytes: Bytes, intake: &mut Intake, remote: &Remote, asker: u64) {
        if let Place::Passing(keeping) = &mut self.place {
            keeping.write(&bytes);
        }
        let outgrown = intake.push(bytes);
        if let (Place::Held(id), Some(all)) = (&self.place, outgrown) {
            let most = remote.settings().store.entry.0;
            let keeping = remote.repository().keep_outgrown(*id, asker, most);
            self.place = Place::Nowhere;
            if let Some(mut keeping) = keeping
                && keeping.offer()
            {
                keeping.write_all(all).await;
                self.place = Place::Passing(Box::new(keeping));
            }
        }
    }

    /// The same where it is only kept: whoever asked for it has gone, or is one of those who follow it on disk.
    pub(crate) fn take_alone(&mut self, bytes: &Bytes) {
        if let Place::Passing(keeping) = &mut self.place {
            keeping.write(bytes);
        }
    }

    /// So many bytes came across for it since then.
    pub(crate) fn crossed_alone(&self, bytes: u64) {
        if let Place::Passing(keeping) = &self.place {
            keeping.crossed(bytes);
        }
    }

    /// The number under which it can be followed on disk, if it can.
    pub(crate) fn offered(&self) -> Option<u64> {
        match &self.place {
            Place::Passing(keeping) => keeping.offered(),
            Place::Nowhere | Place::Held(_) => None,
        }
    }

    /// Completes when somebody who follows it on disk has read all there is, and waits for more.
    pub(crate) async fn awaited(&self) {
        match &self.place {
            Place::Passing(keeping) => keeping.awaited().await,
            Place::Nowhere | Place::Held(_) => std::future::pending().await,
        }
    }

    /// Completes when nobody follows it on disk.
    pub(crate) async fn left(&self) {
        if let Place::Passing(keeping) = &self.place {
            keeping.left().await;
        }
    }

    /// What came before, for the same.
    pub(crate) async fn begin_with(
        &mut self,
        before: Begun,
        intake: &mut Intake,
        remote: &Remote,
        asker: u64,
    ) {
        let Some(pieces) = before.pieces() else { return };
        match &mut self.place {
            Place::Nowhere => {}
            Place::Passing(keeping) => keeping.write_all(pieces).await,
            Place::Held(_) => {
                for piece in pieces {
                    self.take(piece, intake, remote, asker).await;
                }
            }
        }
    }

    /// That was all, with these trailers; so many bytes came across for it.
    pub(crate) fn ended(&mut self, trailers: Option<&HeaderMap>, crossed: u64) {
        if let Place::Passing(keeping) = &mut self.place {
            keeping.ended(trailers.cloned(), self.crossed + crossed);
        }
    }

    /// The number under which it is held.
    pub(crate) async fn finish(self) -> Option<u64> {
        match self.place {
            Place::Nowhere => None,
            Place::Held(id) => Some(id),
            Place::Passing(keeping) => keeping.finish().await,
        }
    }

    /// The carrier was lost: what has come of it waits for the rest.
    pub(crate) fn cut_short(self, intake: &Intake, crossed: u64) {
        let crossed = self.crossed + crossed;
        let what = match self.place {
            Place::Nowhere => return,
            Place::Held(_) => What::Short(intake.body()),
            Place::Passing(keeping) => What::Long(keeping),
        };
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Begun { what, crossed });
    }
}

/// What has come of a body.
pub(crate) struct Begun {
    what: What,
    crossed: u64,
}

enum What {
    Short(Body),
    Long(Box<Keeping>),
}

impl Begun {
    fn length(&self) -> u64 {
        match &self.what {
            What::Short(body) => body.written(),
            What::Long(keeping) => keeping.length(),
        }
    }

    /// What is on its way to the disk, without the rest.
    pub(crate) fn take_long(self) -> Result<Keeping, Begun> {
        match self.what {
            What::Long(keeping) => Ok(*keeping),
            What::Short(_) => Err(self),
        }
    }

    /// Bytes that came across for it.
    pub(crate) fn crossed(&self) -> u64 {
        self.crossed
    }

    pub(crate) fn is_long(&self) -> bool {
        matches!(self.what, What::Long(_))
    }

    /// Its bytes, where memory has them.
    fn pieces(self) -> Option<Vec<Bytes>> {
        let What::Short(body) = &self.what else { return None };
        let (reader, mut pieces) = (body.reader()?, Vec::new());
        while let Some(Ok(Piece::Data(piece))) = reader.take() {
            pieces.push(piece);
        }
        Some(pieces)
    }
}

/// Where one answer leaves what has come of it when its carrier is lost.
pub(crate) type Slot = Arc<Mutex<Option<Begun>>>;

/// What came of an exchange's answer before the carrier was lost.
#[derive(Default)]
pub(crate) struct CutShort(Mutex<Slot>);

impl CutShort {
    /// For the next answer. If that goes on where the client is, what came up to there is taken from where the one before has left it.
    pub(crate) fn next(&self, resumed: Option<u64>) -> (Slot, Option<Begun>) {
        let next = Slot::default();
        let last =
            std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), Arc::clone(&next));
        let begun = last.lock().unwrap_or_else(PoisonError::into_inner).take();
        (next, begun.filter(|begun| resumed == Some(begun.length())))
    }
}
