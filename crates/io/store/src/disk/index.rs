//! The index: which entries there are, by number, by name and by worth, in one database file. What it says of each is
//! sealed; it does not know what it says.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use farhop_replacement::{Response, Worth};
use farhop_units::Bytes;
use redb::{
    Builder, Database, Error, ReadableDatabase, ReadableTable, ReadableTableMetadata, StorageError, Table,
    TableDefinition, TableError, WriteTransaction,
};

/// Version of what is in here, and in the files of bodies.
const FORMAT: u64 = 1;
/// Memory for pages of the database.
const CACHE: usize = 8 << 20;
/// Users whose numbers are remembered.
pub(super) const USERS: usize = 16_384;

const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");
/// Names of URLs, each with the entries that answer it.
const NAMES: TableDefinition<(u128, u64), ()> = TableDefinition::new("names");
/// Of each entry: worth, uses, cost in µs, size, name.
const WORTHS: TableDefinition<u64, (u64, u32, u64, u64, u128)> = TableDefinition::new("worths");
/// What is worth the least comes first.
const ORDER: TableDefinition<(u64, u64), ()> = TableDefinition::new("order");
/// Names of users, each with its number and when it was last given.
const PEOPLE: TableDefinition<u128, (u64, u64)> = TableDefinition::new("users");

/// Why an index is not opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("it has format {0}, this version knows {FORMAT}")]
    Format(u64),
    #[error("it was made with another key")]
    Key,
    #[error(transparent)]
    Database(Box<Error>),
}

impl<E: Into<Error>> From<E> for Unusable {
    fn from(error: E) -> Self {
        Unusable::Database(Box::new(error.into()))
    }
}

/// What was there when the index was opened.
#[derive(Debug, Default)]
pub(super) struct Begun {
    format: u64,
    key: u64,
    /// Numbers of users, by their names.
    pub(super) users: HashMap<u128, u64>,
    /// A number above those of all users that there ever were.
    pub(super) next_user: u64,
    /// A number above those of all entries.
    pub(super) next: u64,
    /// [`Replacement::age`](farhop_replacement::Replacement::age).
    pub(super) age: Option<Worth>,
}

/// The index, open. The database is there until this is dropped.
pub(super) struct Index(Option<Database>);

impl Drop for Index {
    fn drop(&mut self) {
        let database = self.0.take();
        // What was still to be written to a damaged file is of no use.
        let _ = contained(|| {
            drop(database);
            Ok(())
        });
    }
}

thread_local! {
    /// What panics in this thread is caught and told as an error.
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// What the database says. It panics where a file that was damaged says what cannot be (redb promises no error there), which
/// is said in the error alone.
fn contained<T>(ask: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            if !IS_CONTAINED.get() {
                others(about);
            }
        }));
    });
    let outer = IS_CONTAINED.replace(true);
    let asked = panic::catch_unwind(panic::AssertUnwindSafe(ask));
    IS_CONTAINED.set(outer);
    asked.unwrap_or_else(|_| Err(Error::Corrupted("it contradicts itself".into())))
}

/// What an entry is worth, its number and its row.
pub(super) type Ranked = (Worth, u64, Vec<u8>);

impl Index {
    /// Opens the index in `file`, or makes one there if there is none, for the key of this `mark`.
    pub(super) fn open(file: &Path, mark: u64) -> Result<(Index, Begun), Unusable> {
        let database = contained(|| Ok(Builder::new().set_cache_size(CACHE).create(file)?))?;
        let index = Index(Some(database));
        let begun = match index.ask(begun)? {
            // Nothing is written where there is no need: the disk may be full, and what it holds is good.
            Some(begun) => begun,
            None => {
                index.change(|tables| {
                    tables.meta.insert("format", FORMAT)?;
                    tables.meta.insert("key", mark)?;
                    Ok(())
                })?;
                return Ok((index, Begun { next_user: 1, ..Begun::default() }));
            }
        };
        match (begun.format, begun.key) {
            (FORMAT, key) if key == mark => Ok((index, begun)),
            (FORMAT, _) => Err(Unusable::Key),
            (format, _) => Err(Unusable::Format(format)),
        }
    }

    /// What the database says to this.
    fn ask<T>(&self, ask: impl FnOnce(&Database) -> Result<T, Error>) -> Result<T, Error> {
        contained(|| ask(self.0.as_ref().expect("there until it is dropped")))
    }

