//! From the forms of a file to the satellite: what it is like, what is said over that, and what does not go together.

use farhop_units::{BitRate, Bytes};
use serde_spanned::Spanned;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::quantity::{Said, Share};
use super::{Open, Wrong, form};
use crate::{
    Adaptation, Bursts, CoDel, Discipline, Fade, Handovers, Leg, Loss, Modcod, Outage, Policer, Profile,
    Reordering, Schedule, Steps, Supply, Trace, Way, Wifi,
};

/// The satellite; `name` is its name unless the file has one.
pub(super) fn profile(form: form::Satellite, name: &str, open: &mut Open<'_>) -> Result<Profile, Wrong> {
    let mut profile = match &form.like {
        Some(like) => Profile::named(like.get_ref()).map_err(|error| wrong(like.span(), error))?,
        None => Profile { name: String::new(), forward: Leg::transparent(), return_: Leg::transparent() },
    };
    profile.name = form.name.clone().unwrap_or_else(|| name.to_owned());
    for (said, way) in [(&form.forward, Way::Forward), (&form.return_, Way::Return)] {
        let leg = profile.leg_mut(way);
        match said {
            Some(said) => apply(said, leg, way, open)?,
            None if form.like.is_none() => {
                return Err(wrong(0..0, format!("there is no [{way}], nor a 'like' that has it; add one")));
            }
            None => {}
        }
        leg.schedule = schedule(&form, way, &leg.schedule)?;
    }
    // What depends on the round trip, now that both ways are known.
    for (said, way) in [(form.forward, Way::Forward), (form.return_, Way::Return)] {
        let Some(said) = said.map(Spanned::into_inner) else { continue };
        if let (Way::Forward, Some(table)) = (way, &said.on_demand) {
            let reason =
                "capacity on demand is the return link's, whose terminals ask for it: [return.on_demand]";
            return Err(wrong(table.span(), reason));
        }
        let discipline = said.codel.map(|codel| codel_of(&codel, &profile, way)).transpose()?;
        let shared = said.on_demand.map(|table| {
            table
                .get_ref()
                .build(&profile)
                .map_err(|error| wrong(table.span(), format!("on_demand: {error}")))
        });
        let leg = profile.leg_mut(way);
        leg.discipline = discipline.unwrap_or(leg.discipline);
        if let Some(shared) = shared.transpose()? {
            leg.supply = Supply::OnDemand(Arc::new(shared));
        }
    }
    Ok(profile)
}

fn wrong(at: Range<usize>, reason: impl ToString) -> Wrong {
    Wrong { at: at.start, reason: reason.to_string() }
}

/// Says over `leg` what the table says.
fn apply(said: &Spanned<form::Leg>, leg: &mut Leg, way: Way, open: &mut Open<'_>) -> Result<(), Wrong> {
    let (table, at) = (said.get_ref(), said.span());
    let inherited = (leg.delay, leg.rate);
    leg.delay = table.delay.map_or(leg.delay, |delay| delay.0);
    supply(table, &at, leg, open)?;
    match &table.queue {
        Some(queue) => leg.queue = queue.get_ref().0,
        // As the presets have it: what is under way in a round trip, and a window at least.
        None if (leg.delay, leg.rate) != inherited => {
            let product = leg.rate.map_or(Bytes(0), |rate| rate.bytes_in(2 * leg.delay));
            leg.queue = product.max(Profile::SMALLEST_QUEUE);
        }
        None => {}
    }
    if let Some(queue) = table.queue.as_ref().filter(|queue| queue.get_ref().0 < Bytes(1500)) {
        return Err(wrong(queue.span(), "a queue of less than 1500 B drops every full packet"));
    }
    if let Some(mark) = &table.mark {
        leg.discipline = Discipline::Mark(mark.get_ref().0);
    }
    if table.mark.is_some() && table.codel.is_some() {
        return Err(wrong(at, "both 'mark' and 'codel' say how the queue is kept; keep one"));
    }
    if leg.rate.is_none() && (table.mark.is_some() || table.codel.is_some()) {
        return Err(wrong(at, "without a rate nothing waits: 'mark' and 'codel' need one"));
    }
    if let Some(policer) = &table.policer {
        leg.policer = Some(policer_of(policer)?);
    }
    if let Some(loss) = loss(&table.loss, &table.bursts, &table.bit_errors, &at)? {
        leg.loss = loss;
    }
    leg.jitter = table.jitter.map_or(leg.jitter, |jitter| jitter.0);
    if let Some(reordering) = &table.reordering {
        leg.reordering = Some(Reordering { share: reordering.share.0.0, by: reordering.by.0 });
    }
    // The users are at the terminal's side, the internet at the gateway's.
    if let Some(wifi) = table.terrestrial.as_ref().and_then(|said| said.get_ref().wifi.as_ref()) {
        return Err(wrong(wifi.span(), "'wifi' is where the users are: write it under 'access'"));
    }
    let (before, after) = match way {
        Way::Forward => (&table.terrestrial, &table.access),
        Way::Return => (&table.access, &table.terrestrial),
    };
    for (said, segment) in [(before, &mut leg.before), (after, &mut leg.after)] {
        let Some((table, at)) = said.as_ref().map(|said| (said.get_ref(), said.span())) else { continue };
        segment.delay = table.delay.map_or(segment.delay, |delay| delay.0);
        segment.jitter = table.jitter.map_or(segment.jitter, |jitter| jitter.0);
        if let Some(loss) = loss(&table.loss, &table.bursts, &table.bit_errors, &at)? {
            segment.loss = loss;
        }
        if let Some(wifi) = &table.wifi {
            segment.wifi = Some(wifi_of(wifi)?);
        }
    }
    Ok(())
}

