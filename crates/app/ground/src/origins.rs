//! Ground's way to origins: `farhop-origin`'s client under the settings in force, its errors told and turned into what
//! crosses the hop. Nothing else of this crate touches that client.

mod body;

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use farhop_events::{Bus, Event, ExchangeId};
use farhop_htotp::frame::Failure;
use farhop_htotp::head::CLIENT_CONNECTION;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_origin::{
    Cidr, Client, Destination, Error, Guard, Partition, Request, Scheme, Settings, SystemResolver, Trust,
    TrustError, UpgradedStream, Upload, Ways,
};
use farhop_settings::GroundSettings;
use farhop_tuning::{Parameters, Told};
use http::header::{CACHE_CONTROL, SET_COOKIE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use url::{Host, Url};

use crate::dictated::Dictated;
use crate::error::GroundError;
use crate::failure;
use crate::head::{received, towards_origin};
use crate::names::Names;
use crate::owner::Owner;
use crate::stock::{self, Former, Stock};

pub(crate) use body::{OriginBody, OriginPart};

/// See the module.
pub(crate) struct Origins {
    client: RwLock<Client>,
    guard: RwLock<Guard>,
    resolver: Arc<SystemResolver>,
    /// The last that could be read.
    trust: RwLock<Trust>,
    /// What is known of the ways that answers take.
    ways: Ways,
    dictated: Arc<Dictated>,
    stock: Option<Stock>,
    /// Fields for chosen caches that are obeyed (RFC 9213).
    targets: RwLock<Vec<HeaderName>>,
    bus: Bus,
}

/// How long an origin may be silent before its answer, or within it, where nobody has asked. Who asks meanwhile asks anew when
/// this is over, and may wait for as long as settings say.
const UNASKED: Duration = Duration::from_secs(60);
/// How long the head of an answer that is coded with a dictionary waits for the first of its content, by which it shows whether it
/// can be undone.
const FIRST_UNDONE: Duration = Duration::from_secs(1);

/// A request for an origin.
pub(crate) struct Asked<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) exchange: ExchangeId,
    pub(crate) head: &'a RequestHead,
    /// The version of HTTP in which the remote has received it.
    pub(crate) version: Version,
    pub(crate) upload: Upload,
    /// Where 1xx responses go, whose number is bounded; without, nobody has asked for it.
    pub(crate) informed: Option<mpsc::UnboundedSender<Informed>>,
}

/// A 1xx response.
pub(crate) struct Informed {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
}

/// A response whose body is still to come.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: OriginBody,
    /// What was held of it here and is not right any more.
    pub(crate) former: Option<Former>,
}

/// Fields that own their bytes. As they come they are views of what was read from the connection at once, all of which
/// would be kept with what is remembered of a page.
fn detached(mut fields: HeaderMap) -> HeaderMap {
    for value in fields.values_mut() {
        // What was valid stays so.
        if let Ok(own) = HeaderValue::from_bytes(value.as_bytes()) {
            *value = own;
        }
    }
    fields
}

/// What came of asking for a WebSocket.
#[expect(clippy::large_enum_variant, reason = "each is moved once, to whoever carries it")]
pub(crate) enum Upgraded {
    /// The origin agreed; with its end-to-end fields.
    Switched { fields: HeaderMap, stream: UpgradedStream },
    /// It did not.
    Answered(Response),
}

/// There is no response to a request.
struct Unanswered {
    failure: Failure,
    /// Of a dictionary that was offered; nothing of it was given out.
    is_misuse: bool,
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Unanswered { failure, is_misuse: false }
    }
}

impl Origins {
    /// Whether datagrams may go there.
    ///
    /// # Errors
    /// They may not.
    pub(crate) fn may_reach(&self, exchange: ExchangeId, to: SocketAddr) -> Result<(), Failure> {
        let guard = self.guard.read().unwrap_or_else(PoisonError::into_inner);
        guard.check(to.ip()).map_err(|refusal| {
            let (host, address) = (to.ip().to_string(), to.ip());
            self.told(exchange, &Error::Refused { host, address, refusal })
        })
    }

    /// The name servers of this system.
    pub(crate) fn name_servers(&self) -> Vec<IpAddr> {
        self.resolver.name_servers()
    }

