//! Bodies in files, one each, sealed in chunks of which each can be opened alone.
//!
//! ```text
//! bodies/3f/000000000000123f     "FHBODY01", then each 64 KiB of the body and 16 bytes of seal; the last chunk is shorter
//! ```

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::row::Row;
use super::seal::{Keys, Salt, Seal, TAG};

/// Bytes of a body that are sealed together.
pub(super) const CHUNK: usize = 64 * 1024;
/// How a file begins: its format.
const MARK: &[u8; 8] = b"FHBODY01";
/// Folders among which the files are spread.
pub(super) const FOLDERS: u64 = 256;

/// The folder of the bodies.
#[derive(Debug, Clone)]
pub(super) struct Bodies(PathBuf);

impl Bodies {
    /// The bodies in `folder`, which is made if it is not there.
    pub(super) fn open(folder: PathBuf) -> io::Result<Bodies> {
        let make = |folder: &Path| fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        for number in 0..FOLDERS {
            make(&folder.join(format!("{number:02x}")))?;
        }
        Ok(Bodies(folder))
    }

    fn path(&self, id: u64) -> PathBuf {
        self.0.join(format!("{:02x}", id % FOLDERS)).join(format!("{id:016x}"))
    }

    /// Writes the body of the entry `id`. What could not be written whole is taken away again.
    pub(super) fn write(&self, id: u64, row: &Row, keys: &Keys, pieces: &[Bytes]) -> io::Result<()> {
        let mut growing = self.begin(id, &row.salt, keys)?;
        let written = pieces.iter().try_for_each(|piece| growing.take(&mut &piece[..]));
        let written = written.and_then(|()| growing.close().map(drop));
        if written.is_err() {
            // The disk may be full: what is there of it must not stay.
            self.remove(id);
        }
        written
    }

    /// Begins to write the body of the entry `id`, whose file has this salt.
    pub(super) fn begin(&self, id: u64, salt: &Salt, keys: &Keys) -> io::Result<Growing> {
        let path = self.path(id);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let chunk = Vec::with_capacity(CHUNK + TAG);
        Ok(Growing { file, id, seal: keys.seal(salt), chunk, is_sealed: false, place: 0, length: 0 })
    }

    /// The body of the entry `id`; nothing if it is not there in its full length.
    pub(super) fn read(&self, id: u64, row: &Row, keys: &Keys) -> Option<BodyFile> {
        let file = File::open(self.path(id)).ok()?;
        let is_whole = file.metadata().ok()?.len() == file_length(row.length);
        let chunks = Chunks::of(file, id, &row.salt, keys).filter(|_| is_whole)?;
        Some(BodyFile { chunks, length: row.length })
    }

    /// What is there of the body of the entry `id`, which is still being written.
    pub(super) fn growing(&self, id: u64, salt: &Salt, keys: &Keys) -> Option<Chunks> {
        Chunks::of(File::open(self.path(id)).ok()?, id, salt, keys)
    }

    /// Whether the body of the entry `id` is there in its full length.
    pub(super) fn has(&self, id: u64, row: &Row) -> bool {
        fs::metadata(self.path(id)).is_ok_and(|file| file.len() == file_length(row.length))
    }

    /// Takes the body of the entry `id` away.
    pub(super) fn remove(&self, id: u64) {
        // It may never have been there.
        let _ = fs::remove_file(self.path(id));
    }

    /// Takes all of them away.
    pub(super) fn clear(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.0)?;
        Bodies::open(self.0.clone()).map(drop)
    }

    /// The entries whose files are in one of the [`FOLDERS`].
    pub(super) fn listed(&self, folder: u64) -> Vec<u64> {
        let Ok(files) = fs::read_dir(self.0.join(format!("{folder:02x}"))) else { return Vec::new() };
        let id = |file: fs::DirEntry| u64::from_str_radix(file.file_name().to_str()?, 16).ok();
        files.filter_map(|file| id(file.ok()?)).collect()
    }
}

/// A body that is being written.
pub(super) struct Growing {
    file: File,
    id: u64,
    seal: Seal,
    /// What has come of the chunk at `place`, and is in no file yet.
    chunk: Vec<u8>,
    /// The chunk is sealed, and could not be written.
    is_sealed: bool,
    place: u64,
    length: u64,
}

impl Growing {
    /// Bytes that have come.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Chunks in the file, of which each is whole.
    pub(super) fn chunks(&self) -> u64 {
        self.place
    }

    /// What has come behind them.
    pub(super) fn tail(&self) -> &[u8] {
        &self.chunk
    }

    /// More of it. After an error it can be given what is left of the bytes again.
    pub(super) fn take(&mut self, bytes: &mut &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // A full chunk waits for what follows: the last one is sealed as such.
            if self.chunk.len() >= CHUNK {
                self.write_chunk(false)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            self.length += now.len() as u64;
            *bytes = later;
        }
        Ok(())
    }

    /// That was all; how long it is. After an error it can be tried again.
    pub(super) fn close(&mut self) -> io::Result<u64> {
        // Not synced: what a power cut leaves of it is found out when it is opened.
        self.write_chunk(true)?;
        Ok(self.length)
    }

    fn write_chunk(&mut self, is_last: bool) -> io::Result<()> {
        if !self.is_sealed {
            self.seal.close(self.id, self.place, is_last, &mut self.chunk);
            self.is_sealed = true;
        }
        if self.place == 0 {
            self.file.write_all_at(MARK, 0)?;
        }
        // Whoever reads it meanwhile finds it there.
        self.file.write_all_at(&self.chunk, offset(self.place))?;
        self.chunk.clear();
        self.is_sealed = false;
        self.place += 1;
        Ok(())
    }
}

/// Where the chunk at `place` begins.
fn offset(place: u64) -> u64 {
    MARK.len() as u64 + place * (CHUNK + TAG) as u64
}

/// Chunks of a body of this length; an empty one has one, too, so that there is something to open.
fn chunks(length: u64) -> u64 {
    length.div_ceil(CHUNK as u64).max(1)
}

fn file_length(length: u64) -> u64 {
    MARK.len() as u64 + length + chunks(length) * TAG as u64
}

/// The chunks of a file.
pub(super) struct Chunks {
    file: File,
    id: u64,
    seal: Seal,
}

impl Chunks {
    fn of(file: File, id: u64, salt: &Salt, keys: &Keys) -> Option<Chunks> {
        let mut mark = [0; MARK.len()];
        file.read_exact_at(&mut mark, 0).ok()?;
        (&mark == MARK).then(|| Chunks { file, id, seal: keys.seal(salt) })
    }

    /// The one at `place`, of so many bytes; nothing if it is not as it was written.
    pub(super) fn at(&self, place: u64, length: usize, is_last: bool) -> Option<Bytes> {
        let mut sealed = vec![0; length + TAG];
        self.file.read_exact_at(&mut sealed, offset(place)).ok()?;
        self.seal.open(self.id, place, is_last, sealed).map(Bytes::from)
    }
}

/// A body that is read.
pub(super) struct BodyFile {
    chunks: Chunks,
    length: u64,
}

impl BodyFile {
    /// How many chunks there are.
    pub(super) fn chunks(&self) -> u64 {
        chunks(self.length)
    }

    /// One of them; nothing if it is not as it was written.
    pub(super) fn chunk(&self, place: u64) -> Option<Bytes> {
        let start = place * CHUNK as u64;
        let length = self.length.checked_sub(start)?.min(CHUNK as u64) as usize;
        self.chunks.at(place, length, place + 1 == self.chunks())
    }
}
