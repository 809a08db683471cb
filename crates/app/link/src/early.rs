//! Keeps the queues of overloaded classes short by dropping what has a higher drop precedence before it waits (RFC 2597). What is
//! counted at the device goes to `core/diffserv`, which judges, and what it says to the device again.

use std::sync::Arc;
use std::time::Duration;

use farhop_diffserv::{Counted, Early, Losses, Queue};
use farhop_netdev::{Crowd, Error, Losing};
use farhop_units::Bytes;
use tokio::time::{Instant, sleep};

use crate::device::Device;
use crate::manager::Manager;
use crate::run::blocking;
use crate::shaping::minor;

/// While something has a higher drop precedence: a third of what a plain queue holds, and a sixth of a round trip by satellite.
const PACE: Duration = Duration::from_millis(100);
/// While nothing has: two programs are run each time.
const IDLE: Duration = Duration::from_secs(1);
/// What holds is said again so often: the device forgets it after three.
const AGAIN: Duration = Duration::from_secs(1);
/// A change by fewer hundredths is not worth running a program for.
const WORTH: u8 = 3;

/// A class that has drop precedences.
struct Class {
    queue: Queue,
    early: Early,
    /// What came with a higher one so far.
    higher: [u64; 2],
    said: Losses,
}

/// For as long as the manager runs; never ends.
pub(crate) async fn keep_short<D: Device>(manager: &Arc<Manager>, device: &Arc<D>) {
    let began = Instant::now();
    let class =
        |queue: Queue| Class { queue, early: Early::default(), higher: [0; 2], said: Losses::default() };
    let mut classes: Vec<Class> = Queue::ALL.into_iter().filter(|it| it.is_assured()).map(class).collect();
    let mut said_at = began;
    loop {
        let mut is_busy = false;
        // What is not in force has nothing to be said of.
        if manager.trouble.borrow().is_none() {
            match round(manager, device, &mut classes, began, &mut said_at).await {
                // Whoever keeps all of it in force sees that too, and tells it with all that is put back.
                Err(Error::NoRules { .. }) => {}
                done => {
                    is_busy = *done.as_ref().unwrap_or(&false);
                    manager.set_early_trouble(done.err().map(|error| error.to_string()));
                }
            }
        }
        sleep(if is_busy { PACE } else { IDLE }).await;
    }
}

/// Counts, judges, and says what is new or would be forgotten. Whether anything of a higher drop precedence has come, or is being lost.
async fn round<D: Device>(
    manager: &Arc<Manager>,
    device: &Arc<D>,
    classes: &mut [Class],
    began: Instant,
    said_at: &mut Instant,
) -> Result<bool, Error> {
    let crowds = look(manager, device).await?;
    let is_busy = judge(manager, classes, began.elapsed(), &crowds);
    let is_due = said_at.elapsed() >= AGAIN && classes.iter().any(|class| class.said.are_any());
    if is_due || classes.iter().any(Class::is_worth_it) {
        say(manager, device, classes).await?;
        *said_at = Instant::now();
    }
    Ok(is_busy)
}

async fn look<D: Device>(manager: &Arc<Manager>, device: &Arc<D>) -> Result<Vec<Crowd>, Error> {
    let interface = manager.interface().to_owned();
    blocking(device, move |device| device.crowds(&interface)).await
}

/// Whether anything of a higher drop precedence has come, or is being lost.
fn judge(manager: &Manager, classes: &mut [Class], now: Duration, crowds: &[Crowd]) -> bool {
    let Ok(shaped) = manager.shaped() else { return false };
    let mut is_busy = false;
    for class in classes {
        let Some(crowd) = crowds.iter().find(|crowd| crowd.minor == minor(class.queue)) else { continue };
        let [medium, high] = crowd.higher.map(Bytes);
        let counted = Counted { left: Bytes(crowd.left), waiting: Bytes(crowd.waiting), medium, high };
        let losses = class.early.handle(now, shaped.plan.of(class.queue).guaranteed, counted);
        is_busy |= crowd.higher != class.higher || losses.are_any();
        class.higher = crowd.higher;
    }
    is_busy
}

impl Class {
    fn is_worth_it(&self) -> bool {
        let now = self.early.losses();
        let differ = |before: u8, now: u8| {
            // All and nothing are meant.
            before.abs_diff(now) >= WORTH || (before != now && matches!(now, 0 | 100))
        };
        differ(self.said.medium, now.medium) || differ(self.said.high, now.high)
    }
}

async fn say<D: Device>(manager: &Arc<Manager>, device: &Arc<D>, classes: &mut [Class]) -> Result<(), Error> {
    let losing: Vec<Losing> = classes
        .iter()
        .map(|class| {
            let Losses { medium, high } = class.early.losses();
            Losing { minor: minor(class.queue), higher: [medium, high] }
        })
        .collect();
    // Whoever puts all of it into force anew is waited for.
    let given = manager.given.lock().await;
    blocking(device, move |device| device.set_losing(&losing)).await?;
    drop(given);
    for class in &mut *classes {
        class.said = class.early.losses();
    }
    let are_any = classes.iter().filter(|class| class.said.are_any());
    manager.set_losing(are_any.map(|class| (class.queue, class.said)).collect());
    Ok(())
}
