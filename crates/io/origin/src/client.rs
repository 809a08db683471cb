//! Exchanges with origins: a connection of this user's, the request on it, and the response under watch.

use crate::connect::{Connector, Destination};
use crate::driven::Traffic;
use crate::error::Error;
use crate::guard::Guard;
use crate::open::{Offer, Opener};
use crate::pool::{Connection, Lent, Next, Opened, Opening, Partition, Pool};
use crate::replay::Allowance;
use crate::request::{Request, Scheme};
use crate::resolve::Resolve;
use crate::response::Response;
use crate::sending::{Failed, Sending};
use crate::settings::Settings;
use crate::tls::Trust;
use crate::websocket::{self, Upgraded};
use http::{HeaderMap, StatusCode, Version};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::{TcpSocket, TcpStream};

/// How often a request is tried in vain. An HTTP/2 connection that has answered others before it was told to go away was not in vain:
/// where an origin takes a few requests on each and many are under way, that happens to the last of them time and again.
const ATTEMPTS: usize = 8;

/// How often one is sent again of which nobody knows what the origin has done with it.
const REPEATS: usize = 2;

/// Fetches from origins. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    connector: Connector,
    opener: Opener,
    pool: Arc<Pool>,
    settings: Arc<Settings>,
    uploads: Allowance,
}

impl Client {
    /// A client that asks `resolver` for names, connects to what `guard` lets through, and judges certificates by
    /// `trust`.
    pub fn new(settings: Settings, guard: Guard, resolver: Arc<dyn Resolve>, trust: Trust) -> Client {
        let settings = Arc::new(settings);
        let connector = Connector::new(guard, resolver, settings.clone());
        let opener = Opener::new(connector.clone(), trust, settings.clone());
        let uploads = Allowance::new(settings.upload, settings.uploads);
        Client { connector, opener, pool: Pool::new(settings.clone()), settings, uploads }
    }

    /// A plain TCP connection for a tunnel, past the same guard.
    ///
    /// # Errors
    /// The name, the addresses or the connection; never anything about a request.
    pub async fn connect(&self, destination: &Destination) -> Result<TcpStream, Error> {
        self.connector.connect(destination).await
    }

    /// The same to the address that `destination` is, from a socket that is bound to the address `from`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), or the two addresses are not of one family.
    pub async fn connect_from(
        &self,
        socket: TcpSocket,
        from: IpAddr,
        destination: &Destination,
    ) -> Result<TcpStream, Error> {
        self.connector.connect_from(socket, from, destination).await
    }

    /// Opens a connection ahead of any request and leaves it to this user's next one: the name is resolved, the
    /// certificate judged. Does nothing if there is one already, or if too many wait unused.
    ///
    /// # Errors
    /// There can be no connection.
    pub async fn prepare(
        &self,
        partition: &Partition,
        scheme: Scheme,
        destination: &Destination,
    ) -> Result<(), Error> {
        let place = self.pool.place(partition, scheme, destination);
        let Some(reserved) = self.pool.reserve() else { return Ok(()) };
        let Some(opening) = place.prepare() else { return Ok(()) };
        match self.opener.open(scheme, destination, opening.offer()).await {
            Ok(opened) => {
                opening.kept(opened, reserved);
                Ok(())
            }
            Err(error) => {
                opening.failed(&error);
                Err(error)
            }
        }
    }