/// IEEE 802.11: dot11ShortRetryLimit is 7 unless said. What waits is what access points commonly hold, 200 full packets.
fn wifi_of(said: &Spanned<form::WifiForm>) -> Result<Wifi, Wrong> {
    let form = said.get_ref();
    let wifi = Wifi {
        rate: form.rate.0,
        loss: form.loss.map_or(0.0, |loss| loss.0.0),
        retries: form.retries.map_or(7, |count| count.0.into()),
        contention: form.contention.map_or(Duration::ZERO, |time| time.0),
        queue: form.queue.map_or(Bytes(300_000), |queue| queue.0),
    };
    if wifi.rate == BitRate(0) || wifi.queue < Bytes(1500) {
        return Err(wrong(
            said.span(),
            "a wireless LAN of 0 bit/s, or whose queue holds no packet of 1500 B, lets nothing through",
        ));
    }
    Ok(wifi)
}

/// What the serialiser sends when: a rate, a trace or steps.
fn supply(table: &form::Leg, at: &Range<usize>, leg: &mut Leg, open: &mut Open<'_>) -> Result<(), Wrong> {
    let kinds = [
        table.rate.is_some(),
        table.trace.is_some(),
        !table.steps.is_empty(),
        table.on_demand.is_some(),
        table.fade.is_some(),
    ];
    if kinds.into_iter().filter(|given| *given).count() > 1 {
        return Err(wrong(
            at.clone(),
            "more than one of 'rate', 'trace', 'steps', 'fade' and 'on_demand' says how fast it sends; keep one",
        ));
    }
    if let Some(rate) = &table.rate {
        if rate.get_ref().0.0 == 0 {
            return Err(wrong(
                rate.span(),
                "at 0 bit/s nothing would ever pass; for a link that is not there write an [[outage]]",
            ));
        }
        (leg.rate, leg.supply) = (Some(rate.get_ref().0), Supply::Steady);
    }
    if let Some(file) = &table.trace {
        let read =
            open(file.get_ref()).and_then(|text| Trace::parse(&text).map_err(|error| error.to_string()));
        let trace =
            read.map_err(|error| wrong(file.span(), format!("the trace {}: {error}", file.get_ref())))?;
        (leg.rate, leg.supply) = (Some(trace.mean()), Supply::Trace(Arc::new(trace)));
    }
    if let Some(shared) = &table.on_demand {
        if table.mark.is_some() || table.codel.is_some() || leg.discipline != Discipline::DropTail {
            return Err(wrong(
                shared.span(),
                "terminals that share a link have queues for each class: no 'mark' nor 'codel'",
            ));
        }
        leg.rate = Some(shared.get_ref().capacity());
    }
    if let Some(said) = &table.fade {
        let (steps, outages) = fade(said, open)?;
        (leg.rate, leg.supply) = (Some(steps.mean()), Supply::Steps(Arc::new(steps)));
        leg.schedule.outages.extend(outages);
    }
    if let Some(first) = table.steps.first() {
        let steps = table.steps.iter().map(|step| (step.get_ref().at.0, step.get_ref().rate.0)).collect();
        let steps = Steps::new(steps, table.again_after.map(|time| time.0))
            .map_err(|error| wrong(first.span(), error))?;
        (leg.rate, leg.supply) = (Some(steps.mean()), Supply::Steps(Arc::new(steps)));
    } else if table.again_after.is_some() {
        return Err(wrong(at.clone(), "'again_after' says when 'steps' begin anew, and there are none"));
    }
    Ok(())
}

