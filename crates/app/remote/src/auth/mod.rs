//! Who may use the proxy, where names and passwords are required (RFC 7617): asks for them, checks them, and remembers for a
//! while what it has checked, since a browser sends them with each request and a hash is made to be slow.
//!
//! ```text
//! request → credentials → known already? ────────────────────────────────→ user
//!                           └ no: one check at a time for each address,
//!                             after the wait that its failures earned → hash → user, or 407
//! ```

mod credentials;
mod identify;
mod known;
mod pace;
mod pass;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhop_events::{Bus, Event};
use farhop_settings::remote::AuthSettings;
use http::HeaderMap;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::passwords::{Account, Passwords, PasswordsError};
use credentials::Credentials;
use known::{Digest, Known};
use pace::Pace;

use credentials::challenge;
pub(crate) use identify::identify;
pub(crate) use pass::Pass;

/// Hashes that are computed at a time: the rest of the machine is for those who are in already.
const AT_ONCE: usize = 2;

/// The door.
pub(crate) struct Gate {
    /// `None` where nobody has to prove who they are.
    users: watch::Sender<Option<Arc<Passwords>>>,
    known: Mutex<Known>,
    pace: Mutex<Pace>,
    hashing: Semaphore,
    started: Instant,
    bus: Bus,
}

/// Whose a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Nobody has to prove who they are here.
    Open,
    /// This user's.
    As(Account),
    /// Nobody's: name and password are missing, unreadable or wrong.
    Refused(Refused),
}

/// Why a request is nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It has no name and password, as a browser's first.
    Missing,
    /// What it has cannot be read.
    Unreadable,
    /// They are not right.
    Wrong,
}

impl Refused {
    /// In words, for the page.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Refused::Missing => "this proxy asks for a name and a password",
            Refused::Unreadable => {
                "the Proxy-Authorization field cannot be read; it has to be one field of the Basic scheme"
            }
            Refused::Wrong => "the name or the password for this proxy is not right",
        }
    }
}

impl Gate {
    /// A door by these settings.
    ///
    /// # Errors
    /// The file of names is needed and cannot be read, or a line of it is damaged.
    pub(crate) fn open(settings: &AuthSettings, bus: Bus) -> Result<Gate, PasswordsError> {
        let mut key = [0; 32];
        SystemRandom::new().fill(&mut key).map_err(|_| PasswordsError::Random)?;
        Ok(Gate {
            users: watch::Sender::new(read(settings)?),
            known: Mutex::new(Known::new(key)),
            pace: Mutex::default(),
            hashing: Semaphore::new(AT_ONCE),
            started: Instant::now(),
            bus,
        })
    }

    /// Takes new settings, and reads the file anew. Everyone has to prove again who they are, and who could not any more is
    /// told by [`withdrawn`](Self::withdrawn).
    ///
    /// # Errors
    /// As [`Gate::open`]; everything stays as it was then.
    pub(crate) fn reload(&self, settings: &AuthSettings) -> Result<(), PasswordsError> {
        let users = read(settings)?;
        self.users.send_replace(users);
        self.known().clear();
        self.pace().forget_what_was_wrong();
        Ok(())
    }

    /// Whose a request with these fields from `address` is. Takes as long as a hash where that is not known yet, and
    /// longer after failures.
    pub(crate) async fn admit(&self, address: IpAddr, fields: &HeaderMap) -> Admission {
        let Some(users) = self.users.borrow().clone() else {
            return Admission::Open;
        };
        let credentials = match Credentials::read(fields) {
            Ok(Some(credentials)) => credentials,
            Ok(None) => return Admission::Refused(Refused::Missing),
            Err(credentials::Unreadable) => return Admission::Refused(Refused::Unreadable),
        };
        let digest = self.known().digest(&credentials);
        if let Some(account) = self.known().find(&digest, self.started.elapsed()) {
            return Admission::As(account);
        }
        self.check(address.to_canonical(), &users, credentials, digest).await
    }

    /// Resolves when who came in by `pass` could not do so any more: the users were read anew without them, or with another
    /// password of theirs.
    pub(crate) async fn withdrawn(&self, pass: &Pass) {
        // The sender lives as long as this.
        let _ = self.users.subscribe().wait_for(|users| !pass.is_good(users.as_deref())).await;
    }

    /// One check at a time for each address: guesses wait for each other, and for nobody else.
    async fn check(
        &self,
        address: IpAddr,
        users: &Arc<Passwords>,
        credentials: Credentials,
        digest: Digest,
    ) -> Admission {
        let turn = self.pace().turn(address);
        let _turn = turn.lock().await;
        // Another request of the same page may have been checked meanwhile.
        if let Some(account) = self.known().find(&digest, self.started.elapsed()) {
            return Admission::As(account);
        }
        // The same mistake again tells nobody anything new.
        if self.pace().is_refused(address, &digest) {
            return Admission::Refused(Refused::Wrong);
        }
        let not_before = self.pace().not_before(address);
        tokio::time::sleep_until(self.started + not_before).await;
        let Ok(_permit) = self.hashing.acquire().await else { return Admission::Refused(Refused::Wrong) };
        let checking = Arc::clone(users);
        let checked = tokio::task::spawn_blocking(move || {
            let account = checking.verify(&credentials.name, credentials.password.as_bytes());
            (account, credentials)
        });
        let Ok((account, credentials)) = checked.await else { return Admission::Refused(Refused::Wrong) };
        let now = self.started.elapsed();
        if let Some(account) = account {
            self.pace().succeeded(address, &turn);
            let mut known = self.known();
            if self.are_current(users) {
                known.keep(digest, account.clone(), now);
            }
            return Admission::As(account);
        }
        let failures = {
            let mut pace = self.pace();
            let wrong = self.are_current(users).then_some(digest);
            pace.failed(address, wrong, now)
        };
        self.bus.emit(Event::LoginRefused {
            address: address.to_string(),
            user: users.contains(&credentials.name).then_some(credentials.name),
            failures,
        });
        Admission::Refused(Refused::Wrong)
    }

    /// Whether these users were not read anew meanwhile: what was right or wrong by others is not worth remembering. To be
    /// asked while what is remembered is locked, so that a reload clears it later.
    fn are_current(&self, users: &Arc<Passwords>) -> bool {
        let current = self.users.borrow();
        current.as_ref().is_some_and(|current| Arc::ptr_eq(current, users))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(settings: &AuthSettings) -> Result<Option<Arc<Passwords>>, PasswordsError> {
    if !settings.required {
        return Ok(None);
    }
    let file: &Path = &settings.file;
    Ok(Some(Arc::new(Passwords::load(file)?)))
}
