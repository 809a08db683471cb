//! The fields that a field block may name by number (RFC 7541 §2.3): the static ones and those that were sent before. Pure.

use bytes::Bytes;
use std::collections::VecDeque;

/// SETTINGS_HEADER_TABLE_SIZE where nothing is said of it (RFC 9113 §6.5.2), in bytes.
const LARGEST: usize = 4096;

/// RFC 7541 Appendix A, from number 1 on.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

/// A field, whatever its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// As it came: it may be in upper case, or none.
    pub name: Bytes,
    /// As it came.
    pub value: Bytes,
}

impl Field {
    /// What it counts for (RFC 7541 §4.1, RFC 9113 §6.5.2), in bytes.
    pub fn size(&self) -> usize {
        self.name.len() + self.value.len() + 32
    }
}

/// Both tables as one.
#[derive(Debug)]
pub(super) struct Table {
    /// The latest first.
    sent: VecDeque<Field>,
    size: usize,
    most: usize,
}

impl Default for Table {
    fn default() -> Table {
        Table::new()
    }
}

impl Table {
    pub(super) fn new() -> Table {
        Table { sent: VecDeque::new(), size: 0, most: LARGEST }
    }

    /// The field of this number, from 1 on; `None` if there is none.
    pub(super) fn find(&self, number: usize) -> Option<Field> {
        let index = number.checked_sub(1)?;
        match STATIC.get(index) {
            Some((name, value)) => {
                let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
                Some(Field { name: bytes(name), value: bytes(value) })
            }
            None => self.sent.get(index - STATIC.len()).cloned(),
        }
    }

    /// RFC 7541 §4.4: one that is larger than the table empties it.
    pub(super) fn insert(&mut self, field: Field) {
        self.size += field.size();
        self.sent.push_front(field);
        self.evict();
    }

    /// RFC 7541 §6.3; `None` if it is more than was allowed.
    pub(super) fn resize(&mut self, most: usize) -> Option<()> {
        self.most = Some(most).filter(|&most| most <= LARGEST)?;
        self.evict();
        Some(())
    }

    fn evict(&mut self) {
        while self.size > self.most
            && let Some(oldest) = self.sent.pop_back()
        {
            self.size -= oldest.size();
        }
    }
}