    /// Under these settings, with the system's name resolution.
    ///
    /// # Errors
    /// Name resolution cannot be set up, or a file of roots or revocations can't be used.
    pub(crate) fn new(settings: &GroundSettings, bus: Bus) -> Result<Self, GroundError> {
        let resolver = SystemResolver::new().map_err(|error| GroundError::Resolver(error.to_string()))?;
        let resolver = Arc::new(resolver);
        let trust = trust(settings)?;
        let ways = Ways::default();
        let client = RwLock::new(client(settings, &resolver, trust.clone(), &ways));
        let guard = RwLock::new(guard(settings));
        let dictated = Arc::new(Dictated::new(settings.origin.dictionaries.0));
        let stock = Stock::open(&settings.store, bus.clone())?;
        let (trust, targets) = (RwLock::new(trust), RwLock::new(targets(settings)));
        Ok(Origins { client, guard, resolver, trust, ways, dictated, stock, targets, bus })
    }

    /// Lets origins send as far ahead as a carrier of these sizes makes it worth while. The quickest so far counts.
    pub(crate) fn fit(&self, sizes: &Parameters) {
        self.ways.carry(sizes.sending);
    }

    /// For `status`: dictionaries that origins have named.
    pub(crate) fn dictated(&self) -> serde_json::Value {
        self.dictated.status()
    }

    /// So many carriers bring requests at the moment.
    pub(crate) fn serve(&self, carriers: usize) {
        self.ways.serve(carriers);
    }

    /// Adds what is measured of the ways to origins, and what follows.
    pub(crate) fn tell(&self, settings: &GroundSettings, told: &mut Told) {
        let trips = self.ways.trips();
        told.measured = told.measured.with_origins(&trips);
        told.decided.extend(trips.towards_origins(settings.origin.connect));
    }

    /// Puts new settings into force, and reads anew whom to trust. Connections of before end with what they carry.
    ///
    /// # Errors
    /// Whom to trust can't be read: that stays as it was, the rest is in force.
    pub(crate) fn set(&self, settings: &GroundSettings) -> Result<(), TrustError> {
        let mut trusted = self.trust.write().unwrap_or_else(PoisonError::into_inner);
        let read = trust(settings).map(|trust| *trusted = trust);
        self.dictated.set(settings.origin.dictionaries.0);
        self.stock.iter().for_each(|stock| stock.set(&settings.store));
        *self.targets.write().unwrap_or_else(PoisonError::into_inner) = targets(settings);
        let client = client(settings, &self.resolver, trusted.clone(), &self.ways);
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
        *self.guard.write().unwrap_or_else(PoisonError::into_inner) = guard(settings);
        read
    }

    /// What is kept on disk, if anything is.
    pub(crate) fn stock(&self) -> Option<&Stock> {
        self.stock.as_ref()
    }

    /// Answers a request with what is kept here, or asks the origin. Dropping the future gives it up.
    ///
    /// # Errors
    /// There is no response.
    pub(crate) async fn fetch(&self, asked: Asked<'_>) -> Result<Response, Failure> {
        match &self.stock {
            Some(stock) => stock::fetch(self, stock, asked).await,
            None => self.ask(asked).await,
        }
    }

    /// Sends a request and waits for the head of its response. Dropping the future gives it up. An origin that misuses a dictionary
    /// which its client never spoke of is asked once more without a word of it.
    ///
    /// # Errors
    /// There is no response.
    pub(crate) async fn ask(&self, asked: Asked<'_>) -> Result<Response, Failure> {
        let again = asked.upload.is_empty().then(|| asked.with(asked.head));
        match (self.ask_once(asked, true).await, again) {
            (Err(Unanswered { is_misuse: true, .. }), Some(again)) => self.ask_once(again, false).await,
            (answer, _) => answer,
        }
        .map_err(|unanswered| unanswered.failure)
    }

    async fn ask_once(&self, asked: Asked<'_>, offers: bool) -> Result<Response, Unanswered> {
        let mut request = request(asked.owner, asked.exchange, asked.head, asked.version, asked.upload)?;
        let said = match offers {
            true => self.dictated.offer(asked.owner, asked.head, &mut request.fields),
            false => Dictated::offer_nothing(asked.head, &mut request.fields),
        };
        let informed = asked.informed;
        let unasked = informed.is_none();
        if unasked {
            request.patience = Some(UNASKED);
            // What was logged in is for who asks on that connection.
            request.partition = partition(asked.owner);
        }
        let inform = move |version, status, mut fields: HeaderMap| {
            if let Some(informed) = &informed {
                received(version, &mut fields);
                // Fails only when nobody asks any more.
                let _ = informed.send(Informed { status, fields });
            }
        };
        let response =
            self.client().fetch(request, inform).await.map_err(|error| self.told(asked.exchange, &error))?;
        let Response { status, fields, mut body, former } = self.taken(response);
        let mut head = ResponseHead { status, fields };
        // What it sets would be lost, and a second request would go without it.
        let is_misuse = !head.fields.contains_key(SET_COOKIE);
        let undoing = self
            .dictated
            .undo(said, asked.head, &mut head)
            .map_err(|error| Unanswered { failure: failure::coding(&error), is_misuse })?;
        body.undoing = undoing.map(|undoing| (undoing, Arc::clone(&self.dictated)));
        body.strict = unasked;
        // An origin that is slow with the first of it may still fail, as it may with any body.
        if let Ok(Err(failure)) = timeout(FIRST_UNDONE, body.begin()).await {
            return Err(Unanswered { failure, is_misuse });
        }
        self.dictated.confirm(asked.owner, asked.head, &head);
        body.keeping = self.dictated.keep(asked.owner, asked.head, &head);
        Ok(Response { status, fields: head.fields, body, former })
    }

