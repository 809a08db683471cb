//! Parses selectors (Selectors 4, with nesting as in CSS Nesting 1).

use super::selector::{
    Attribute, Combinator, Compound, Operator, Part, Reach, Selector, Target, add, pseudo_element,
    specificity,
};
use super::value::Fallible;
use cssparser::{CowRcStr, Parser, ParserInput, Token, parse_nth};
use std::sync::Arc;

/// Selectors within selectors that are followed.
const MAX_DEPTH: u32 = 8;
/// Compounds in a row that are followed.
pub(super) const MAX_COMPOUNDS: usize = 32;
/// Selectors of one rule that are kept.
const MAX_LIST: usize = 4096;

/// The selectors of a rule, those of the rule around it in `parents`. Empty if browsers would drop the rule.
pub(super) fn parse(prelude: &str, parents: Option<&Arc<[Selector]>>) -> Vec<Selector> {
    let mut input = ParserInput::new(prelude);
    let mut input = Parser::new(&mut input);
    let reader = Reader { parents, depth: 0 };
    let parsed = input.parse_comma_separated(|input| {
        let leading = if parents.is_some() { combinator(input) } else { None };
        reader.complex(input, leading.or(parents.map(|_| Combinator::Descendant)), leading.is_some())
    });
    let mut selectors = parsed.unwrap_or_default();
    selectors.truncate(MAX_LIST);
    selectors
}

#[derive(Clone, Copy)]
struct Reader<'p> {
    parents: Option<&'p Arc<[Selector]>>,
    depth: u32,
}

/// Compound by compound, left to right.
#[derive(Default)]
struct Building {
    compounds: Vec<Compound>,
    parts: Vec<Part>,
    combinator: Option<Combinator>,
    nested: bool,
    /// What `::slotted()` asks.
    slotted: Option<Selector>,
}

impl Building {
    fn close(&mut self) {
        self.compounds.push(Compound {
            parts: std::mem::take(&mut self.parts).into(),
            combinator: self.combinator.take(),
        });
    }
}

