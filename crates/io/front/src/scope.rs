//! The one origin that an intercepted connection speaks for: its requests are made absolute, those for another host
//! are refused. Pure.

use crate::h1::{Authority, Refusal, RequestHead, Scheme, Target};
use http::HeaderValue;
use http::header::HOST;
use http::uri::PathAndQuery;

/// The host and port that the client asked CONNECT for. What comes inside is HTTPS to them and to no one else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    authority: Authority,
    port: u16,
}

impl Scope {
    /// The origin `https://host:port`; IPv6 addresses in brackets, as [`Target::Authority`] has them.
    ///
    /// # Errors
    /// A host that is neither a name nor an address.
    pub fn new(host: &str, port: u16) -> Result<Scope, Refusal> {
        let authority = match port {
            443 => Authority::parse(host)?,
            _ => Authority::parse(&format!("{host}:{port}"))?,
        };
        Ok(Scope { authority, port })
    }

    /// Makes sure that a request is for this origin and makes its target absolute.
    ///
    /// # Errors
    /// The request is for another host, scheme or port (RFC 9110 §7.4), names none, or is a CONNECT.
    pub(crate) fn settle(&self, head: &mut RequestHead) -> Result<(), Refusal> {
        let path = match &head.target {
            Target::Authority { .. } => return Err(Refusal::ConnectWithin),
            // RFC 9112 §3.2.2: a server must accept absolute-form too.
            Target::Absolute { scheme, authority, path } => {
                if *scheme != Scheme::Https {
                    return Err(Refusal::Misdirected);
                }
                self.check(authority)?;
                path.clone()
            }
            Target::Origin(path) => {
                self.check_host(head)?;
                path.clone()
            }
            Target::Asterisk => {
                self.check_host(head)?;
                PathAndQuery::from_static("*")
            }
        };
        let host = HeaderValue::try_from(self.authority.to_string()).map_err(|_| Refusal::Authority)?;
        head.fields.insert(HOST, host);
        head.target = Target::Absolute { scheme: Scheme::Https, authority: self.authority.clone(), path };
        Ok(())
    }

    /// Compares the Host field. HTTP/1.0 may leave it out; the connection says it then.
    fn check_host(&self, head: &RequestHead) -> Result<(), Refusal> {
        let Some(host) = head.fields.get(HOST) else { return Ok(()) };
        self.check(&Authority::parse(host.to_str().map_err(|_| Refusal::Authority)?)?)
    }

    fn check(&self, authority: &Authority) -> Result<(), Refusal> {
        let same = authority.host() == self.authority.host()
            && authority.port_or_default(Scheme::Https) == self.port;
        if same { Ok(()) } else { Err(Refusal::Misdirected) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::HeadLimits;

    fn settled(scope: &Scope, request: &str) -> Result<String, Refusal> {
        let mut head = RequestHead::parse(request.as_bytes(), &HeadLimits::default())?;
        scope.settle(&mut head)?;
        let Target::Absolute { scheme, authority, path } = head.target else { unreachable!() };
        assert_eq!(head.fields[HOST], authority.to_string());
        Ok(format!("{}://{authority}{path}", scheme.as_str()))
    }

    #[test]
    fn requests_for_the_connections_host_become_absolute_and_others_are_refused() {
        let scope = Scope::new("a.example", 443).unwrap();
        for (request, result) in [
            ("GET /x?y HTTP/1.1\r\nHost: A.example\r\n\r\n", Ok("https://a.example/x?y")),
            ("GET /x HTTP/1.1\r\nHost: a.example:443\r\n\r\n", Ok("https://a.example/x")),
            ("GET https://a.example/x HTTP/1.1\r\nHost: b.example\r\n\r\n", Ok("https://a.example/x")),
            ("GET /x HTTP/1.0\r\n\r\n", Ok("https://a.example/x")),
            ("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", Ok("https://a.example*")),
            ("GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", Err(Refusal::Misdirected)),
            ("GET / HTTP/1.1\r\nHost: a.example:8443\r\n\r\n", Err(Refusal::Misdirected)),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", Err(Refusal::Authority)),
            ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", Err(Refusal::Misdirected)),
            ("GET https://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", Err(Refusal::Misdirected)),
            ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", Err(Refusal::ConnectWithin)),
        ] {
            assert_eq!(settled(&scope, request).as_deref(), result.as_ref().copied(), "{request:?}");
        }
    }

    #[test]
    fn other_ports_and_addresses_keep_theirs() {
        let scope = Scope::new("[2001:db8::1]", 8443).unwrap();
        let request = "GET / HTTP/1.1\r\nHost: [2001:DB8:0::1]:8443\r\n\r\n";
        assert_eq!(settled(&scope, request).unwrap(), "https://[2001:db8::1]:8443/");
        let portless = "GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n";
        assert_eq!(settled(&scope, portless), Err(Refusal::Misdirected));
    }
}
