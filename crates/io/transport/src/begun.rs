//! Handshakes that ground has begun and that are not over at its end. At the remote's they are over half a round trip earlier:
//! what it said on a carrier that was lost in between never came, and ground can say so. It knows what the carrier would have been
//! called as soon as it has answered the first packet, and sees to it that the handshake is never over from then on.
//!
//! ```text
//! begun ──► over              the carrier's name is known to whoever serves it
//!   └─────► never to be over  it failed, or ground has said that nothing came
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn::VarInt;
use ring::digest::{self, digest};
use ring::hkdf;
use rustls::KeyLog;

use crate::connection::{Name, quic_name};

/// More handshakes than are begun at a time. Of one that was displaced by others nothing is said.
const MOST: usize = 2048;

/// See the module. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Begun(Arc<Mutex<VecDeque<Entry>>>);

/// A handshake by what its carrier would be called.
#[derive(Debug)]
struct Entry {
    name: Name,
    fate: Arc<Mutex<Fate>>,
}

/// What has become of a handshake.
#[derive(Debug)]
enum Fate {
    /// It is under way, over QUIC with what to end it by.
    Begun(Option<quinn::Connection>),
    /// It is over: what came on it is not known here.
    Over,
    /// It will never be over.
    Never,
}

impl Begun {
    /// Whether nothing that was said on the carrier of this name came here, nor ever will. A handshake that is under way ends
    /// with that.
    pub fn never_came(&self, name: u64) -> bool {
        let found = lock(&self.0)
            .iter()
            .find(|entry| entry.name.number() == name)
            .map(|entry| Arc::clone(&entry.fate));
        let Some(fate) = found else { return false };
        let mut fate = lock(&fate);
        *fate = match std::mem::replace(&mut *fate, Fate::Never) {
            Fate::Begun(Some(connection)) => {
                connection.close(VarInt::from_u32(0), b"the remote goes on elsewhere");
                // Nothing is read off it any more. Something may have been if its handshake was over a moment ago: before, QUIC
                // reads nothing but what may be said twice (RFC 9001 §5.7, §9.2).
                if quic_name(&connection).is_none() { Fate::Never } else { Fate::Over }
            }
            Fate::Begun(None) | Fate::Never => Fate::Never,
            Fate::Over => Fate::Over,
        };
        matches!(*fate, Fate::Never)
    }

    /// A handshake that is about to begin.
    pub(crate) fn handshake(&self) -> Handshake {
        Handshake { begun: self.clone(), fate: Arc::new(Mutex::new(Fate::Begun(None))) }
    }

    fn enter(&self, name: Name, fate: Arc<Mutex<Fate>>) {
        let mut begun = lock(&self.0);
        begun.push_back(Entry { name, fate });
        if begun.len() > MOST {
            begun.pop_front();
        }
    }
}

/// A handshake while it is under way. Dropped, it will never be over: its connection must be given to nobody then.
#[derive(Debug)]
pub(crate) struct Handshake {
    begun: Begun,
    fate: Arc<Mutex<Fate>>,
}

impl Handshake {
    /// For TLS, which tells by it what the carrier will be called.
    pub(crate) fn key_log(&self) -> Arc<dyn KeyLog> {
        Arc::new(Naming { begun: self.begun.clone(), fate: Arc::clone(&self.fate) })
    }

    /// By this connection it can be ended.
    pub(crate) fn on(&self, connection: &quinn::Connection) {
        let mut fate = lock(&self.fate);
        match &mut *fate {
            Fate::Begun(known) => *known = Some(connection.clone()),
            Fate::Never => connection.close(VarInt::from_u32(0), b"the remote goes on elsewhere"),
            Fate::Over => {}
        }
    }

    /// It is over at this end, if it may still be; else the connection is to be given to nobody.
    #[must_use]
    pub(crate) fn over(self) -> bool {
        let mut fate = lock(&self.fate);
        if matches!(*fate, Fate::Begun(_)) {
            *fate = Fate::Over;
        }
        matches!(*fate, Fate::Over)
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut fate = lock(&self.fate);
        if matches!(*fate, Fate::Begun(_)) {
            *fate = Fate::Never;
        }
        if matches!(*fate, Fate::Over) {
            lock(&self.begun.0).retain(|entry| !Arc::ptr_eq(&entry.fate, &self.fate));
        }
    }
}

/// Takes the name out of TLS: the secret from which it is exported is there with ground's own part of the handshake.
#[derive(Debug)]
struct Naming {
    begun: Begun,
    fate: Arc<Mutex<Fate>>,
}

