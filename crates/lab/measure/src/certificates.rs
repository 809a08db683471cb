//! Origins with bad certificates, each presented by OpenSSL: Farhop has to answer with a page that names the reason, and no
//! byte of that origin may come through.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use farhop_compare::{Besides, Ends, Variant};
use farhop_orbit::Profile;
use farhop_testbed::{Place, Running, Testbed};
use farhop_workload::flawed::{Flaw, Flawed, PAGE};

use crate::group::Context;
use crate::live::{inside, scene};
use crate::visitor::{Visitor, first_line, on_this_thread};
use crate::{MeasureError, Row};

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let flawed = Flawed::make(folder.path()).map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let profile = Profile::named("none").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let besides = Besides {
        names: Flaw::ALL.map(Flaw::host).into(),
        roots: vec![flawed.authority()],
        crls: vec![flawed.revoked()],
        ..Besides::default()
    };
    let scene = scene(context, &profile, Vec::new(), besides)?;
    let mut servers = Vec::new();
    for flaw in Flaw::ALL {
        let address = scene.spec.names.get(&flaw.host()).copied();
        let address =
            address.ok_or_else(|| MeasureError::Unexpected(format!("{} has no address", flaw.host())))?;
        servers.push(serve(context, &scene.testbed, &flawed, flaw, (address, 443).into())?);
    }
    let ends = Ends::start(scene.stage(), Variant::Farhop)?;
    let own = scene.interception.as_ref().map(|own| own.certificate.clone()).unwrap_or_default();
    let visitor = Visitor::through(ends.proxy, &own).map_err(MeasureError::system("a CA's certificate"))?;
    let mut rows = Vec::new();
    for flaw in Flaw::ALL {
        let answer = inside(&scene, || on_this_thread(visitor.get(&flaw.host(), PAGE.0)));
        rows.push(judged(flaw, answer));
    }
    Ok(rows)
}

fn judged(flaw: Flaw, answer: Result<(String, Vec<u8>), MeasureError>) -> Row {
    let what = format!("certificate of {}", flaw.host());
    let (head, body) = match answer {
        Ok((head, body)) => (head, String::from_utf8_lossy(&body).into_owned()),
        Err(error) => return Row::judged(what, error.to_string(), "answered", false),
    };
    let status = first_line(&head).to_owned();
    let leaked = head.contains(PAGE.1) || body.contains(PAGE.1);
    match flaw.reason() {
        None => Row::judged(what, status, "its page", leaked),
        Some(reason) => {
            let token = head.to_ascii_lowercase().contains("tls_certificate_error");
            let said = said(&body).replace(&flaw.host(), "…");
            let named = said.contains(reason);
            let measured = if leaked { "ITS PAGE".into() } else { format!("{status}: {said}") };
            let pass = !leaked && token && named && status.starts_with("HTTP/1.1 502");
            Row::judged(what, measured, format!("502, '{reason}', no byte of it"), pass)
        }
    }
}

/// The first sentence of an error page.
fn said(page: &str) -> &str {
    let rest = page.split_once("<p>").map_or(page, |(_, rest)| rest);
    rest.split('<').next().unwrap_or_default()
}

/// Starts a server and waits until it listens.
fn serve(
    context: &Context,
    testbed: &Testbed,
    flawed: &Flawed,
    flaw: Flaw,
    listen: SocketAddr,
) -> Result<Running, MeasureError> {
    let mut command = flawed.server(flaw, listen);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = testbed.spawn_in(Place::Origins, command)?;
    for _ in 0..500 {
        let ended = matches!(server.try_wait(), Ok(Some(_)));
        let up = testbed.namespace(Place::Origins).run(|| std::net::TcpStream::connect(listen));
        if up.map_err(farhop_testbed::Error::from)?.is_ok() {
            return Ok(server);
        }
        if ended {
            break;
        }
        context.interrupt.sleep(Duration::from_millis(10))?;
    }
    Err(MeasureError::Unexpected(format!("openssl does not serve {} on {listen}", flaw.host())))
}