impl Reader<'_> {
    /// `implied`: the combinator by which a nested selector hangs on its parent; only where it has no `&`, or begins with
    /// a combinator (`explicit`).
    fn complex<'i>(
        self,
        input: &mut Parser<'i, '_>,
        implied: Option<Combinator>,
        explicit: bool,
    ) -> Fallible<'i, Selector> {
        let mut building = Building::default();
        let mut target = None;
        input.skip_whitespace();
        let mut spaced = false;
        // `*` alone leaves no part, yet is a compound.
        let mut begun = false;
        while let Ok(token) = input.next_including_whitespace().cloned() {
            if let Token::WhiteSpace(_) = token {
                spaced = true;
                continue;
            }
            let sign = match token {
                Token::Delim('>') => Some(Combinator::Child),
                Token::Delim('+') => Some(Combinator::NextSibling),
                Token::Delim('~') => Some(Combinator::LaterSibling),
                _ if spaced && begun => Some(Combinator::Descendant),
                _ => None,
            };
            spaced = false;
            if let Some(combinator) = sign {
                if !begun || target.is_some() || building.compounds.len() >= MAX_COMPOUNDS {
                    return Err(input.new_custom_error(()));
                }
                building.close();
                building.combinator = Some(combinator);
                begun = false;
                if combinator != Combinator::Descendant {
                    input.skip_whitespace();
                    continue;
                }
            }
            begun = true;
            self.part(token, input, &mut building, &mut target)?;
        }
        if !begun {
            return Err(input.new_custom_error(()));
        }
        building.close();
        if let Some(parents) = self.parents.filter(|_| implied.is_some() && (explicit || !building.nested)) {
            building.compounds[0].combinator = implied;
            let parent = Compound { parts: [Part::Any(Arc::clone(parents))].into(), combinator: None };
            building.compounds.insert(0, parent);
        }
        let selector = finish(building.compounds, target.unwrap_or(Target::Element));
        // Which slot it is is not looked at.
        Ok(match building.slotted {
            Some(slotted) => Selector {
                reach: Reach::Slotted,
                target: selector.target,
                specificity: add(add(selector.specificity, slotted.specificity), 1),
                ..slotted
            },
            None => selector,
        })
    }

    fn part<'i>(
        self,
        token: Token<'i>,
        input: &mut Parser<'i, '_>,
        building: &mut Building,
        target: &mut Option<Target>,
    ) -> Fallible<'i, ()> {
        let parts = &mut building.parts;
        match token {
            Token::Delim('*') => {}
            Token::Ident(name) if parts.is_empty() => {
                parts.push(Part::Name(name.to_ascii_lowercase().into()))
            }
            Token::IDHash(id) | Token::Hash(id) => parts.push(Part::Id(Box::from(&*id))),
            Token::Delim('.') => parts.push(Part::Class(Box::from(&**input.expect_ident()?))),
            Token::Delim('|') => {}
            Token::Delim('&') => {
                building.nested = true;
                parts.push(match self.parents {
                    Some(parents) => Part::Any(Arc::clone(parents)),
                    None => Part::Root,
                });
            }
            Token::SquareBracketBlock => {
                let attribute = input.parse_nested_block(attribute)?;
                parts.push(Part::Attribute(Box::new(attribute)));
            }
            Token::Colon => match input.next_including_whitespace()?.clone() {
                Token::Colon => match input.try_parse(|input| self.slotted(input)) {
                    Ok(slotted) => building.slotted = Some(slotted),
                    Err(_) => *target = Some(element(input)?),
                },
                Token::Ident(name) => match legacy_element(&name) {
                    Some(legacy) => *target = Some(legacy),
                    None if target.is_some() => parts.push(Part::Never),
                    None => parts.extend(simple(&name).ok_or_else(|| input.new_custom_error(()))?),
                },
                Token::Function(name) => {
                    let part = input
                        .parse_nested_block(|input| self.functional(&name, input, &mut building.nested))?;
                    parts.push(part);
                }
                _ => return Err(input.new_custom_error(())),
            },
            _ => return Err(input.new_custom_error(())),
        }
        Ok(())
    }

    /// The argument of `slotted()`.
    fn slotted<'i>(self, input: &mut Parser<'i, '_>) -> Fallible<'i, Selector> {
        let inner = Reader { depth: self.depth + 1, ..self };
        if inner.depth > MAX_DEPTH {
            return Err(input.new_custom_error(()));
        }
        input.expect_function_matching("slotted")?;
        input.parse_nested_block(|input| inner.complex(input, None, false))
    }

    fn functional<'i>(self, name: &str, input: &mut Parser<'i, '_>, nested: &mut bool) -> Fallible<'i, Part> {
        let inner = Reader { depth: self.depth + 1, ..self };
        if inner.depth > MAX_DEPTH {
            return Err(input.new_custom_error(()));
        }
        let name = name.to_ascii_lowercase();
        let start = input.position();
        let part = match name.as_str() {
            "is" | "where" | "-webkit-any" => {
                let mut list =
                    input.parse_comma_separated_ignoring_errors(|input| inner.complex(input, None, false));
                if name == "where" {
                    list.iter_mut().for_each(|selector| selector.specificity = 0);
                }
                if list.is_empty() { Part::Never } else { Part::Any(list.into()) }
            }
            "not" => {
                Part::Not(input.parse_comma_separated(|input| inner.complex(input, None, false))?.into())
            }
            "has" => Part::Has(
                input
                    .parse_comma_separated(|input| {
                        let relation = combinator(input).unwrap_or(Combinator::Descendant);
                        Ok((relation, inner.complex(input, None, false)?))
                    })?
                    .into(),
            ),
            "nth-child" | "nth-last-child" | "nth-of-type" | "nth-last-of-type" => {
                let (step, offset) = parse_nth(input)?;
                Part::Nth {
                    step,
                    offset,
                    of_type: name.ends_with("of-type"),
                    from_end: name.starts_with("nth-last"),
                }
            }
            "lang" => {
                let tags = input.parse_comma_separated(|input| {
                    Ok::<_, cssparser::ParseError<'i, ()>>(
                        input.expect_ident_or_string()?.to_ascii_lowercase().into(),
                    )
                })?;
                Part::Lang(tags.into())
            }
            "dir" if input.expect_ident_matching("ltr").is_ok() => {
                Part::Not([finish(vec![compound(rtl())], Target::Element)].into())
            }
            "dir" => rtl(),
            "host" => {
                let list = input.parse_comma_separated(|input| inner.complex(input, None, false))?;
                Part::Host(Some(list.into()))
            }
            "host-context" | "state" | "active-view-transition-type" => Part::Never,
            _ => return Err(input.new_custom_error(())),
        };
        while input.next().is_ok() {}
        *nested |= input.slice_from(start).contains('&');
        Ok(part)
    }
}