    /// Changes the index, all of it or nothing.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Tables<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.ask(|database| {
            let mut transaction = database.begin_write()?;
            // Without, a start after a crash would walk through all of it.
            transaction.set_quick_repair(true);
            let changed = {
                let mut tables = Tables::open(&transaction)?;
                let changed = change(&mut tables)?;
                let used = tables.used;
                tables.meta.insert("used", used)?;
                changed
            };
            transaction.commit()?;
            Ok(changed)
        })
    }

    /// The rows of this name, oldest first.
    pub(super) fn named(&self, name: u128) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        self.ask(|database| {
            let transaction = database.begin_read()?;
            let (names, rows) = (transaction.open_table(NAMES)?, transaction.open_table(ROWS)?);
            let mut found = Vec::new();
            for named in names.range((name, 0)..=(name, u64::MAX))? {
                let (_, id) = named?.0.value();
                if let Some(row) = rows.get(id)? {
                    found.push((id, row.value().to_vec()));
                }
            }
            Ok(found)
        })
    }

    /// The row of this entry.
    pub(super) fn row(&self, id: u64) -> Result<Option<Vec<u8>>, Error> {
        self.ask(|database| {
            let rows = database.begin_read()?.open_table(ROWS)?;
            Ok(rows.get(id)?.map(|row| row.value().to_vec()))
        })
    }

    /// Shows the row of each entry.
    pub(super) fn each(&self, mut see: impl FnMut(u64, &[u8])) -> Result<(), Error> {
        self.ask(|database| {
            for row in database.begin_read()?.open_table(ROWS)?.iter()? {
                let (id, row) = row?;
                see(id.value(), row.value());
            }
            Ok(())
        })
    }

    /// The newest entries, newest first.
    pub(super) fn newest(&self, most: usize) -> Result<Vec<u64>, Error> {
        self.ask(|database| {
            let worths = database.begin_read()?.open_table(WORTHS)?;
            let newest = worths.iter()?.rev().take(most).map(|entry| entry.map(|(id, _)| id.value()));
            Ok(newest.collect::<Result<_, StorageError>>()?)
        })
    }

    /// How many entries there are, and the sum of their sizes.
    pub(super) fn extent(&self) -> Result<(u64, u64), Error> {
        self.ask(|database| {
            let transaction = database.begin_read()?;
            let used = transaction.open_table(META)?.get("used")?.map_or(0, |used| used.value());
            Ok((transaction.open_table(WORTHS)?.len()?, used))
        })
    }

    /// What is worth the least and not more than `most`, with its rows, until it takes so many bytes; nothing if all of that takes
    /// less. Only what `is_meant` by its number.
    pub(super) fn least(
        &self,
        bytes: u64,
        most: Option<Worth>,
        is_meant: impl Fn(u64) -> bool,
    ) -> Result<Option<Vec<Ranked>>, Error> {
        self.ask(|database| {
            let transaction = database.begin_read()?;
            let (rows, worths) = (transaction.open_table(ROWS)?, transaction.open_table(WORTHS)?);
            let (mut least, mut taken) = (Vec::new(), 0);
            for place in transaction.open_table(ORDER)?.iter()? {
                let (bits, id) = place?.0.value();
                let worth = worth_of(bits);
                if taken >= bytes || most.is_some_and(|most| worth > most) {
                    break;
                }
                if is_meant(id) {
                    taken += worths.get(id)?.map_or(0, |entry| entry.value().3);
                    least.push((worth, id, rows.get(id)?.map_or_else(Vec::new, |row| row.value().to_vec())));
                }
            }
            Ok((taken >= bytes).then_some(least))
        })
    }

    /// Which of these entries are not there.
    pub(super) fn missing(&self, ids: Vec<u64>) -> Result<Vec<u64>, Error> {
        self.ask(|database| {
            let worths = database.begin_read()?.open_table(WORTHS)?;
            let mut missing = Vec::new();
            for id in ids {
                if worths.get(id)?.is_none() {
                    missing.push(id);
                }
            }
            Ok(missing)
        })
    }
}

/// What is there; nothing in an index that is new.
fn begun(database: &Database) -> Result<Option<Begun>, Error> {
    let transaction = database.begin_read()?;
    let meta = match transaction.open_table(META) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        meta => meta?,
    };
    let number = |name: &str| Ok::<_, Error>(meta.get(name)?.map(|number| number.value()));
    let format = number("format")?.unwrap_or(0);
    if format != FORMAT {
        return Ok(Some(Begun { format, ..Begun::default() }));
    }
    let mut users = HashMap::new();
    for user in transaction.open_table(PEOPLE)?.iter()? {
        let (name, about) = user?;
        users.insert(name.value(), about.value().0);
    }
    Ok(Some(Begun {
        format,
        key: number("key")?.unwrap_or(0),
        users,
        next_user: number("next_user")?.unwrap_or(1),
        next: transaction.open_table(WORTHS)?.last()?.map_or(0, |(id, _)| id.value() + 1),
        age: number("age")?.and_then(Worth::from_bits),
    }))
}

/// Bits that are no worth are worth nothing.
fn worth_of(bits: u64) -> Worth {
    Worth::from_bits(bits).unwrap_or_else(|| Worth::from_bits(0).expect("zero is a worth"))
}