const EXPORTER_SECRET: &str = "EXPORTER_SECRET";

impl KeyLog for Naming {
    fn will_log(&self, label: &str) -> bool {
        label == EXPORTER_SECRET
    }

    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        if label == EXPORTER_SECRET
            && let Some(name) = name(secret)
        {
            self.begun.enter(name, Arc::clone(&self.fate));
        }
    }
}

/// RFC 8446 §7.5, with no context.
fn name(exporter_secret: &[u8]) -> Option<Name> {
    let (algorithm, hash) = match exporter_secret.len() {
        32 => (hkdf::HKDF_SHA256, &digest::SHA256),
        48 => (hkdf::HKDF_SHA384, &digest::SHA384),
        _ => return None,
    };
    let nothing = digest(hash, b"");
    let mut secret = vec![0; exporter_secret.len()];
    expand(
        &hkdf::Prk::new_less_safe(algorithm, exporter_secret),
        Name::LABEL,
        nothing.as_ref(),
        &mut secret,
    )?;
    let mut drawn = [0; 8];
    expand(&hkdf::Prk::new_less_safe(algorithm, &secret), b"exporter", nothing.as_ref(), &mut drawn)?;
    Some(Name::from(drawn))
}

/// HKDF-Expand-Label (RFC 8446 §7.1).
fn expand(secret: &hkdf::Prk, label: &[u8], context: &[u8], out: &mut [u8]) -> Option<()> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    const PREFIX: &[u8] = b"tls13 ";
    let length = u16::try_from(out.len()).ok()?.to_be_bytes();
    let label_length = [u8::try_from(PREFIX.len() + label.len()).ok()?];
    let context_length = [u8::try_from(context.len()).ok()?];
    let info = [&length[..], &label_length, PREFIX, label, &context_length, context];
    secret.expand(&info, Length(out.len())).ok()?.fill(out).ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::tls::{self, Seen};
    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, ServerConnection};

    /// A handshake in memory, over at the client's end and not at the server's; what the client calls the connection.
    fn half_over(handshake: &Handshake) -> (u64, ServerConnection) {
        let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
        let client = tls::client(&remote, |_| true, &Seen::default()).unwrap();
        let mut server = tls::server(&ground, |_| true, &Seen::default()).unwrap();
        server.key_log = handshake.key_log();
        let name = ServerName::try_from("farhop").unwrap();
        let mut near = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut far = ServerConnection::new(Arc::new(server)).unwrap();
        let (mut up, mut down) = (Vec::new(), Vec::new());
        near.write_tls(&mut up).unwrap();
        far.read_tls(&mut up.as_slice()).unwrap();
        far.process_new_packets().unwrap();
        while far.wants_write() {
            far.write_tls(&mut down).unwrap();
        }
        near.read_tls(&mut down.as_slice()).unwrap();
        near.process_new_packets().unwrap();
        assert!(!near.is_handshaking() && far.is_handshaking());
        let drawn = near.export_keying_material([0; 8], Name::LABEL, None).unwrap();
        (Name::from(drawn).number(), far)
    }

    #[test]
    fn what_was_said_after_half_a_handshake_never_came_and_never_will() {
        let begun = Begun::default();
        let handshake = begun.handshake();
        let (name, _far) = half_over(&handshake);
        assert!(!begun.never_came(name + 1), "of others nothing is known");
        assert!(begun.never_came(name) && begun.never_came(name));
        assert!(!handshake.over(), "its last part was late");
        assert!(begun.never_came(name));
    }

    #[test]
    fn a_handshake_that_has_failed_is_never_over_and_of_one_that_is_nothing_is_said() {
        let begun = Begun::default();
        let (failed, well) = (begun.handshake(), begun.handshake());
        let (first, second) = (half_over(&failed).0, half_over(&well).0);
        drop(failed);
        assert!(well.over());
        assert!(begun.never_came(first) && !begun.never_came(second));
    }

    #[test]
    fn the_oldest_are_displaced() {
        let begun = Begun::default();
        let handshakes: Vec<Handshake> = (0..=MOST).map(|_| begun.handshake()).collect();
        for (number, handshake) in handshakes.iter().enumerate() {
            begun.enter(Name::from((4 * number as u64).to_be_bytes()), Arc::clone(&handshake.fate));
        }
        assert!(!begun.never_came(0) && begun.never_came(1) && begun.never_came(MOST as u64));
    }
}
