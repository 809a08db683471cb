//! The scripts of a page: what they load, as hints. Import maps and the budget for guesses are the page's.

use crate::context::Context;
use crate::decode::Charset;
use crate::hint::{Confidence, Destination, Hint, Initiator, Mode, ReferrerPolicy, Source, Timing};
use crate::script::{Finder, Finding, MentionScanner, Mentions, ModuleKind, Place, destination};
use std::collections::HashMap;
use url::Url;

/// More names of one kind in one script are a list: chunks of other pages, languages, a set of icons. A page uses few of them.
const LIST: usize = 8;

/// What all scripts of a page share.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    /// Guesses given.
    literals: usize,
    mentions: Mentions,
}

impl Scripts {
    /// See [`Mentions::asked`].
    pub(crate) fn asked(&mut self, url: &Url) {
        self.mentions.asked(url);
    }

    /// See [`Mentions::neighbours`].
    pub(crate) fn neighbours(&mut self, url: &Url, context: &mut Context) {
        self.mentions.neighbours(url).into_iter().for_each(|url| mention(url, context));
    }

    /// See [`Mentions::found`].
    pub(crate) fn found(&mut self, url: &Url, is_there: bool, context: &mut Context) {
        self.mentions.found(url, is_there).into_iter().for_each(|url| mention(url, context));
    }
}

/// An image that scripts name, shown by the page, whichever of them put it there.
fn mention(url: Url, context: &mut Context) {
    let hint = context.hint(url, Destination::Image, Source::Mention);
    context.add(Hint { confidence: Confidence::Guess, ..hint });
}

/// A script that is being read, and what its imports inherit from it (HTML, "script fetch options").
#[derive(Debug)]
pub(crate) struct ScriptReader {
    finder: Finder,
    mentions: MentionScanner,
    /// Base of its specifiers.
    base: Url,
    initiator: Initiator,
    mode: Mode,
    timing: Timing,
    referrer_policy: Option<ReferrerPolicy>,
    confidence: Confidence,
    nonce: Option<Box<str>>,
    offset: u64,
    charset: Charset,
    findings: Vec<Finding>,
    /// Until its end: how many there are tells how likely each is.
    guesses: Vec<Hint>,
}

impl ScriptReader {
    /// A script in the document's own text, at `offset`.
    pub(crate) fn inline(module: bool, nonce: Option<&str>, offset: u64, context: &Context) -> Self {
        // HTML, "fetch the descendants of a module script": the referrer is the script's base URL.
        let based = module && context.base != context.document;
        ScriptReader {
            finder: Finder::new(module),
            mentions: MentionScanner::default(),
            base: context.base.clone(),
            initiator: if based { Initiator::Module(context.base.clone()) } else { Initiator::Document },
            mode: Mode::Cors,
            timing: if module { Timing::Deferred } else { Timing::Async },
            referrer_policy: context.policy,
            confidence: Confidence::Sure,
            nonce: nonce.filter(|nonce| !nonce.is_empty()).map(Into::into),
            offset,
            charset: context.charset,
            findings: Vec::new(),
            guesses: Vec::new(),
        }
    }

    /// The script that `hint` names, at `url`, whose own response says `policy`; its text is in `charset`.
    pub(crate) fn file(hint: &Hint, url: &Url, policy: Option<ReferrerPolicy>, charset: Charset) -> Self {
        // A classic script cannot hold static imports, so only the mode must tell them apart.
        let module = hint.mode != Mode::NoCors;
        ScriptReader {
            finder: Finder::new(module),
            mentions: MentionScanner::default(),
            base: url.clone(),
            initiator: Initiator::Module(url.clone()),
            mode: if module { hint.mode } else { Mode::Cors },
            timing: if module && hint.timing != Timing::Blocking { hint.timing } else { Timing::Async },
            referrer_policy: policy.or(hint.referrer_policy),
            confidence: hint.confidence,
            nonce: hint.nonce.clone(),
            offset: hint.offset,
            charset,
            findings: Vec::new(),
            guesses: Vec::new(),
        }
    }

    /// Reads the next piece of its text.
    pub(crate) fn feed(&mut self, text: &str, scripts: &mut Scripts, context: &mut Context) {
        self.finder.feed(text, &mut self.findings);
        self.mentions.feed(text, &mut scripts.mentions);
        scripts.mentions.fresh().into_iter().for_each(|url| mention(url, context));
        self.give(context);
    }

    /// It is complete.
    pub(crate) fn end(&mut self, scripts: &mut Scripts, context: &mut Context) {
        self.finder.end(&mut self.findings);
        self.give(context);
        self.give_guesses(scripts, context);
    }

    fn give(&mut self, context: &mut Context) {
        for finding in std::mem::take(&mut self.findings) {
            let (hint, is_sure) = match finding {
                Finding::Static { specifier, kind } => {
                    (self.module(&specifier, kind, Source::StaticImport, Confidence::Sure, context), true)
                }
                Finding::Dynamic { specifier, kind, at_once } => {
                    let confidence = if at_once { Confidence::Likely } else { Confidence::Guess };
                    (self.module(&specifier, kind, Source::DynamicImport, confidence, context), at_once)
                }
                Finding::Literal { path, place, of_module } => {
                    (self.literal(&path, place, of_module, context), false)
                }
                Finding::Resolved { specifier } => (self.resolved(&specifier, context), false),
            };
            match hint {
                Some(hint) if is_sure => context.add(hint),
                Some(hint) => self.guess(hint, context),
                None => {}
            }
        }
    }