/// The index while it is changed.
pub(super) struct Tables<'t> {
    meta: Table<'t, &'static str, u64>,
    rows: Table<'t, u64, &'static [u8]>,
    names: Table<'t, (u128, u64), ()>,
    worths: Table<'t, u64, (u64, u32, u64, u64, u128)>,
    order: Table<'t, (u64, u64), ()>,
    people: Table<'t, u128, (u64, u64)>,
    used: u64,
}

impl<'t> Tables<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, Error> {
        let meta = transaction.open_table(META)?;
        let used = meta.get("used")?.map_or(0, |used| used.value());
        Ok(Tables {
            meta,
            rows: transaction.open_table(ROWS)?,
            names: transaction.open_table(NAMES)?,
            worths: transaction.open_table(WORTHS)?,
            order: transaction.open_table(ORDER)?,
            people: transaction.open_table(PEOPLE)?,
            used,
        })
    }

    /// Sizes of all entries.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Writes an entry down.
    pub(super) fn insert(
        &mut self,
        id: u64,
        name: u128,
        row: &[u8],
        response: &Response,
        worth: Worth,
    ) -> Result<(), Error> {
        self.rows.insert(id, row)?;
        self.names.insert((name, id), ())?;
        self.weigh(id, name, response, worth)?;
        self.used += response.size.0;
        Ok(())
    }

    fn weigh(&mut self, id: u64, name: u128, response: &Response, worth: Worth) -> Result<(), Error> {
        let cost = u64::try_from(response.cost.as_micros()).unwrap_or(u64::MAX);
        self.worths.insert(id, (worth.to_bits(), response.uses, cost, response.size.0, name))?;
        self.order.insert((worth.to_bits(), id), ())?;
        Ok(())
    }

    /// Puts another row in place of an entry's. What it takes is not counted anew: heads change little.
    pub(super) fn renew(&mut self, id: u64, row: &[u8]) -> Result<(), Error> {
        self.rows.insert(id, row)?;
        Ok(())
    }

    /// The row of an entry.
    pub(super) fn row(&self, id: u64) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.rows.get(id)?.map(|row| row.value().to_vec()))
    }

    /// An entry has been used so many times more.
    pub(super) fn used_again(
        &mut self,
        id: u64,
        times: u32,
        worth: impl FnOnce(&Response) -> Worth,
    ) -> Result<(), Error> {
        let Some((old, uses, cost, size, name)) = self.worths.get(id)?.map(|entry| entry.value()) else {
            return Ok(());
        };
        self.order.remove((old, id))?;
        let response = Response {
            uses: uses.saturating_add(times),
            cost: Duration::from_micros(cost),
            size: Bytes(size),
        };
        self.weigh(id, name, &response, worth(&response))
    }

    /// Forgets an entry; gives its row.
    pub(super) fn remove(&mut self, id: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some((worth, _, _, size, name)) = self.worths.remove(id)?.map(|entry| entry.value()) else {
            return Ok(None);
        };
        self.order.remove((worth, id))?;
        self.names.remove((name, id))?;
        self.used = self.used.saturating_sub(size);
        Ok(self.rows.remove(id)?.map(|row| row.value().to_vec()))
    }

    /// What is worth the least.
    pub(super) fn least(&self) -> Result<Option<(Worth, u64)>, Error> {
        let first = self.order.first()?.map(|(place, _)| place.value());
        Ok(first.map(|(bits, id)| (worth_of(bits), id)))
    }

    /// Writes down how old everything is.
    pub(super) fn set_age(&mut self, age: Worth) -> Result<(), Error> {
        self.meta.insert("age", age.to_bits())?;
        Ok(())
    }

    /// Writes down the number of a user, seen now.
    pub(super) fn user(&mut self, name: u128, number: u64, now_s: u64) -> Result<(), Error> {
        self.people.insert(name, (number, now_s))?;
        if self.people.len()? > USERS as u64 {
            self.forget_users()?;
        }
        let next = self.meta.get("next_user")?.map_or(0, |next| next.value());
        self.meta.insert("next_user", next.max(number.saturating_add(1)))?;
        Ok(())
    }

    /// Forgets the users not seen for the longest, whose entries are nobody's from now on.
    fn forget_users(&mut self) -> Result<(), Error> {
        let Some(over) = self.people.len()?.checked_sub(USERS as u64 / 2) else { return Ok(()) };
        let mut seen = Vec::new();
        for user in self.people.iter()? {
            let (name, about) = user?;
            seen.push((about.value().1, name.value()));
        }
        seen.sort_unstable();
        for (_, name) in seen.into_iter().take(over as usize) {
            self.people.remove(name)?;
        }
        Ok(())
    }

    /// Forgets all entries.
    pub(super) fn clear(&mut self) -> Result<(), Error> {
        self.rows.retain(|_, _| false)?;
        self.names.retain(|_, ()| false)?;
        self.worths.retain(|_, _| false)?;
        self.order.retain(|_, ()| false)?;
        self.used = 0;
        Ok(())
    }
}
