//! A store in a folder of its own, and responses to put there.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub)] // helpers of tests fail by panicking; not every test needs all of them

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use farhop_freshness::Stored;
use farhop_replacement::Link;
use farhop_store::{
    Body, Broken, Budget, Disk, DiskError, DiskOptions, Held, Key, Partition, Piece, Repository, Store,
};
use farhop_units::BitRate;
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Memory of a store in these tests.
pub const SHARED: Partition = Partition::Shared;
pub const MEMORY: u64 = 4 << 20;

pub fn options(folder: &Path, size: u64) -> DiskOptions {
    let link = Link { round_trip: Duration::from_millis(650), rate: BitRate::mbit(8) };
    DiskOptions { folder: folder.join("store"), size, key: Key::from_bytes([7; 32]), link }
}

/// A store, and what the bodies of it are charged to.
pub struct Opened {
    pub store: Store,
    pub budget: Arc<Budget>,
}

pub fn open(folder: &Path) -> Opened {
    try_open(options(folder, 1 << 30)).unwrap()
}

pub fn try_open(options: DiskOptions) -> Result<Opened, DiskError> {
    let budget = Budget::new(MEMORY);
    let store = Store::on(Disk::open(options)?, Arc::clone(&budget)).unwrap();
    Ok(Opened { store, budget })
}

/// A head that is fresh for an hour, received now.
pub fn fresh() -> Stored {
    let now = SystemTime::now();
    let mut fields = HeaderMap::new();
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    Stored::new(&HeaderMap::new(), StatusCode::OK, &fields, now, now)
}

impl Opened {
    pub async fn put(&self, partition: Partition, url: &str, body: &[u8]) -> u64 {
        self.put_as(partition, url, fresh(), body).await
    }

    pub async fn put_as(&self, partition: Partition, url: &str, head: Stored, body: &[u8]) -> u64 {
        let body = Body::whole(&self.budget, Bytes::copy_from_slice(body), None);
        self.store.store(partition, url, head, body).await
    }

    pub async fn find(&self, partition: Partition, url: &str) -> Vec<Held> {
        self.store.find(partition, url, &HeaderMap::new()).await
    }

    /// The body that is found; nothing if none is.
    pub async fn get(&self, partition: Partition, url: &str) -> Option<Result<Vec<u8>, Broken>> {
        let held = self.find(partition, url).await.into_iter().next()?;
        Some(all(&held.body).await)
    }

    /// Ends it, with everything on disk.
    pub async fn close(self) {
        self.store.close().await;
    }
}

/// All of a body.
pub async fn all(body: &Body) -> Result<Vec<u8>, Broken> {
    let (mut reader, mut bytes) = (body.reader().expect("it can be joined"), Vec::new());
    loop {
        match reader.next().await? {
            Piece::Data(piece) => bytes.extend_from_slice(&piece),
            Piece::End(_) => return Ok(bytes),
        }
    }
}

/// So many bytes, of which no two chunks are alike, and no two seeds.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

/// The files of bodies.
pub fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let folders = std::fs::read_dir(folder.join("store/bodies")).unwrap();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}
