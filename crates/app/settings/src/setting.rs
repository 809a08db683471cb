//! How each type of value is read from a file, written into the sample and compared with its range.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use farhop_congestion::Choice;
use farhop_consent::{Category, HostPattern};
use farhop_diffserv::classify::{Opening, Protocol};
use farhop_diffserv::{Codepoint, Service};
use farhop_orbit::Profile;
use farhop_squeeze::Policy;
use farhop_units::{BitRate, Bytes, format_duration, parse_duration};

use crate::choices::{CarrierKind, Direction, Fec, LogLevel, Role, Spreading};
use crate::kinds::{Cidr, HostPort, Hours, PeerName, Percent, PortRange, RuleName, TargetField, UserWeight};
use crate::raw::Raw;

/// A type that a setting can have.
pub trait Setting: Sized {
    /// How the reference names the type, with its unit.
    const KIND: &'static str;

    /// Reads the value.
    ///
    /// # Errors
    /// One clause that says what is wrong and how it is written.
    fn read(raw: &Raw) -> Result<Self, String>;

    /// The value as [`Setting::read`] reads it.
    fn show(&self) -> Raw;

    /// Whether the value lies between `low` and `high`, both included. Types without an order always do.
    ///
    /// # Errors
    /// A bound is not of this type: a mistake in the definition.
    fn within(&self, _low: &str, _high: &str) -> Result<bool, String> {
        Ok(true)
    }

    /// Makes a path relative to the folder of the file that names it; leaves everything else alone.
    fn settle(&mut self, _base: &Path) {}
}

fn wrong<T>(raw: &Raw, wanted: &str) -> Result<T, String> {
    Err(match raw {
        Raw::List(_) => format!("one value is wanted and not a list: {wanted}"),
        _ => format!("{raw} is not {wanted}"),
    })
}

macro_rules! ordered {
    () => {
        fn within(&self, low: &str, high: &str) -> Result<bool, String> {
            let low = Self::read(&Raw::from_argument(low))?;
            let high = Self::read(&Raw::from_argument(high))?;
            Ok(*self >= low && *self <= high)
        }
    };
}

/// Types that are written as text and know how to read themselves.
macro_rules! textual {
    ($($type:ty, $kind:literal, $wanted:literal;)*) => {$(
        impl Setting for $type {
            const KIND: &'static str = $kind;
            fn read(raw: &Raw) -> Result<Self, String> {
                let text = match raw {
                    Raw::Text(text) => text,
                    Raw::List(_) => return Err(format!("one text is wanted and not a list: {}", $wanted)),
                    _ => return wrong(raw, $wanted),
                };
                text.parse().map_err(|_| format!("{raw} is not {}", $wanted))
            }
            fn show(&self) -> Raw {
                Raw::Text(self.to_string())
            }
        }
    )*};
}

textual! {
    IpAddr, "address", "an address, write it like \"192.0.2.1\"";
    Hours, "hours of the day", "hours of the day in UTC, write them like \"22:00-06:00\"";
    SocketAddr, "address:port", "an address with a port, write it like \"127.0.0.1:3128\"";
    Cidr, "address range", "an address range, write it like \"192.0.2.0/24\"";
    HostPort, "host:port", "a host with a port, write it like \"ground.example:4433\"";
    UserWeight, "user=hundredths", "a user and a weight from 1 to 10000, write it like \"anna=200\"";
    TargetField, "field", "the name of a field for chosen caches, write it like \"CDN-Cache-Control\"";
    PeerName, "name", "a name of up to 64 letters, digits, '-', '_' or '.'";
    RuleName, "name", "a name of up to 64 letters, digits, '-', '_' or '.', with single blanks between words";
    Policy, "policy", "an image policy: \"identity\", \"gentle\", \"httpep\" or \"strong\"";
    farhop_squeeze::Signal, "load", "one of \"link\", \"cpu\"";
    farhop_squeeze::Users, "users", "one of \"all\", \"heavy\"";
    farhop_squeeze::Service, "what", "one of \"all\", \"asked\", \"unasked\"";
    HostPattern, "host pattern", "a host pattern, write it like \"example.org\", \".example.org\" (with all below), \"*.example.org\" (all below), \"*\" or, for an exception, \"!example.org\"";
    Category, "category", "one of \"banking\", \"health\", \"government\", \"app-stores\", \"updates\", \"messaging\", \"attestation\"";
    Fec, "when", "one of \"auto\", \"off\"";
    Codepoint, "codepoint", "a codepoint, write it like \"EF\", \"AF41\", \"CS1\", \"DE\", \"LE\" or \"46\"";
    Service, "service", "one of \"voice\", \"interactive\", \"web\", \"streaming\", \"bulk\", \"other\", \"background\"";
    farhop_diffserv::DropPrecedence, "drop precedence", "one of \"low\", \"medium\", \"high\"";
    farhop_diffserv::Patient, "kind", "one of \"streaming\", \"bulk\", \"updates\", \"backups\", \"peer-to-peer\"";
    Protocol, "protocol", "one of \"tcp\", \"udp\"";
    Opening, "opening", "one of \"tls\", \"http\", \"http-media\", \"ssh\", \"sip\", \"rtsp\", \"rtp\", \"stun\", \"quic\", \"bittorrent\", \"rsync\"";
    Direction, "direction", "one of \"return\", \"forward\"";
    CarrierKind, "carrier", "one of \"auto\", \"quic\", \"tcp\"";
    Spreading, "order", "one of \"round-robin\", \"priority\"";
    Role, "role", "one of \"transport\", \"application\", \"both\"";
    Choice, "controller", "a congestion controller: \"rate\", \"hybla\", \"bbr\", \"cubic\", \"newreno\", \"westwood\", \"vegas\" or \"bic\"";
    LogLevel, "level", "one of \"error\", \"warn\", \"info\", \"debug\", \"trace\"";
}

