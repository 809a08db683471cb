//! The stylesheets of a page: which bytes belong to which sheet, and what [`Styles`] finds in them as hints. Lazy images
//! and frames wait for what they say of their elements.

use crate::context::Context;
use crate::decode::Charset;
use crate::hint::{Destination, Hint, Initiator, Mode, ReferrerPolicy, Source, Timing};
use crate::markup::{SheetLink, data_base};
use crate::options::Options;
use crate::style::{Around, Found, Owner, SheetId, Styles};
use crate::tree::{NodeId, Scope, Tree};
use std::collections::{HashMap, VecDeque};
use url::Url;

/// Longest text of a sheet kept that no element has named yet.
const MAX_EARLY: usize = 1 << 20;
/// Sheets of which such text is kept.
const MAX_EARLY_SHEETS: usize = 16;

/// What is known of a stylesheet's file.
#[derive(Debug, Default)]
struct File {
    /// The sheets of the page that are made of it; none while it was only preloaded.
    sheets: Vec<SheetId>,
    /// Its text, while no sheet is made of it.
    early: String,
    /// Where it came from, after redirects.
    location: Option<Url>,
    /// Of its text so far.
    charset: Option<Charset>,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Awaited,
    Reading,
    Ended,
    /// It will not be read, or too late to be kept.
    Lost,
}

/// A lazy image or frame.
#[derive(Debug)]
struct Lazy {
    /// `None` beyond the tree's bounds.
    node: Option<NodeId>,
    hint: Hint,
    far: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sheets {
    pub(crate) styles: Styles,
    /// By the URL that was hinted.
    files: HashMap<Url, File>,
    early: usize,
    /// Policies of sheets by their URL after redirects, where their responses say one.
    policies: HashMap<Url, ReferrerPolicy>,
    /// In the order of the document, while sheets are awaited.
    lazy: VecDeque<Lazy>,
    /// No file will be read, so none is waited for.
    pub(crate) alone: bool,
}

impl Sheets {
    pub(crate) fn new(options: &Options) -> Self {
        Sheets {
            styles: Styles::new(options),
            files: HashMap::new(),
            early: 0,
            policies: HashMap::new(),
            lazy: VecDeque::new(),
            alone: false,
        }
    }

    /// An element of this scope names a stylesheet.
    pub(crate) fn linked(&mut self, link: SheetLink, scope: Scope, tree: &Tree, context: &mut Context) {
        if !link.applies || self.alone || self.files.len() >= context.options.max_hints {
            return;
        }
        let owner = Owner::File { url: link.url.clone() };
        let id = self.styles.sheet(owner, Around { charset: context.charset, scope }, link.blocking, tree);
        self.belongs(id, link.url, tree);
        self.give(tree, context);
    }

    /// The sheet `id` is the file at `url`; what was read of that already is its beginning.
    fn belongs(&mut self, id: SheetId, url: Url, tree: &Tree) {
        let file = self.files.entry(url).or_default();
        let first = file.sheets.is_empty();
        file.sheets.push(id);
        if let Some(location) = &file.location {
            self.styles.redirected(id, location);
        }
        if let Some(charset) = file.charset {
            self.styles.encoded(id, charset);
        }
        match file.state {
            State::Awaited => self.styles.share(file.sheets[0], id),
            State::Reading | State::Ended if first => {
                self.styles.feed(id, &std::mem::take(&mut file.early));
                if file.state == State::Ended {
                    self.styles.end(id, tree);
                }
            }
            // Read already: what it names is found for the first sheet that it is.
            State::Reading | State::Ended => {
                let first = file.sheets[0];
                self.styles.share(first, id);
                self.styles.lost(id, tree);
            }
            State::Lost => self.styles.lost(id, tree),
        }
    }

    /// An element of this scope has a stylesheet in a `data:` URL.
    pub(crate) fn written(
        &mut self,
        text: &str,
        charset: Charset,
        scope: Scope,
        tree: &Tree,
        context: &mut Context,
    ) {
        let Some(url) = data_base() else { return };
        let id = self.styles.sheet(Owner::File { url }, Around { charset, scope }, true, tree);
        self.styles.feed(id, text);
        self.styles.end(id, tree);
        self.give(tree, context);
    }

    /// A `<style>` element of this scope begins.
    pub(crate) fn style(&mut self, blocking: bool, scope: Scope, tree: &Tree, context: &Context) -> SheetId {
        let owner = Owner::Document { base: context.base.clone() };
        self.styles.sheet(owner, Around { charset: context.charset, scope }, blocking, tree)
    }