fn compound(part: Part) -> Compound {
    Compound { parts: [part].into(), combinator: None }
}

fn rtl() -> Part {
    Part::Attribute(Box::new(Attribute {
        name: "dir".into(),
        operator: Operator::Equals,
        value: "rtl".into(),
        ignore_case: true,
    }))
}

/// From compounds left to right.
pub(super) fn finish(mut compounds: Vec<Compound>, target: Target) -> Selector {
    compounds.reverse();
    // Each compound carries the combinator to its left, as parsed: `a > b` has `>` with `b`.
    let parts = || compounds.iter().flat_map(|compound| compound.parts.iter());
    let pseudo = u32::from(target != Target::Element);
    let specificity = parts().fold(pseudo, |sum, part| add(sum, specificity(part)));
    let late = parts().any(is_late);
    let reach = if compounds[0].is_host() { Reach::Host } else { Reach::Inside };
    Selector { compounds: compounds.into(), specificity, target, reach, late }
}

fn is_late(part: &Part) -> bool {
    match part {
        Part::Empty | Part::Has(_) | Part::Nth { from_end: true, .. } => true,
        Part::Any(selectors) | Part::Not(selectors) | Part::Host(Some(selectors)) => {
            selectors.iter().any(|selector| selector.late)
        }
        _ => false,
    }
}

/// A combinator in front of a nested or relative selector.
fn combinator(input: &mut Parser<'_, '_>) -> Option<Combinator> {
    input
        .try_parse(|input| match input.next() {
            Ok(Token::Delim('>')) => Ok(Combinator::Child),
            Ok(Token::Delim('+')) => Ok(Combinator::NextSibling),
            Ok(Token::Delim('~')) => Ok(Combinator::LaterSibling),
            _ => Err(()),
        })
        .ok()
}

fn attribute<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Attribute> {
    let _ = input.try_parse(|input| input.expect_delim('*'));
    let _ = input.try_parse(|input| input.expect_delim('|'));
    let name: Box<str> = input.expect_ident()?.to_ascii_lowercase().into();
    let Ok(token) = input.next().cloned() else {
        return Ok(Attribute { name, operator: Operator::Exists, value: "".into(), ignore_case: false });
    };
    let operator = match token {
        Token::Delim('=') => Operator::Equals,
        Token::IncludeMatch => Operator::Includes,
        Token::DashMatch => Operator::Dash,
        Token::PrefixMatch => Operator::Prefix,
        Token::SuffixMatch => Operator::Suffix,
        Token::SubstringMatch => Operator::Substring,
        _ => return Err(input.new_custom_error(())),
    };
    let value = Box::from(&**input.expect_ident_or_string()?);
    let flag = input.try_parse(|input| input.expect_ident_cloned()).ok();
    // HTML, "case-sensitivity of selectors": values of `type` and some more ignore case.
    let ignore_case = match &flag {
        Some(flag) => flag.eq_ignore_ascii_case("i"),
        None => matches!(&*name, "type" | "rel" | "lang" | "dir" | "align" | "valign" | "method" | "media"),
    };
    input.expect_exhausted()?;
    Ok(Attribute { name, operator, value, ignore_case })
}

/// `:before` and its three kin take one colon.
fn legacy_element(name: &CowRcStr<'_>) -> Option<Target> {
    let legacy = ["before", "after", "first-line", "first-letter"];
    legacy.iter().any(|own| name.eq_ignore_ascii_case(own)).then(|| pseudo_element(name)).flatten()
}