impl Setting for Profile {
    const KIND: &'static str = "link profile";
    fn read(raw: &Raw) -> Result<Self, String> {
        let Raw::Text(name) = raw else { return wrong(raw, "a link profile, write it like \"geo-hylas2\"") };
        Profile::named(name).map_err(|error| error.to_string())
    }
    fn show(&self) -> Raw {
        Raw::Text(self.name.clone())
    }
}

impl Setting for BitRate {
    const KIND: &'static str = "bit rate";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) => text.parse().map_err(|error: farhop_units::QuantityError| error.to_string()),
            _ => wrong(raw, "a bit rate, write it like \"8 Mbit/s\""),
        }
    }
    fn show(&self) -> Raw {
        Raw::Text(self.to_string())
    }
    ordered!();
}

impl Setting for Bytes {
    const KIND: &'static str = "size";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) => text.parse().map_err(|error: farhop_units::QuantityError| error.to_string()),
            _ => wrong(raw, "a size, write it like \"64 KB\""),
        }
    }
    fn show(&self) -> Raw {
        Raw::Text(self.to_string())
    }
    ordered!();
}

impl Setting for Percent {
    const KIND: &'static str = "share";
    fn read(raw: &Raw) -> Result<Self, String> {
        let Raw::Text(text) = raw else { return wrong(raw, "a share, write it like \"50 %\"") };
        text.parse().or_else(|()| wrong(raw, "a share, write it like \"50 %\""))
    }
    fn show(&self) -> Raw {
        Raw::Text(self.to_string())
    }
    ordered!();
}

impl Setting for Duration {
    const KIND: &'static str = "duration";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) => parse_duration(text).map_err(|error| error.to_string()),
            _ => wrong(raw, "a duration, write it like \"650 ms\""),
        }
    }
    fn show(&self) -> Raw {
        Raw::Text(format_duration(*self))
    }
    ordered!();
}

impl Setting for u32 {
    const KIND: &'static str = "whole number";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Integer(number) => {
                u32::try_from(*number).or_else(|_| wrong(raw, "a whole number from 0 up"))
            }
            _ => wrong(raw, "a whole number from 0 up"),
        }
    }
    fn show(&self) -> Raw {
        Raw::Integer(i64::from(*self))
    }
    ordered!();
}

impl Setting for bool {
    const KIND: &'static str = "true or false";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Flag(flag) => Ok(*flag),
            _ => wrong(raw, "true or false"),
        }
    }
    fn show(&self) -> Raw {
        Raw::Flag(*self)
    }
}

impl Setting for String {
    const KIND: &'static str = "text";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) => Ok(text.clone()),
            _ => wrong(raw, "a text in quotes"),
        }
    }
    fn show(&self) -> Raw {
        Raw::Text(self.clone())
    }
}

impl Setting for PathBuf {
    const KIND: &'static str = "path";
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) if !text.is_empty() => Ok(PathBuf::from(text)),
            _ => wrong(raw, "a path in quotes"),
        }
    }
    fn show(&self) -> Raw {
        Raw::Text(self.display().to_string())
    }
    fn settle(&mut self, base: &Path) {
        // An absolute path replaces the base, as `Path::join` promises.
        *self = base.join(&*self);
    }
}

impl Setting for PortRange {
    const KIND: &'static str = "port or range of ports";
    fn read(raw: &Raw) -> Result<Self, String> {
        let text = match raw {
            Raw::Text(text) => text.clone(),
            Raw::Integer(number) => number.to_string(),
            _ => return wrong(raw, "a port or a range, write it like 443 or \"8000-8999\""),
        };
        let form = "a port or a range, write it like 443 or \"8000-8999\"";
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Numbers are well written, and still none.
        let bounds = if text.split('-').map(str::trim).all(is_number) {
            ": ports go from 1 to 65535, the lower one first"
        } else {
            ""
        };
        text.parse().or_else(|()| wrong(raw, &format!("{form}{bounds}")))
    }
    fn show(&self) -> Raw {
        if self.first == self.last { Raw::Integer(self.first.into()) } else { Raw::Text(self.to_string()) }
    }
}

impl<T: Setting> Setting for Vec<T> {
    const KIND: &'static str = T::KIND;
    fn read(raw: &Raw) -> Result<Self, String> {
        raw.items().iter().map(T::read).collect()
    }
    fn show(&self) -> Raw {
        Raw::List(self.iter().map(Setting::show).collect())
    }
    fn settle(&mut self, base: &Path) {
        self.iter_mut().for_each(|value| value.settle(base));
    }
}

/// `"auto"` stands for "not given: derive it".
impl<T: Setting> Setting for Option<T> {
    const KIND: &'static str = T::KIND;
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) if text == "auto" => Ok(None),
            _ => T::read(raw).map(Some).map_err(|wrong| format!("{wrong}, or \"auto\"")),
        }
    }
    fn show(&self) -> Raw {
        self.as_ref().map_or_else(|| Raw::Text("auto".into()), Setting::show)
    }
    fn within(&self, low: &str, high: &str) -> Result<bool, String> {
        self.as_ref().map_or(Ok(true), |value| value.within(low, high))
    }
    fn settle(&mut self, base: &Path) {
        if let Some(value) = self {
            value.settle(base);
        }
    }
}