    /// The file that `hint` named answers from `url`, named by something in the encoding `around`. If it is worth reading:
    /// the encoding that it has unless it says another, that of what names it (CSS Syntax 3, "environment encoding").
    pub(crate) fn begins(
        &mut self,
        hint: &Hint,
        url: &Url,
        policy: Option<ReferrerPolicy>,
        around: Charset,
    ) -> Option<Charset> {
        if hint.destination != Destination::Style {
            return None;
        }
        if !self.files.contains_key(&hint.url) {
            let for_paper = !hint.applies && matches!(hint.source, Source::Stylesheet | Source::Import);
            if for_paper || self.early >= MAX_EARLY_SHEETS {
                return None;
            }
            self.early += 1;
        }
        let file = self.files.entry(hint.url.clone()).or_default();
        if file.state != State::Awaited {
            return None;
        }
        file.state = State::Reading;
        file.location = Some(url.clone());
        for id in &file.sheets {
            self.styles.redirected(*id, url);
        }
        if let Some(policy) = policy {
            self.policies.insert(url.clone(), policy);
        }
        let importing = file.sheets.first().filter(|_| matches!(hint.initiator, Initiator::Sheet(_)));
        Some(importing.map_or(around, |id| self.styles.charset(*id)))
    }

    /// The next text of the file hinted as `url`, which is in this encoding.
    pub(crate) fn feed(
        &mut self,
        url: &Url,
        text: &str,
        charset: Charset,
        tree: &Tree,
        context: &mut Context,
    ) {
        let Some(file) = self.files.get_mut(url) else { return };
        file.charset = Some(charset);
        if file.sheets.is_empty() && file.state == State::Reading {
            if file.early.len() + text.len() > MAX_EARLY {
                file.early = String::new();
                file.state = State::Lost;
                return;
            }
            file.early.push_str(text);
        }
        // Several elements may name one file; all but the first read nothing.
        if let Some(id) = file.sheets.first() {
            self.styles.encoded(*id, charset);
            self.styles.feed(*id, text);
        }
        self.give(tree, context);
    }

    /// The file is complete.
    pub(crate) fn end(&mut self, url: &Url, tree: &Tree, context: &mut Context) {
        let Some(file) = self.files.get_mut(url) else { return };
        if file.state == State::Reading {
            file.state = State::Ended;
        }
        for (at, id) in file.sheets.clone().into_iter().enumerate() {
            if at == 0 { self.styles.end(id, tree) } else { self.styles.lost(id, tree) }
        }
        self.give(tree, context);
    }

    /// The file that `hint` named will not be read.
    pub(crate) fn lost(&mut self, hint: &Hint, tree: &Tree, context: &mut Context) {
        if hint.destination != Destination::Style {
            return;
        }
        let Some(file) = self.files.get_mut(&hint.url) else { return };
        if matches!(file.state, State::Ended | State::Lost) {
            return;
        }
        file.state = State::Lost;
        file.early = String::new();
        for id in file.sheets.clone() {
            self.styles.lost(id, tree);
        }
        self.give(tree, context);
    }

    /// Element `node` is a lazy image or frame, `far` down the page.
    pub(crate) fn lazy(&mut self, node: Option<NodeId>, hint: Hint, far: bool, context: &Context) {
        if self.lazy.len() < context.options.max_hints {
            self.lazy.push_back(Lazy { node, hint, far });
        }
    }

    /// Turns what was found into hints.
    pub(crate) fn give(&mut self, tree: &Tree, context: &mut Context) {
        if self.lazy.is_empty() && !self.styles.has_found() {
            return;
        }
        // A sheet that was read before may name more.
        loop {
            let found = self.styles.take();
            if found.is_empty() {
                break;
            }
            for found in found {
                self.give_one(found, tree, context);
            }
        }
        self.give_lazy(tree, context);
    }

    /// Of what is lazy, browsers ask for what is displayed (HTML, "start intersection-observing a lazy loading element":
    /// what has no box meets no viewport).
    fn give_lazy(&mut self, tree: &Tree, context: &mut Context) {
        let styles = &self.styles;
        let shown = |lazy: &Lazy| lazy.node.map_or(Some(true), |node| styles.displays(node, tree));
        while let Some(shown) = self.lazy.front().and_then(shown) {
            let Some(Lazy { hint, far, .. }) = self.lazy.pop_front() else { return };
            match shown {
                true if far => context.held.hold(hint),
                true => context.add(hint),
                false => context.held.hide(hint),
            }
        }
    }

    fn give_one(&mut self, found: Found, tree: &Tree, context: &mut Context) {
        if let Some(sheet) = found.sheet {
            if self.alone {
                self.styles.lost(sheet, tree);
            } else {
                self.belongs(sheet, found.url.clone(), tree);
            }
        }
        // As files of another origin are not fetched for filters.
        if found.mode == Mode::SameOrigin && found.url.origin() != context.document.origin() {
            return;
        }
        let referrer_policy = match &found.initiator {
            // Referrer Policy, §"integration with CSS": the sheet's own policy, which may be none.
            Initiator::Sheet(sheet) => self.policies.get(sheet).copied(),
            _ => context.policy,
        };
        context.add(Hint {
            mode: found.mode,
            timing: match found.destination {
                Destination::Style if found.applies => Timing::Blocking,
                Destination::Style => Timing::Lazy,
                _ => Timing::Async,
            },
            applies: found.applies,
            referrer_policy,
            initiator: found.initiator,
            confidence: found.confidence,
            below_fold: found.below_fold,
            format: found.format,
            ..context.hint(found.url, found.destination, found.source)
        });
    }
}