fn element<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Target> {
    let known = match input.next_including_whitespace()?.clone() {
        Token::Ident(name) => pseudo_element(&name),
        Token::Function(name) => {
            super::font_value::skip_block(input)?;
            pseudo_element(&name)
        }
        _ => None,
    };
    known.ok_or_else(|| input.new_custom_error(()))
}

/// Whether a pseudo-class without arguments, in lower case, never holds before anyone has touched the page.
pub(super) fn needs_hand(name: &str) -> bool {
    matches!(
        name,
        "hover"
            | "active"
            | "focus"
            | "focus-visible"
            | "focus-within"
            | "visited"
            | "target"
            | "target-within"
            | "indeterminate"
            | "default"
            | "in-range"
            | "out-of-range"
            | "user-valid"
            | "user-invalid"
            | "fullscreen"
            | "modal"
            | "popover-open"
            | "picture-in-picture"
            | "autofill"
            | "playing"
            | "paused"
            | "muted"
            | "seeking"
            | "buffering"
            | "stalled"
            | "volume-locked"
            | "current"
            | "past"
            | "future"
            | "local-link"
            | "has-slotted"
            | "active-view-transition"
    )
}

/// Pseudo-classes without arguments, as they stand before anyone has touched the page. `None` for those that browsers
/// refuse, and the whole rule with them.
fn simple(name: &CowRcStr<'_>) -> Option<Vec<Part>> {
    let nth = |offset, of_type, from_end| Part::Nth { step: 0, offset, of_type, from_end };
    let not =
        |name: &str| Part::Not([finish(vec![compound(Attribute::present(name))], Target::Element)].into());
    Some(match name.to_ascii_lowercase().as_str() {
        "root" | "scope" => vec![Part::Root],
        "first-child" => vec![nth(1, false, false)],
        "last-child" => vec![nth(1, false, true)],
        "only-child" => vec![nth(1, false, false), nth(1, false, true)],
        "first-of-type" => vec![nth(1, true, false)],
        "last-of-type" => vec![nth(1, true, true)],
        "only-of-type" => vec![nth(1, true, false), nth(1, true, true)],
        "empty" => vec![Part::Empty],
        "host" => vec![Part::Host(None)],
        "link" | "any-link" | "-webkit-any-link" => vec![Part::Link],
        "checked" => vec![Part::Any(
            [
                finish(vec![compound(Attribute::present("checked"))], Target::Element),
                finish(vec![compound(Attribute::present("selected"))], Target::Element),
            ]
            .into(),
        )],
        "disabled" => vec![Attribute::present("disabled")],
        "required" => vec![Attribute::present("required")],
        "open" => vec![Attribute::present("open")],
        "enabled" => vec![Part::Enabled],
        "optional" => vec![Part::Enabled, not("required")],
        "read-write" => vec![Part::Enabled, not("readonly")],
        "read-only" => vec![Attribute::present("readonly")],
        // Nobody has filled anything in: what has to be and is empty is not valid.
        "invalid" => vec![Attribute::present("required"), not("value"), not("disabled")],
        "valid" => vec![
            Part::Enabled,
            Part::Any(
                [
                    finish(vec![compound(not("required"))], Target::Element),
                    finish(vec![compound(Attribute::present("value"))], Target::Element),
                ]
                .into(),
            ),
        ],
        "placeholder-shown" => vec![Attribute::present("placeholder"), not("value")],
        // Custom elements are undefined until a script says otherwise; most pages' scripts do.
        "defined" => vec![],
        name if needs_hand(name) => vec![Part::Never],
        other if other.starts_with("-webkit-") || other.starts_with("-internal-") => vec![Part::Never],
        // Of scroll bars, on pseudo-elements that are not kept.
        "horizontal" | "vertical" | "start" | "end" | "increment" | "decrement" | "single-button"
        | "double-button" | "no-button" | "corner-present" | "window-inactive" => vec![Part::Never],
        _ => return None,
    })
}
