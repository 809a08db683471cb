//! What traffic is for, and the queue that it waits in.

use std::fmt;
use std::str::FromStr;

use crate::dscp::{AfClass, Codepoint, DropPrecedence, Phb};

/// What traffic is for. Earlier ones go before later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// The media of calls.
    Voice,
    /// What someone waits for with each keystroke: remote shells, games, names, signalling of calls.
    Interactive,
    /// Pages.
    Web,
    /// Media with a play rate.
    Streaming,
    /// Downloads, uploads, mail.
    Bulk,
    /// Whatever no rule knows.
    Other,
    /// What nobody waits for: updates, backups, peer to peer.
    Background,
}

/// A queue of the link, one for each service. Earlier ones have what is left over before later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // RFC 3246, RFC 2597, RFC 2474 and RFC 8622 say what they are
pub enum Queue {
    Ef,
    Af4,
    Af3,
    Af2,
    Af1,
    De,
    Le,
}

impl Service {
    /// All of them, in their order.
    pub const ALL: [Service; 7] = [
        Service::Voice,
        Service::Interactive,
        Service::Web,
        Service::Streaming,
        Service::Bulk,
        Service::Other,
        Service::Background,
    ];

    /// The queue that it waits in.
    pub fn queue(self) -> Queue {
        Queue::ALL[self as usize]
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Service::Voice => "voice",
            Service::Interactive => "interactive",
            Service::Web => "web",
            Service::Streaming => "streaming",
            Service::Bulk => "bulk",
            Service::Other => "other",
            Service::Background => "background",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Service {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        Service::ALL.into_iter().find(|service| service.as_str() == text).ok_or(())
    }
}

impl Queue {
    /// All of them, in their order.
    pub const ALL: [Queue; 7] =
        [Queue::Ef, Queue::Af4, Queue::Af3, Queue::Af2, Queue::Af1, Queue::De, Queue::Le];

    /// What packets in it are marked with that a rule gave this drop precedence and that `came` marked so: of two precedences of the
    /// class the higher one, since who makes a mark can only lower his own chances by it (RFC 2597 §2). Classes that have none keep to
    /// their one mark.
    pub fn marked(self, precedence: DropPrecedence, came: Option<Codepoint>) -> Phb {
        match (self.phb(), came.map(Codepoint::phb)) {
            (Phb::Af(class, _), Some(Phb::Af(its, drop))) if its == class => {
                Phb::Af(class, drop.max(precedence))
            }
            (Phb::Af(class, _), _) => Phb::Af(class, precedence),
            (only, _) => only,
        }
    }

    /// Whether its packets have drop precedences.
    pub fn is_assured(self) -> bool {
        matches!(self.phb(), Phb::Af(..))
    }

    /// What packets in it are marked with, unless a rule or their own mark has another drop precedence: [`Queue::marked`].
    pub fn phb(self) -> Phb {
        match self {
            Queue::Ef => Phb::Ef,
            Queue::Af4 => Phb::Af(AfClass::Af4, DropPrecedence::Low),
            Queue::Af3 => Phb::Af(AfClass::Af3, DropPrecedence::Low),
            Queue::Af2 => Phb::Af(AfClass::Af2, DropPrecedence::Low),
            Queue::Af1 => Phb::Af(AfClass::Af1, DropPrecedence::Low),
            Queue::De => Phb::De,
            Queue::Le => Phb::Le,
        }
    }

    /// The queue for packets that ask for `phb`.
    pub fn of(phb: Phb) -> Queue {
        match phb {
            Phb::Ef => Queue::Ef,
            Phb::Af(AfClass::Af4, _) => Queue::Af4,
            Phb::Af(AfClass::Af3, _) => Queue::Af3,
            Phb::Af(AfClass::Af2, _) => Queue::Af2,
            Phb::Af(AfClass::Af1, _) => Queue::Af1,
            Phb::De => Queue::De,
            Phb::Le => Queue::Le,
        }
    }

    /// What it is for.
    pub fn service(self) -> Service {
        Service::ALL[self as usize]
    }

    /// Its place in the order, from 0.
    pub fn priority(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Queue::Ef => "EF",
            Queue::Af4 => "AF4",
            Queue::Af3 => "AF3",
            Queue::Af2 => "AF2",
            Queue::Af1 => "AF1",
            Queue::De => "DE",
            Queue::Le => "LE",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_a_queue_of_its_own_in_the_same_order() {
        for pair in Service::ALL.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].queue() < pair[1].queue());
        }
        for service in Service::ALL {
            assert_eq!(service.queue().service(), service);
            assert_eq!(service.to_string().parse(), Ok(service));
        }
        assert_eq!((Service::Voice.queue(), Service::Background.queue()), (Queue::Ef, Queue::Le));
    }

    #[test]
    fn of_two_drop_precedences_of_a_class_the_higher_one_counts() {
        use DropPrecedence::{High, Low, Medium};
        let marked = |queue: Queue, rule, came: &str| queue.marked(rule, came.parse().ok()).to_string();
        for (came, low, medium, high) in [
            ("", "AF41", "AF42", "AF43"),
            ("AF42", "AF42", "AF42", "AF43"),
            ("AF43", "AF43", "AF43", "AF43"),
            ("AF33", "AF41", "AF42", "AF43"),
            ("EF", "AF41", "AF42", "AF43"),
        ] {
            let got = [Low, Medium, High].map(|rule| marked(Queue::Af4, rule, came));
            assert_eq!(got, [low, medium, high], "came as '{came}'");
        }
        assert_eq!(
            (marked(Queue::Ef, High, "AF43"), marked(Queue::De, High, "EF")),
            ("EF".into(), "DE".into())
        );
        for drop in DropPrecedence::ALL {
            assert_eq!(drop.to_string().parse(), Ok(drop));
        }
    }

    #[test]
    fn all_drop_precedences_of_a_class_wait_in_one_queue() {
        // RFC 2597 §2: packets of a flow in one class are not reordered, whatever their drop precedence.
        for queue in Queue::ALL {
            assert_eq!(Queue::of(queue.phb()), queue);
        }
        for phb in Phb::all() {
            let queue = Queue::of(phb);
            assert!(phb == queue.phb() || matches!(phb, Phb::Af(..)), "{phb} in {queue}");
        }
    }
}
