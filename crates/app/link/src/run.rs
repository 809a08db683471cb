//! The manager at work: the classes kept in force, media of calls named to the kernel, callers answered.

use std::fmt::Display;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use farhop_control::{Server, Socket};
use farhop_events::Event;
use farhop_netdev::Error;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::device::Device;
use crate::manager::{Given, LinkError, Manager};
use crate::{early, follow, granted, rest, sip};

/// How often it is looked whether the device is there.
const LOOK: Duration = Duration::from_secs(1);
/// Every so many looks it is seen whether all that is ours still stands, which takes three programs to be run.
const LOOKS: u32 = 10;

/// Puts the classes into force and answers callers, over HTTP on `rest`, until `stop` is ready. What is in force stays so.
///
/// # Errors
/// The classes cannot be put into force at the start. What happens to the device later is told and waited for.
pub async fn run<D: Device>(
    manager: Arc<Manager>,
    device: Arc<D>,
    socket: Socket,
    rest: Option<Socket>,
    stop: impl Future<Output = ()>,
) -> Result<(), LinkError> {
    manager.set_time(device.time_of_day());
    apply(&manager, &device, None).await?;
    tokio::select! {
        () = server(&manager).serve(socket) => {}
        () = keep(&manager, &device) => {}
        () = name_media(&manager, &device) => {}
        () = lapse(&manager) => {}
        () = sip::follow(&manager, &device) => {}
        () = follow::follow(&manager, &device) => {}
        () = granted::hear(&manager, &device) => {}
        () = granted::follow(&manager, &device) => {}
        () = early::keep_short(&manager, &device) => {}
        () = async { match rest { Some(rest) => rest::serve(&manager, rest).await, None => pending().await } } => {}
        () = stop => {}
    }
    Ok(())
}

fn server(manager: &Arc<Manager>) -> Server {
    let of = |work: fn(&Manager, Value) -> Result<Value, String>| {
        let manager = Arc::clone(manager);
        move |args| {
            let done = work(&manager, args);
            async move { done }
        }
    };
    let told = |work: fn(&Manager) -> Result<Value, String>| {
        let manager = Arc::clone(manager);
        move || {
            let done = work(&manager);
            async move { done }
        }
    };
    Server::new(manager.bus().clone())
        .command_with(
            "new_voice_call",
            "sets a rate aside for a call, or says why not",
            &["call", "codec", "packet_time", "rate", "media"],
            of(Manager::new_call),
        )
        .command_with("voice_call_release", "gives a call's rate back", &["call"], of(Manager::release))
        .command_with(
            "voice_call_renew",
            "speaks for a call, whose lease begins anew",
            &["call"],
            of(Manager::renew),
        )
        .command_with(
            "capacity_granted",
            "what the network control centre grants from now on",
            &["rate", "lasts"],
            of(Manager::capacity_granted),
        )
        .command("calls", "the calls that hold a rate", told(|manager| written(&manager.calls())))
        .command(
            "status",
            "the device, its rates, and what calls hold",
            told(|manager| written(&manager.status())),
        )
}