fn loss(
    share: &Option<Said<Share>>,
    bursts: &Option<form::Bursts>,
    bits: &Option<f64>,
    at: &Range<usize>,
) -> Result<Option<Loss>, Wrong> {
    match (share, bursts, bits) {
        (None, None, None) => Ok(None),
        (Some(share), None, None) => Ok(Some(Loss::Independent(share.0.0))),
        (None, Some(bursts), None) => Ok(Some(Loss::Bursts(Bursts {
            enter: bursts.enter.0.0,
            leave: bursts.leave.0.0,
            good: bursts.good.map_or(0.0, |good| good.0.0),
            bad: bursts.bad.map_or(1.0, |bad| bad.0.0),
        }))),
        (None, None, Some(bits)) if (0.0..=1.0).contains(bits) => Ok(Some(Loss::Bits(*bits))),
        (None, None, Some(bits)) => {
            Err(wrong(at.clone(), format!("bit_errors = {bits} is no share of bits, write it like 1e-7")))
        }
        _ => Err(wrong(
            at.clone(),
            "more than one of 'loss', 'bursts' and 'bit_errors' says what gets lost; keep one",
        )),
    }
}

fn policer_of(said: &Spanned<form::Policer>) -> Result<Policer, Wrong> {
    let policer = Policer { rate: said.get_ref().rate.0, burst: said.get_ref().burst.0 };
    if policer.rate == BitRate(0) || policer.burst < Bytes(1500) {
        return Err(wrong(
            said.span(),
            "a policer of 0 bit/s, or whose burst holds no packet of 1500 B, lets nothing through",
        ));
    }
    Ok(policer)
}

/// RFC 8289 §4.3 and §4.4: an interval of a round trip, a target of a twentieth of it, and no less than a packet takes.
fn codel_of(said: &Spanned<form::CoDel>, profile: &Profile, way: Way) -> Result<Discipline, Wrong> {
    let form = said.get_ref();
    let packet = profile.leg(way).rate.map_or(Duration::ZERO, |rate| rate.time_for(Bytes(1500)));
    let interval = form.interval.map_or(profile.rtt().max(Duration::from_millis(100)), |it| it.0);
    let target = form.target.map_or((interval / 20).max(packet), |it| it.0);
    if target.is_zero() || interval <= target {
        return Err(wrong(
            said.span(),
            "codel: 'target' is above 0 s and below 'interval', which is about a round trip",
        ));
    }
    Ok(Discipline::CoDel(CoDel { target, interval, ecn: form.ecn }))
}

/// The rates and outages of a link that adapts to a recorded fade.
fn fade(said: &Spanned<form::FadeForm>, open: &mut Open<'_>) -> Result<(Steps, Vec<Outage>), Wrong> {
    let (form, file) = (said.get_ref(), said.get_ref().trace.get_ref());
    let read = open(file).and_then(|text| Fade::parse(&text).map_err(|error| error.to_string()));
    let fade = read.map_err(|error| wrong(form.trace.span(), format!("the fade {file}: {error}")))?;
    let adaptation = Adaptation {
        clear_sky: form.clear_sky,
        margin: form.margin,
        reaction: form.reaction.map_or(Duration::ZERO, |reaction| reaction.0),
        modcods: form.modcods.iter().map(|it| Modcod { needs: it.needs, rate: it.rate.0 }).collect(),
    };
    fade.adapted(&adaptation).map_err(|error| wrong(said.span(), format!("fade: {error}")))
}

/// What happens to one way at known times; what the file says nothing of stays.
fn schedule(form: &form::Satellite, way: Way, inherited: &Schedule) -> Result<Schedule, Wrong> {
    let mut schedule = inherited.clone();
    for said in &form.outage {
        let outage = said.get_ref();
        let every = outage.every.map(|every| every.0);
        if outage.lasts.0.is_zero() || every.is_some_and(|every| every <= outage.lasts.0) {
            return Err(wrong(
                said.span(),
                "an outage lasts longer than 0 s, and ends before the next one begins ('every')",
            ));
        }
        let strikes = match outage.way {
            form::Ways::Both => true,
            form::Ways::Forward => way == Way::Forward,
            form::Ways::Return => way == Way::Return,
        };
        if strikes {
            schedule.outages.push(Outage { at: outage.at.0, lasts: outage.lasts.0, every });
        }
    }
    if let Some(said) = &form.handover {
        let form::Handover { every, gap, delays } = said.get_ref();
        let gap = gap.map_or(Duration::ZERO, |gap| gap.0);
        if every.0 <= gap {
            return Err(wrong(said.span(), "a handover's gap ends before the next handover ('every')"));
        }
        let delays = delays.iter().map(|delay| delay.0).collect();
        schedule.handovers = Some(Handovers { every: every.0, gap, delays });
    }
    Ok(schedule)
}
