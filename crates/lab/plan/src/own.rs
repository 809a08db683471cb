//! Servers of the lab's own beside its origins, for what stock ones do not do: pushes of a share of a page, and 0-RTT. Each
//! variant that wants one has one for each page, at an address and by a DNS name of its own.

use std::collections::HashMap;
use std::net::{IpAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use farhop_compare::Scene;
use farhop_loader::PageGraph;
use farhop_loader::server::{Content, serve_plain, serve_tls, tls};
use farhop_testbed::Place;
use farhop_workload::origins::media::media_type;
use farhop_workload::pages::Page;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::error::PlanError;
use crate::plan::{Plan, VariantSpec};

/// Running servers; they end when dropped.
pub(crate) struct OwnServers {
    /// What signs for them: to be trusted by the loader.
    pub(crate) certificate: CertificateDer<'static>,
    _runtime: tokio::runtime::Runtime,
}

/// The DNS name of the server that a variant has for a host.
fn name(variant: usize, host: &str) -> String {
    format!("own-{variant}.{host}")
}

/// Every host of a plan with every variant that has servers of its own.
fn wanted<'a>(plan: &'a Plan, pages: &'a [Page]) -> impl Iterator<Item = (usize, usize, &'a str)> {
    let variants = plan.variants.iter().enumerate().filter(|(_, variant)| variant.own);
    variants.flat_map(move |(variant, _)| {
        let hosts = pages.iter().enumerate().filter_map(|(page, it)| Some((page, it.sites.first()?)));
        hosts.map(move |(page, site)| (variant, page, site.host.as_str()))
    })
}

/// The names that the scene has to give an address each.
pub(crate) fn names(plan: &Plan, pages: &[Page]) -> Vec<String> {
    wanted(plan, pages).map(|(variant, _, host)| name(variant, host)).collect()
}

/// What a variant looks up instead of each host.
pub(crate) fn aliases(plan: &Plan, variant: &VariantSpec, pages: &[Page]) -> HashMap<String, String> {
    let own = |place: &usize| plan.variants[*place].name == variant.name;
    let of_variant = wanted(plan, pages).filter(|(place, ..)| own(place));
    of_variant.map(|(variant, _, host)| (host.to_owned(), name(variant, host))).collect()
}

impl OwnServers {
    /// Starts them at the scene's origins; none where the plan wants none.
    ///
    /// # Errors
    /// A folder cannot be read, or a port not be had.
    pub(crate) fn start(
        plan: &Plan,
        pages: &[Page],
        graphs: &[[Arc<PageGraph>; 2]],
        scene: &Scene,
    ) -> Result<Option<OwnServers>, PlanError> {
        let all: Vec<_> = wanted(plan, pages).collect();
        if all.is_empty() {
            return Ok(None);
        }
        let hosts = all.iter().map(|(_, _, host)| (*host).to_owned()).collect::<Vec<_>>();
        let made = rcgen::generate_simple_self_signed(hosts);
        let made = made.map_err(|error| PlanError::file("a certificate")(std::io::Error::other(error)))?;
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = tls(vec![certificate.clone()], key.into());
        let config = config.map_err(|error| PlanError::file("TLS")(std::io::Error::other(error)))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(PlanError::file("the servers' runtime"))?;
        for (variant, page, host) in all {
            let name = name(variant, host);
            let Some(address) = scene.spec.names.get(&name) else { continue };
            let share = plan.variants[variant].push.unwrap_or(0.0);
            let content = Arc::new(content(&pages[page], &graphs[page][1], share)?);
            // Sessions of its own: a ticket is for the server that gave it.
            let config = Arc::new(config.clone());
            serve(scene, &runtime, *address, &content, &config).map_err(PlanError::file(name))?;
        }
        Ok(Some(OwnServers { certificate, _runtime: runtime }))
    }
}

fn serve(
    scene: &Scene,
    runtime: &tokio::runtime::Runtime,
    address: IpAddr,
    content: &Arc<Content>,
    config: &Arc<ServerConfig>,
) -> std::io::Result<()> {
    for port in [80, 443] {
        let listen = || {
            let listener = TcpListener::bind((address, port))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listening = scene.testbed.namespace(Place::Origins).run(listen);
        let listener: std::io::Result<TcpListener> = listening.map_err(std::io::Error::other)?;
        let _inside = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener?)?;
        let (content, config) = (content.clone(), config.clone());
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true); // only a socket that is gone already refuses
                let (content, config) = (content.clone(), config.clone());
                // A client that leaves is no error.
                if port == 443 {
                    tokio::spawn(async move { serve_tls(stream, content, config).await });
                } else {
                    tokio::spawn(async move { serve_plain(stream, content, false).await });
                }
            }
        });
    }
    Ok(())
}

/// The files of a page's first folder, and what its document pushes.
fn content(page: &Page, graph: &PageGraph, share: f64) -> Result<Content, PlanError> {
    let mut content = Content::default();
    let Some(site) = page.sites.first() else { return Ok(content) };
    for object in graph.objects.iter().filter(|object| object.url.host_str() == Some(site.host.as_str())) {
        let path = object.url.path();
        let place = if path.ends_with('/') { format!("{path}index.html") } else { path.to_owned() };
        let file = site.folder.join(place.trim_start_matches('/'));
        let bytes = std::fs::read(&file).map_err(PlanError::file(&file))?;
        content.files.insert(path.to_owned(), (Bytes::from(bytes), media_of(&file)));
    }
    let named = graph.objects.first().map(|document| document.names.as_slice()).unwrap_or_default();
    let named: Vec<String> = named
        .iter()
        .map(|named| graph.objects[named.object].url.path().to_owned())
        .filter(|path| content.files.contains_key(path))
        .collect();
    content.push_share(&page.entry, &named, share);
    Ok(content)
}

fn media_of(file: &Path) -> &'static str {
    media_type(&file.to_string_lossy())
}