    fn guess(&mut self, hint: Hint, context: &Context) {
        let is_new = !self.guesses.iter().any(|known| known.url == hint.url);
        if is_new && self.guesses.len() < context.options.max_literals {
            self.guesses.push(hint);
        }
    }

    /// What is one of few of its kind comes first, then the beginnings of lists.
    fn give_guesses(&mut self, scripts: &mut Scripts, context: &mut Context) {
        let guesses = std::mem::take(&mut self.guesses);
        let mut named: HashMap<Destination, usize> = HashMap::new();
        let placed: Vec<(usize, Hint)> = guesses
            .into_iter()
            .map(|hint| {
                let before = named.entry(hint.destination).or_default();
                *before += 1;
                (*before, hint)
            })
            .collect();
        let is_listed = |hint: &Hint| named.get(&hint.destination).is_some_and(|count| *count > LIST);
        let (listed, few): (Vec<_>, Vec<_>) = placed.into_iter().partition(|(_, hint)| is_listed(hint));
        let listed = listed.into_iter().filter(|(place, _)| *place <= LIST);
        let left = context.options.max_literals.saturating_sub(scripts.literals);
        for (_, hint) in few.into_iter().chain(listed).take(left) {
            scripts.literals += 1;
            context.add(hint);
        }
    }

    fn module(
        &self,
        specifier: &str,
        kind: ModuleKind,
        source: Source,
        confidence: Confidence,
        context: &Context,
    ) -> Option<Hint> {
        self.charset.of(specifier)?;
        let url = context.fetchable(context.import_map.resolve(specifier, &self.base)?)?;
        // Fetch destination from module type (HTML, "fetch a single module script").
        let destination = match kind {
            ModuleKind::Script => Destination::Script,
            ModuleKind::Json => Destination::Json,
            ModuleKind::Css => Destination::Style,
        };
        let integrity = context.import_map.integrity(&url).map(Into::into);
        Some(Hint {
            mode: self.mode,
            timing: if source == Source::StaticImport { self.timing } else { Timing::Async },
            referrer_policy: self.referrer_policy,
            initiator: self.initiator.clone(),
            confidence: confidence.min(self.confidence),
            nonce: self.nonce.clone(),
            integrity,
            offset: self.offset,
            ..context.hint(url, destination, source)
        })
    }

    fn literal(&self, path: &str, place: Place, of_module: bool, context: &Context) -> Option<Hint> {
        self.charset.of(path)?;
        let base = match place {
            Place::ChunkFiles { .. } => &self.build_root(path).unwrap_or_else(|| context.base.clone()),
            _ if of_module => &self.base,
            _ => &context.base,
        };
        let url = context.resolve_from(path, base)?;
        let (destination, mode) = match (destination(path, self.finder.is_module())?, place) {
            ((Destination::Script, _), Place::Worker) => (Destination::Worker, Mode::SameOrigin),
            (_, Place::Worker) => return None,
            // The helper's `<link>` says `crossorigin`.
            ((Destination::Script, _), Place::ChunkFiles { .. }) => (Destination::Script, Mode::Cors),
            ((Destination::Style, _), Place::ChunkFiles { styles_with_cors: true }) => {
                (Destination::Style, Mode::Cors)
            }
            (usual, _) => usual,
        };
        let hint = self.guessed(url, destination, mode, context);
        // The helper hands the nonce on.
        let nonce = self.nonce.clone().filter(|_| matches!(place, Place::ChunkFiles { .. }));
        Some(Hint { nonce, ..hint })
    }

    /// By the import map, as what is imported is.
    fn resolved(&self, specifier: &str, context: &Context) -> Option<Hint> {
        self.charset.of(specifier)?;
        let url = context.fetchable(context.import_map.resolve(specifier, &self.base)?)?;
        let (destination, mode) = destination(url.path(), self.finder.is_module())?;
        Some(self.guessed(url, destination, mode, context))
    }

    /// Loaded through the page, whichever script names it.
    fn guessed(&self, url: Url, destination: Destination, mode: Mode, context: &Context) -> Hint {
        Hint {
            mode,
            confidence: Confidence::Guess,
            offset: self.offset,
            ..context.hint(url, destination, Source::Literal)
        }
    }

    /// The base of `path` among Vite's files of chunks: the script, or what all was built into, which the script's own directory
    /// shows. `None` where it does not.
    fn build_root(&self, path: &str) -> Option<Url> {
        if path.starts_with('.') {
            return Some(self.base.clone());
        }
        let own = self.base.path().rsplit_once('/')?.0;
        let root = match path.rsplit_once('/') {
            Some((directory, _)) => own.strip_suffix(directory)?.strip_suffix('/')?,
            None => own,
        };
        let mut base = self.base.clone();
        base.set_path(&format!("{root}/"));
        Some(base)
    }
}
