//! What the index says of an entry, as bytes: written, sealed, opened and read. No row with a bit changed is ever read.

use std::time::{Duration, SystemTime};

use farhop_freshness::Stored;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::seal::{Keys, SALT, Salt, salt};
use crate::Partition;

/// What is kept of a response besides its body.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) partition: Partition,
    pub(super) url: String,
    pub(super) head: Stored,
    pub(super) trailers: Option<HeaderMap>,
    /// Bytes of the body.
    pub(super) length: u64,
    /// Of the body's file.
    pub(super) salt: Salt,
}

impl Row {
    /// The row as the index keeps it; nothing when the system has no randomness to give.
    pub(super) fn sealed(&self, id: u64, keys: &Keys) -> Option<Vec<u8>> {
        let own = salt()?;
        let mut bytes = Vec::with_capacity(512);
        self.write(&mut bytes);
        keys.seal(&own).close(id, 0, true, &mut bytes);
        bytes.extend_from_slice(&own);
        Some(bytes)
    }

    /// The row of the entry `id`; nothing if it is not as it was written.
    pub(super) fn open(id: u64, sealed: &[u8], keys: &Keys) -> Option<Row> {
        let (sealed, own) = sealed.split_last_chunk::<SALT>()?;
        let bytes = keys.seal(own).open(id, 0, true, sealed.to_vec())?;
        let mut bytes = &bytes[..];
        let row = Row::read(&mut bytes)?;
        bytes.is_empty().then_some(row)
    }

    fn write(&self, to: &mut Vec<u8>) {
        let user = match self.partition {
            Partition::Shared => 0,
            Partition::User(user) => user.saturating_add(1),
        };
        number(to, user);
        text(to, self.url.as_bytes());
        number(to, self.head.status.as_u16().into());
        fields(to, &self.head.fields);
        fields(to, &self.head.nominated);
        time(to, self.head.requested_at);
        time(to, self.head.received_at);
        to.push(self.trailers.is_some().into());
        if let Some(trailers) = &self.trailers {
            fields(to, trailers);
        }
        number(to, self.length);
        to.extend_from_slice(&self.salt);
    }

    fn read(from: &mut &[u8]) -> Option<Row> {
        let partition = read_number(from)?.checked_sub(1).map_or(Partition::Shared, Partition::User);
        let url = String::from_utf8(read_text(from)?.to_vec()).ok()?;
        let head = Stored {
            status: StatusCode::from_u16(read_number(from)?.try_into().ok()?).ok()?,
            fields: read_fields(from)?,
            nominated: read_fields(from)?,
            requested_at: read_time(from)?,
            received_at: read_time(from)?,
        };
        let trailers = if from.split_off_first()? == &0 { None } else { Some(read_fields(from)?) };
        let length = read_number(from)?;
        let salt = from.split_off(..SALT)?.try_into().ok()?;
        Some(Row { partition, url, head, trailers, length, salt })
    }
}

fn number(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

fn read_number(from: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(from.split_off(..8)?.try_into().ok()?))
}

fn text(to: &mut Vec<u8>, bytes: &[u8]) {
    number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

fn read_text<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = read_number(from)?.try_into().ok()?;
    from.split_off(..length)
}

/// A time before 1970 is a clock's that was wrong: what it dates is as old as can be.
fn time(to: &mut Vec<u8>, time: SystemTime) {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    number(to, u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
}

fn read_time(from: &mut &[u8]) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(read_number(from)?))
}

fn fields(to: &mut Vec<u8>, fields: &HeaderMap) {
    number(to, fields.len() as u64);
    for (name, value) in fields {
        text(to, name.as_str().as_bytes());
        text(to, value.as_bytes());
    }
}

fn read_fields(from: &mut &[u8]) -> Option<HeaderMap> {
    let mut fields = HeaderMap::new();
    for _ in 0..read_number(from)? {
        let name = HeaderName::from_bytes(read_text(from)?).ok()?;
        fields.try_append(name, HeaderValue::from_bytes(read_text(from)?).ok()?).ok()?;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::seal::Key;

    fn row() -> Row {
        let mut fields = HeaderMap::new();
        fields.append("set-cookie", HeaderValue::from_static("a=1"));
        fields.append("set-cookie", HeaderValue::from_bytes(b"b=\xff").unwrap());
        fields.append("etag", HeaderValue::from_static("\"x\""));
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
        Row {
            partition: Partition::User(7),
            url: "https://a.test/?q=ä".into(),
            head: Stored {
                status: StatusCode::OK,
                fields: fields.clone(),
                nominated: HeaderMap::new(),
                requested_at: at,
                received_at: at + Duration::from_secs(1),
            },
            trailers: Some(fields),
            length: 1 << 40,
            salt: [3; SALT],
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written_and_only_then() {
        let keys = Key::from_bytes([1; 32]).keys();
        let sealed = row().sealed(9, &keys).unwrap();
        let opened = Row::open(9, &sealed, &keys).unwrap();
        assert_eq!(format!("{opened:?}"), format!("{:?}", row()));
        assert!(Row::open(8, &sealed, &keys).is_none(), "another entry's");
        assert!(Row::open(9, &sealed, &Key::from_bytes([2; 32]).keys()).is_none(), "another key's");
        for at in 0..sealed.len() {
            let mut torn = sealed.clone();
            torn[at] ^= 1;
            assert!(Row::open(9, &torn, &keys).is_none(), "bit of byte {at}");
            assert!(Row::open(9, &sealed[..at], &keys).is_none(), "cut at {at}");
        }
    }

    #[test]
    fn nothing_of_a_row_can_be_read_without_the_key() {
        let sealed = row().sealed(9, &Key::from_bytes([1; 32]).keys()).unwrap();
        let plain: &[&[u8]] = &[b"a.test", b"set-cookie", b"a=1"];
        assert!(!plain.iter().any(|text| sealed.windows(text.len()).any(|part| part == *text)));
    }

    #[test]
    fn bytes_that_are_no_row_are_none() {
        let mut bytes = Vec::new();
        row().write(&mut bytes);
        for cut in 0..bytes.len() {
            assert!(Row::read(&mut &bytes[..cut]).is_none(), "{cut}");
        }
        let huge = [0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
        assert!(Row::read(&mut &huge[..]).is_none());
    }
}