    /// Asks for a WebSocket, on a connection of its own.
    ///
    /// # Errors
    /// There is neither that nor a response.
    pub(crate) async fn upgrade(
        &self,
        owner: &Owner,
        exchange: ExchangeId,
        head: &RequestHead,
        version: Version,
    ) -> Result<Upgraded, Failure> {
        let request = request(owner, exchange, head, version, Upload::empty())?;
        match self.client().upgrade(request).await.map_err(|error| self.told(exchange, &error))? {
            farhop_origin::Upgraded::Switched { mut fields, stream } => {
                received(Version::HTTP_11, &mut fields);
                Ok(Upgraded::Switched { fields, stream })
            }
            farhop_origin::Upgraded::Answered(response) => Ok(Upgraded::Answered(self.taken(*response))),
        }
    }

    /// A response as it comes, in which is taken down what it says to caches and is obeyed.
    fn taken(&self, response: farhop_origin::Response) -> Response {
        let mut fields = detached(response.fields);
        received(response.version, &mut fields);
        let targets = self.targets.read().unwrap_or_else(PoisonError::into_inner);
        farhop_freshness::obey(&mut fields, if response.unsealed { &[] } else { &targets });
        if response.unsealed {
            // RFC 9112 §9.8, RFC 9111 §3.3: it may turn out to be cut off, and then nobody may keep it, whatever it says to whom.
            fields.append(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        Response { status: response.status, fields, body: response.body.into(), former: None }
    }

    /// Connects, and judges the certificate, ahead of a user's first request. What fails is told when that comes.
    pub(crate) async fn prepare(&self, owner: &Owner, scheme: &str, host: &str, port: u16) {
        let Ok(scheme) = Scheme::from_str(scheme) else { return };
        let prepared = self.client().prepare(&partition(owner), scheme, &Destination::new(host, port)).await;
        if let Err(error) = prepared {
            tracing::debug!("{host}:{port} cannot be prepared: {error}");
        }
    }

    /// The user's client has ended a connection, and with it what was logged in on it.
    pub(crate) fn leave(&self, owner: &Owner, connection: &str) {
        self.client().leave(&login(owner, connection.as_bytes()));
    }

    /// Whether `url` names an address that will be refused; of names that is known when they are looked up.
    pub(crate) fn refuses(&self, url: &Url) -> bool {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            _ => return false,
        };
        self.guard.read().unwrap_or_else(PoisonError::into_inner).check(address).is_err()
    }

    /// A TCP connection for a tunnel.
    ///
    /// # Errors
    /// There is none.
    pub(crate) async fn connect(
        &self,
        exchange: ExchangeId,
        host: &str,
        port: u16,
    ) -> Result<TcpStream, Failure> {
        let connected = self.client().connect(&Destination::new(host, port)).await;
        connected.map_err(|error| self.told(exchange, &error))
    }

    /// A TCP connection for a tunnel, in the name of a client.
    ///
    /// # Errors
    /// There is none.
    pub(crate) async fn connect_as(
        &self,
        exchange: ExchangeId,
        names: &Names,
        client: IpAddr,
        host: &str,
        port: u16,
    ) -> Result<TcpStream, Failure> {
        let socket = names.socket(client).await;
        let socket = socket
            .map_err(|error| failure::internal(&format!("no connection in the name of {client}: {error}")))?;
        let connected = self.client().connect_from(socket, client, &Destination::new(host, port)).await;
        connected.map_err(|error| self.told(exchange, &error))
    }

    /// A TCP connection that nobody has asked for yet; what fails is told when somebody does.
    pub(crate) async fn connect_ahead(&self, host: &str, port: u16) -> Option<TcpStream> {
        self.client().connect(&Destination::new(host, port)).await.ok()
    }

    fn client(&self) -> Client {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn told(&self, exchange: ExchangeId, error: &Error) -> Failure {
        if let Error::Refused { host, address, refusal } = error {
            let (host, address, why) = (host.clone(), address.to_string(), refusal.to_string());
            self.bus.emit(Event::DestinationRefused { exchange, host, address, why });
        }
        failure::origin(error)
    }
}

/// Whose connections those of a user are.
fn partition(owner: &Owner) -> Partition {
    Partition::new(owner.to_string())
}

/// Whose those are that a connection of the user's client has logged in.
fn login(owner: &Owner, connection: &[u8]) -> Partition {
    Partition::single(format!("{owner}/{}", connection.escape_ascii()))
}

/// The same for a request. What may log in the connection that it is sent on shares that with nothing but what comes
/// by the same connection of the user's client.
fn partition_for(owner: &Owner, exchange: ExchangeId, head: &RequestHead) -> Partition {
    match head.fields.get(CLIENT_CONNECTION) {
        Some(connection) => login(owner, connection.as_bytes()),
        None if head.logs_in_connection() => Partition::single(format!("{owner}//{exchange}")),
        None => partition(owner),
    }
}

fn request(
    owner: &Owner,
    exchange: ExchangeId,
    head: &RequestHead,
    version: Version,
    upload: Upload,
) -> Result<Request, Failure> {
    let path = PathAndQuery::from_str(&head.path)
        .map_err(|_| failure::bad_request(400, "the request target has characters that no URL has"))?;
    let scheme = Scheme::from_str(&head.scheme).map_err(|error| failure::origin(&error))?;
    let destination = Destination::of_url(&head.scheme, &head.authority);
    // What a certificate vouches for needs no such word.
    let destination = match head.sent_to() {
        Some(address) if scheme == Scheme::Http => destination.map(|destination| destination.or_at(address)),
        _ => destination,
    };
    Ok(Request {
        partition: partition_for(owner, exchange, head),
        scheme,
        method: head.method.clone(),
        destination: destination.map_err(|error| failure::origin(&error))?,
        path,
        fields: towards_origin(&head.fields, version),
        upload,
        patience: None,
    })
}

/// The fields for chosen caches that these settings have obeyed.
fn targets(settings: &GroundSettings) -> Vec<HeaderName> {
    // Such names are all names of fields.
    settings.origin.targets.iter().filter_map(|name| HeaderName::from_str(name.as_str()).ok()).collect()
}

/// Whom these settings, and the system, trust.
fn trust(settings: &GroundSettings) -> Result<Trust, TrustError> {
    Trust::system(&settings.origin.roots, &settings.origin.crls)
}

fn client(settings: &GroundSettings, resolver: &Arc<SystemResolver>, trust: Trust, ways: &Ways) -> Client {
    let origin = &settings.origin;
    let limits = Settings {
        connections: origin.connections as usize,
        queue_timeout: origin.queue,
        connect_timeout: origin.connect,
        first_byte_timeout: origin.first_byte,
        body_timeout: origin.stall,
        idle_timeout: origin.keep,
        kept: origin.keep_most.map(|most| most as usize),
        head: origin.head,
        fields: origin.fields as usize,
        ways: ways.clone(),
        ..Settings::default()
    };
    Client::new(limits, guard(settings), Arc::clone(resolver) as _, trust)
}

fn guard(settings: &GroundSettings) -> Guard {
    // Both crates read the same notation; a range of one cannot be lost on the way to the other.
    let allowed = settings.allow.iter().filter_map(|range| Cidr::from_str(&range.to_string()).ok()).collect();
    Guard::new(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_that_the_settings_take_is_one_for_the_guard() {
        for text in ["127.0.0.0/8", "10.1.2.3", "0.0.0.0/0", "::/0", "fd00::/8", "::1"] {
            let range: farhop_settings::Cidr = text.parse().unwrap();
            assert!(Cidr::from_str(&range.to_string()).is_ok(), "{text}");
        }
    }
    #[test]
    fn files_that_say_whom_to_trust_stand_beside_the_settings_and_must_be_readable() {
        let text = "origin.roots = ['missing.pem']\n[[remote]]\nname = 'ship'\nkeys = ['key']\n";
        let settings = farhop_settings::parse(text, "/nowhere/ground.toml".as_ref(), &[]).unwrap();
        let line = GroundError::from(trust(&settings).err().unwrap()).to_string();
        assert!(line.starts_with("[origin]: /nowhere/missing.pem can't be read: "), "{line}");
    }
}
