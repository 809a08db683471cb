//! What a run measures: the links, under which conditions, what is downloaded and how, how often. Pure.

use farhop_orbit::Profile;
use farhop_units::Bytes;

use crate::route::Route;
use crate::workload::Workload;

/// What a run measures: everything crossed with everything.
pub struct Plan {
    /// The links.
    pub links: Vec<Profile>,
    /// Forward queues, as multiples of the profile's own.
    pub queues: Vec<f64>,
    /// Shares of packets lost at random, each way. Without loss comes first, whether it was asked for or not: what the limit is
    /// counted from is measured there.
    pub losses: Vec<f64>,
    /// What is downloaded.
    pub workloads: Vec<&'static Workload>,
    /// How.
    pub routes: Vec<&'static Route>,
    /// How often each.
    pub runs: u32,
}

/// One queue with one loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weather {
    /// As a multiple of the profile's own.
    pub(crate) queue: f64,
    /// Each way.
    pub(crate) loss: f64,
}

impl Plan {
    /// Every combination of queue and loss, lossless ones first.
    pub(crate) fn weathers(&self) -> Vec<Weather> {
        let mut losses = vec![0.0];
        for loss in &self.losses {
            if !losses.contains(loss) {
                losses.push(*loss);
            }
        }
        losses
            .iter()
            .flat_map(|loss| self.queues.iter().map(|queue| Weather { queue: *queue, loss: *loss }))
            .collect()
    }

    /// Downloads in all, if every route is present.
    pub fn loads(&self) -> usize {
        let each = self.workloads.len() * self.routes.len() * self.runs as usize;
        self.links.len() * self.weathers().len() * each
    }
}

impl Weather {
    /// The queue on a link.
    pub(crate) fn queue_on(self, link: &Profile) -> Bytes {
        let queue = (link.forward.queue.0 as f64 * self.queue).round() as u64;
        Bytes(queue).max(Profile::SMALLEST_QUEUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::ROUTES;
    use crate::workload::WORKLOADS;

    fn plan(queues: &[f64], losses: &[f64]) -> Plan {
        Plan {
            links: vec![Profile::named("geo-hylas2").unwrap()],
            queues: queues.into(),
            losses: losses.into(),
            workloads: vec![&WORKLOADS[0]],
            routes: vec![Route::named(ROUTES[0].name).unwrap()],
            runs: 3,
        }
    }

    #[test]
    fn lossless_weather_comes_first_and_once() {
        let loss = |plan: Plan| plan.weathers().iter().map(|weather| weather.loss).collect::<Vec<_>>();
        assert_eq!(loss(plan(&[1.0], &[0.03, 0.0, 0.03])), [0.0, 0.03]);
        assert_eq!(loss(plan(&[1.0, 0.5], &[0.01])), [0.0, 0.0, 0.01, 0.01]);
        assert_eq!(plan(&[1.0, 0.5], &[0.01]).loads(), 12);
    }

    #[test]
    fn no_queue_is_shorter_than_the_shortest_that_a_link_may_have() {
        let link = Profile::named("geo-hylas2").unwrap();
        assert_eq!(Weather { queue: 0.25, loss: 0.0 }.queue_on(&link), Bytes(150_000));
        assert_eq!(Weather { queue: 0.01, loss: 0.0 }.queue_on(&link), Profile::SMALLEST_QUEUE);
    }
}
