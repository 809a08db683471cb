//! From the tables of figures and claims to what is drawn and compared. Pure.

use serde_spanned::Spanned;

use crate::form;
use crate::measure::Measure;
use crate::plan::{Axis, Claim, DynamicsFigure, Figure, LinkSpec, PageSpec, Statistic, VariantSpec};
use crate::read::{Wrong, measure, place, word, wrong};

/// What figures and claims may name.
pub(crate) struct Known<'a> {
    pub(crate) measures: &'a [Measure],
    pub(crate) pages: &'a [PageSpec],
    pub(crate) links: &'a [LinkSpec],
    pub(crate) variants: &'a [VariantSpec],
}

/// Those over cells, and those of single loads over time.
pub(crate) struct Figures {
    pub(crate) figures: Vec<Figure>,
    pub(crate) dynamics: Vec<DynamicsFigure>,
}

const STATISTICS: [(&str, Statistic); 5] = [
    ("median", Statistic::Median),
    ("mean", Statistic::Mean),
    ("p95", Statistic::P95),
    ("min", Statistic::Min),
    ("max", Statistic::Max),
];

impl Known<'_> {
    pub(crate) fn figures(&self, plots: &[Spanned<form::Plot>]) -> Result<Figures, Wrong> {
        let mut all = Figures { figures: Vec::new(), dynamics: Vec::new() };
        for plot in plots {
            let form = plot.get_ref();
            if form.x.get_ref() == "time" {
                let chosen = !form.links.is_empty() || !form.variants.is_empty();
                if form.measure.is_some() || form.statistic.is_some() || chosen {
                    let reason = "over time rates and connections are drawn: no 'measure', 'statistic', 'links' or 'variants'";
                    return Err(wrong(form.x.span(), reason));
                }
                all.dynamics.push(DynamicsFigure {
                    figure: form.figure.clone(),
                    place: form.place.clone(),
                    title: form.title.clone(),
                    found: form.found.clone(),
                });
            } else {
                all.figures.push(self.figure(form)?);
            }
        }
        Ok(all)
    }

    fn figure(&self, form: &form::Plot) -> Result<Figure, Wrong> {
        let Some(of) = &form.measure else {
            return Err(wrong(form.x.span(), "what is drawn? Give it a 'measure'"));
        };
        let measure = self.measured(of)?;
        let axes =
            [("page", Axis::Page), ("link", Axis::Link), ("variant", Axis::Variant), ("time", Axis::Page)];
        let x = word(&form.x, &axes)?;
        let links = self.links_of(&form.links)?;
        let is_drawn = |place: usize| links.is_empty() || links.contains(&place);
        let mut drawn = self.links.iter().enumerate().filter(|(place, _)| is_drawn(*place));
        let nowhere = match x {
            Axis::Page => self.pages.iter().find(|it| it.at.is_none()).map(|it| &it.name),
            Axis::Link => drawn.find(|(_, it)| it.at.is_none()).map(|(_, it)| &it.name),
            // Beside one that has a place, those that have none are level lines.
            Axis::Variant if self.variants.iter().any(|it| it.at.is_some()) => None,
            Axis::Variant => self.variants.first().map(|it| &it.name),
        };
        if let Some(name) = nowhere {
            let reason = format!("'{name}' stands nowhere on this axis: give it an 'at'");
            return Err(wrong(form.x.span(), reason));
        }
        let statistic = form.statistic.as_ref().map(|text| word(text, &STATISTICS)).transpose()?;
        Ok(Figure {
            figure: form.figure.clone(),
            place: form.place.clone(),
            title: form.title.clone(),
            measure,
            statistic: statistic.unwrap_or(Statistic::Median),
            x,
            links,
            variants: form.variants.iter().map(|name| self.variant(name)).collect::<Result<_, _>>()?,
            label: form.label.clone(),
            found: form.found.clone(),
        })
    }

    fn variant(&self, name: &form::Text) -> Result<usize, Wrong> {
        place(name, "variant", self.variants.iter().map(|it| it.name.as_str()))
    }

    fn links_of(&self, names: &[form::Text]) -> Result<Vec<usize>, Wrong> {
        names.iter().map(|name| place(name, "link", self.links.iter().map(|it| it.name.as_str()))).collect()
    }

    pub(crate) fn claims(&self, claims: &[Spanned<form::Claim>], base: usize) -> Result<Vec<Claim>, Wrong> {
        claims.iter().map(|claim| self.claim(claim, base)).collect()
    }

    fn claim(&self, said: &Spanned<form::Claim>, base: usize) -> Result<Claim, Wrong> {
        let form = said.get_ref();
        let variant = |name| self.variant(name);
        let page = |name| place(name, "page", self.pages.iter().map(|it| it.name.as_str()));
        let link = |name| place(name, "link", self.links.iter().map(|it| it.name.as_str()));
        let ways = [("less", -1), ("same", 0), ("more", 1)];
        let direction = form.direction.as_ref().map(|text| word(text, &ways)).transpose()?;
        let times = form.times.filter(|times| times.is_finite() && *times > 0.0);
        if direction.is_some() == times.is_some() || times != form.times {
            let reason =
                "a claim has either 'times', the variant as a multiple of the other, or a 'direction'";
            return Err(wrong(said.span(), reason));
        }
        let against_link = form.against_link.as_ref().map(link).transpose()?;
        let own = variant(&form.variant)?;
        // Between links it is the same variant, unless another is named.
        let otherwise = if against_link.is_some() { own } else { base };
        Ok(Claim {
            figure: form.figure.clone(),
            says: form.says.clone(),
            measure: self.measured(&form.measure)?,
            variant: own,
            against: form.against.as_ref().map_or(Ok(otherwise), variant)?,
            against_link,
            times,
            direction: direction.unwrap_or(0),
            pages: form.pages.iter().map(page).collect::<Result<_, _>>()?,
            links: self.links_of(&form.links)?,
            why: form.why.clone(),
        })
    }

    fn measured(&self, name: &form::Text) -> Result<Measure, Wrong> {
        let measure = measure(name)?;
        if !self.measures.contains(&measure) {
            let reason = format!("'{}' is not among the measures of this plan", measure.name());
            return Err(wrong(name.span(), reason));
        }
        Ok(measure)
    }
}