    /// Sends a request and waits for the head of the final response; informational heads go to `informational`, from
    /// another task. Redirects are responses like any other. Dropping the future gives the exchange up.
    ///
    /// A request whose method is idempotent is sent again when a connection that was kept, or that others share, ends without
    /// an answer (RFC 9110 §9.2.2, RFC 9112 §9.3.1) or with one that says that it was idle for too long (RFC 9110 §15.5.9). Any other goes on no HTTP/1 connection that was used before: the origin may
    /// be closing it at this moment, and nobody could tell. A request that an origin says not to have acted on is sent again
    /// whatever it is (RFC 9113 §8.7). Both as long as the body is kept ([`Settings::upload`]); nothing else is ever sent twice.
    ///
    /// # Errors
    /// Whatever keeps a whole, unambiguous response head from arriving.
    pub async fn fetch(
        &self,
        request: Request,
        informational: impl Fn(Version, StatusCode, HeaderMap) + Send + Sync + 'static,
    ) -> Result<Response, Error> {
        let (scheme, destination) = (request.scheme, request.destination.clone());
        let place = self.pool.place(&request.partition, scheme, &destination);
        let (is_login, spare) = (request.partition.is_single(), request.upload.spare(&self.uploads));
        let mut sending = Sending::new(request, Arc::new(informational), &self.settings)?.with(spare);
        // Whether to leave connections alone that were used before; but the only one is what somebody has logged in.
        let mut fresh = !sending.is_repeatable() && !is_login;
        let mut repeats = 0;
        let mut in_vain = 0;
        while in_vain < ATTEMPTS {
            in_vain += 1;
            let (connection, kept) = match place.next(fresh).await? {
                Next::Kept(connection) => (connection, true),
                Next::Open(opening) => (self.open(opening, scheme, &destination).await?, false),
            };
            let (sent, shared) = match connection {
                Connection::Http1(lent) => {
                    let again = kept && repeats < REPEATS && sending.is_repeatable();
                    (sending.over_http1(lent, again).await, None)
                }
                Connection::Http2(share) => {
                    let traffic = share.connection.traffic().clone();
                    (sending.over_http2(share).await, Some(traffic))
                }
            };
            if matches!(sent, Err(Failed::GoneAway | Failed::Unsent))
                && shared.as_ref().is_some_and(Traffic::has_answers)
            {
                in_vain = 0;
            }
            match sent {
                Ok(response) => return Ok(response),
                Err(Failed::For(error)) => return Err(error),
                Err(Failed::Unsent) => fresh = true,
                Err(Failed::Unanswered)
                    if (kept || shared.is_some()) && repeats < REPEATS && sending.is_repeatable() =>
                {
                    repeats += 1;
                    fresh = true;
                }
                Err(Failed::Unprocessed | Failed::GoneAway) => {}
                Err(Failed::WantsHttp1) => place.must_be_http1(),
                Err(Failed::Unanswered) => return Err(Error::Closed),
            }
            if !sending.renew() {
                return Err(Error::Closed);
            }
        }
        Err(Error::Closed)
    }

    /// Asks for a WebSocket (RFC 6455 §4.1) on a connection of its own, always in HTTP/1.1; in a partition that has a
    /// single connection on that, which is somebody's login. The fields of the request may have a `Sec-WebSocket-Key`;
    /// without one, as from an HTTP/2 client, one is made here.
    ///
    /// # Errors
    /// There is neither a WebSocket nor a whole response head that says why.
    pub async fn upgrade(&self, request: Request) -> Result<Upgraded, Error> {
        let (scheme, destination) = (request.scheme, request.destination.clone());
        let place =
            request.partition.is_single().then(|| self.pool.place(&request.partition, scheme, &destination));
        let connecting = async {
            let not_offered =
                || Err(Error::Malformed("the origin speaks HTTP/2 where it was not offered".into()));
            let connection = match place {
                None => match self.opener.open(scheme, &destination, &Offer::HTTP1).await? {
                    Opened::Http1(connection) => return Ok(Lent::alone(connection)),
                    Opened::Http2(_) => return not_offered(),
                },
                Some(place) => match place.next(false).await? {
                    Next::Kept(connection) => connection,
                    Next::Open(opening) => self.open(opening, scheme, &destination).await?,
                },
            };
            match connection {
                Connection::Http1(lent) => Ok(lent),
                Connection::Http2(_) => not_offered(),
            }
        };
        websocket::ask(request, &self.settings, connecting).await
    }

    /// Closes the connections of this partition: those in use once they are not any more. Who asks again gets others.
    pub fn leave(&self, partition: &Partition) {
        self.pool.leave(partition);
    }

    async fn open(
        &self,
        opening: Opening,
        scheme: Scheme,
        destination: &Destination,
    ) -> Result<Connection, Error> {
        match self.opener.open(scheme, destination, opening.offer()).await {
            Ok(opened) => Ok(opening.used(opened)),
            Err(error) => {
                opening.failed(&error);
                Err(error)
            }
        }
    }
}
