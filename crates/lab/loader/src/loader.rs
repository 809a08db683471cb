//! Loads pages: the calls of the crate, and the course of one HTTP/1.x connection.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::ServerName;

use crate::body::Body;
use crate::connect::{BoxStream, Connect};
use crate::course::{Course, Origin};
use crate::graph::PageGraph;
use crate::h1::{Wire, request};
use crate::open::open;
use crate::result::Loaded;
use crate::settings::{Handshake, Persistence, Settings};
use crate::tls::{Sessions, TlsStream};

/// Why nothing can be loaded. What goes wrong within a load is a result.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// An origin cannot be met before the load, or gave no session to resume.
    #[error("{host} cannot be met before the load: {reason}")]
    Meeting {
        /// The origin.
        host: String,
        /// What happened.
        reason: String,
    },
}

/// Loads pages. Holds nothing from one load to the next but TLS sessions.
pub struct Loader {
    connector: Arc<dyn Connect>,
    sessions: Sessions,
}

impl Loader {
    /// Connects by `connector` and trusts `roots`.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(connector: Arc<dyn Connect>, roots: RootCertStore) -> Result<Loader, LoaderError> {
        Ok(Loader { connector, sessions: Sessions::new(roots)? })
    }

    /// The same sessions over other connections.
    #[must_use]
    pub fn over(&self, connector: Arc<dyn Connect>) -> Loader {
        Loader { connector, sessions: self.sessions.clone() }
    }

    /// Meets every origin of a page once, so that the next load has a session to resume at each, and the kernel a cookie for Fast
    /// Open. Does nothing where the settings want neither.
    ///
    /// # Errors
    /// An origin cannot be reached, or gives no ticket.
    pub async fn prime(&self, graph: &PageGraph, settings: &Settings) -> Result<(), LoaderError> {
        let resumes = matches!(settings.handshake, Handshake::Resumed | Handshake::ZeroRtt);
        let mut origins: Vec<Origin> = Vec::new();
        for origin in graph.objects.iter().map(|object| Origin::of(&object.url)) {
            if (settings.fast_open || resumes && origin.secure) && !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        let empty = Arc::new(PageGraph { objects: Vec::new() });
        let course = Course::new(empty, settings.clone(), self.connector.clone(), self.sessions.clone());
        for origin in origins {
            let failed = |reason| LoaderError::Meeting { host: origin.host.clone(), reason };
            let meeting = meet(&course, &origin, resumes && origin.secure);
            let meeting = tokio::time::timeout(settings.patience, meeting).await;
            meeting.unwrap_or_else(|_| Err("it does not answer in time".into())).map_err(failed)?;
        }
        Ok(())
    }

    /// Loads a page once, from its document on.
    pub async fn load(&self, graph: &Arc<PageGraph>, settings: &Settings) -> Loaded {
        let course =
            Course::new(graph.clone(), settings.clone(), self.connector.clone(), self.sessions.clone());
        if !graph.objects.is_empty() {
            course.want(0);
            let _ = tokio::time::timeout(settings.patience, course.finished.notified()).await;
        }
        course.finish()
    }
}

/// A connection for the sake of its cookie, and of its ticket where a session is resumed: nothing goes along with its first
/// flight.
async fn meet(course: &Arc<Course>, origin: &Origin, resumes: bool) -> Result<(), String> {
    let (host, port) = course.settings.proxy.clone().unwrap_or((origin.host.clone(), origin.port));
    let stream = course.connector.connect(&host, port, course.settings.socket_options()).await;
    let mut wire = Wire::new(stream.map_err(|error| error.to_string())?);
    if !resumes {
        return Ok(());
    }
    if course.settings.proxy.is_some() {
        wire.tunnel(&origin.host, origin.port).await?;
    }
    let name = ServerName::try_from(origin.host.clone()).map_err(|error| error.to_string())?;
    let config = course.sessions.config(course.settings.handshake, course.alpn());
    let tls = rustls::ClientConnection::new(config, name).map_err(|error| error.to_string())?;
    let meeting = async {
        let mut tls = TlsStream::connect(wire.stream, tls).await?;
        tls.ticket().await
    };
    meeting.await.map_err(|error| error.to_string())
}

/// One connection from its beginning to its end. It may have been begun for an object that another then took.
pub(crate) async fn work(course: Arc<Course>, origin: Origin, persistence: Persistence) {
    let (place, stream) = match open(&course, &origin).await {
        Ok(opened) => opened,
        Err(fault) => return course.unreachable(&origin, &fault),
    };
    let mut wire = Wire::new(stream);
    loop {
        let idle = async {
            match course.settings.idle {
                Some(idle) => tokio::time::sleep(idle).await,
                None => std::future::pending().await,
            }
        };
        let batch = tokio::select! {
            biased;
            batch = course.take(&origin, persistence.depth()) => batch,
            () = wire.ended() => break,
            () = idle => break,
        };
        let persists = exchange(&course, &origin, place, &mut wire, &batch, persistence).await;
        course.rest(&origin);
        if !persists {
            break;
        }
    }
    course.gone(&origin);
}

/// Asks for all of `batch` and reads the answers; whether the connection can be used again.
async fn exchange(
    course: &Arc<Course>,
    origin: &Origin,
    place: usize,
    wire: &mut Wire<BoxStream>,
    batch: &[usize],
    persistence: Persistence,
) -> bool {
    let persistent = persistence != Persistence::NonPersistent;
    let absolute = course.settings.proxy.is_some() && !origin.secure;
    let mut text = Vec::new();
    for object in batch {
        text.extend(request(&course.graph.objects[*object], persistent, absolute));
        course.asked(*object, place);
    }
    let written = wire.write(&text).await;
    let mut fault = written.err().map(|error| error.to_string());
    for (order, object) in batch.iter().enumerate() {
        if fault.is_none() {
            match answer(course, wire, *object).await {
                Ok(true) => continue,
                Ok(false) if order + 1 == batch.len() => return false,
                // RFC 9112 §9.3.2: requests that were not answered are sent anew.
                Ok(false) => {
                    fault = Some("the connection ended before its answer".into());
                    continue;
                }
                Err(why) => fault = Some(why),
            }
        }
        course.failed(*object, fault.as_deref().unwrap_or_default());
    }
    fault.is_none() && persistent
}

/// One answer; whether the connection persists.
async fn answer(course: &Arc<Course>, wire: &mut Wire<BoxStream>, object: usize) -> Result<bool, String> {
    let head = wire.head(|| course.begun(object)).await?;
    let mut body = Body::new(head.coding.as_deref())?;
    wire.body(head.framing, &mut body, |known| course.known(object, known)).await?;
    course.arrived(object, head.status, body);
    Ok(head.persists)
}