fn written(value: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// Calls that nobody speaks for go when their lease is over, also while nobody asks.
async fn lapse(manager: &Manager) {
    loop {
        let changed = manager.leases_changed.notified();
        match manager.lapse() {
            Some(until) => {
                tokio::select! {
                    () = sleep_until(until) => {}
                    () = changed => {}
                }
            }
            None => changed.await,
        }
    }
}

/// Tells the kernel where packets of calls go, whenever that has changed.
async fn name_media<D: Device>(manager: &Arc<Manager>, device: &Arc<D>) {
    loop {
        manager.media_changed.notified().await;
        let mut given = manager.given.lock().await;
        // What is not in force is put there whole, media and all.
        let Some(given) = given.as_mut().filter(|_| manager.trouble.borrow().is_none()) else { continue };
        let media = manager.media();
        if media == given.shaping.media {
            continue;
        }
        let (shaping, named) = (given.shaping.clone(), media.clone());
        match blocking(device, move |device| device.set_media(&shaping, &named)).await {
            Ok(rules) => (given.shaping.media, given.applied.rules) = (media, rules),
            Err(error) => in_trouble(manager, &error),
        }
    }
}

/// Puts the classes back where the device comes anew or somebody has taken them away; what others have put in their place is
/// left alone.
async fn keep<D: Device>(manager: &Arc<Manager>, device: &Arc<D>) {
    let mut looks = 0;
    let mut next = Instant::now();
    loop {
        next += LOOK;
        sleep_until(next).await;
        looks = (looks + 1) % LOOKS;
        let interface = manager.interface().to_owned();
        // What it changes stays to be done where it cannot be now: then there is a trouble.
        let is_another_hour = manager.set_time(device.time_of_day());
        if !device.is_there(&interface) {
            in_trouble(manager, &Error::NoInterface { interface });
        } else if manager.trouble.borrow().is_some() {
            // Not each second where it is refused each time.
            if looks % 2 == 0 || is_another_hour {
                let _ = apply(manager, device, None).await;
            }
        } else if is_another_hour {
            let _ = apply(manager, device, None).await;
        } else if looks == 0 {
            match changed(manager, device).await {
                Ok(None) => {}
                Ok(what) => {
                    let _ = apply(manager, device, what).await;
                }
                Err(error) => in_trouble(manager, &error),
            }
        }
    }
}

/// What somebody else has changed of what the kernel was given last.
async fn changed<D: Device>(manager: &Arc<Manager>, device: &Arc<D>) -> Result<Option<&'static str>, Error> {
    let given = manager.given.lock().await;
    let Some(Given { shaping, applied }) = &*given else { return Ok(None) };
    let (shaping, applied) = (shaping.clone(), applied.clone());
    blocking(device, move |device| device.changed(&shaping, &applied)).await
}

/// Puts all of it into force. What others had `changed` of it is told when it is put back.
async fn apply<D: Device>(
    manager: &Arc<Manager>,
    device: &Arc<D>,
    changed: Option<&'static str>,
) -> Result<(), LinkError> {
    let mut given = manager.given.lock().await;
    let shaped = manager.shaped().inspect_err(|error| in_trouble(manager, error))?;
    let shaping = shaped.shaping.clone();
    match blocking(device, move |device| device.apply(&shaping)).await {
        Ok(applied) => {
            let leaf = applied.kind.as_str().to_owned();
            *given = Some(Given { shaping: shaped.shaping, applied });
            manager.trouble.send_replace(None);
            let interface = manager.interface().to_owned();
            if let Some(what) = changed {
                let reason = format!("somebody has taken away or changed {what}; put back");
                manager.bus().emit(Event::LinkLost { interface: interface.clone(), reason });
            }
            manager.bus().emit(Event::LinkInForce { interface, shaped_bps: shaped.plan.shaped.0, leaf });
            Ok(())
        }
        Err(error) => {
            in_trouble(manager, &error);
            Err(error.into())
        }
    }
}

/// Tells a trouble once, for as long as it is the same.
pub(crate) fn in_trouble(manager: &Manager, error: &impl Display) {
    let reason = error.to_string();
    let is_new = manager.trouble.send_if_modified(|trouble| {
        let is_new = trouble.as_ref() != Some(&reason);
        *trouble = Some(reason.clone());
        is_new
    });
    if is_new {
        manager.bus().emit(Event::LinkLost { interface: manager.interface().to_owned(), reason });
    }
}

pub(crate) async fn blocking<D: Device, T: Send + 'static>(
    device: &Arc<D>,
    work: impl FnOnce(&D) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let device = Arc::clone(device);
    match tokio::task::spawn_blocking(move || work(&device)).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is ending; nobody looks at this any more.
            Err(error) => Err(Error::Helper(error.to_string())),
        },
    }
}
