//! What a script loads, from its tokens: static imports and re-exports, `import("…")` with a literal, and strings
//! that look like paths of resources. Reads shape, not meaning: code that never runs counts like any other.

use super::lexer::{Lexer, Token};
use super::literal;

/// Something a script names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// `import … from "x"`, `import "x"`, `export … from "x"`.
    Static { specifier: String, kind: ModuleKind },
    /// `import("x")`; whether it stands where the script itself runs, and not in braces or behind `=>`.
    Dynamic { specifier: String, kind: ModuleKind, at_once: bool },
    /// A string that looks like a resource's path; whether `import.meta.url` is its base.
    Literal { path: String, place: Place, of_module: bool },
    /// `import.meta.resolve("x")`.
    Resolved { specifier: String },
}

/// What stands around a path, and says how it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing that says it.
    Alone,
    /// The list of the files of chunks that Vite's helper preloads; whether its helper says `crossorigin` for styles too.
    ChunkFiles { styles_with_cors: bool },
    /// `new Worker(`.
    Worker,
}

/// What an import says that it imports (HTML, "module type from module request").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModuleKind {
    Script,
    Json,
    Css,
}

/// Where the finder is in a statement that it follows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Idle,
    /// After `import`.
    Import {
        at_once: bool,
    },
    /// In the clause of an `import` or `export`, up to `from`; whether `from` was the word before.
    Clause {
        from: bool,
    },
    /// After `export`.
    Export,
    /// A static import is complete but for its attributes.
    Attributes {
        specifier: String,
        step: Attribute,
    },
    /// After `import(`.
    Call {
        at_once: bool,
    },
    /// After `import("x"`.
    Called {
        specifier: String,
        at_once: bool,
        step: Attribute,
    },
    /// After a literal; how much of `, import.meta.url` followed it.
    Literal {
        path: String,
        place: Place,
        step: usize,
    },
    /// How much of `meta.resolve(` followed `import.`.
    Meta {
        step: usize,
    },
    /// After `import.meta.resolve("x"`.
    Resolved {
        specifier: String,
    },
}

/// How far `with { type: "json" }` has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attribute {
    None,
    With,
    Open,
    Type,
    /// It is no script.
    Kind(ModuleKind),
    /// It is nothing that browsers know.
    Foreign,
}

impl Attribute {
    fn kind(self) -> ModuleKind {
        match self {
            Attribute::Kind(kind) => kind,
            _ => ModuleKind::Script,
        }
    }
}

/// The token before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Dot,
    Arrow,
    Equals,
    Plus,
    /// A word that makes a request of another kind than a hint would; whether it is `Worker`.
    Loader(bool),
    /// In the brackets of one, `new URL(` and `"" +` within them passed over.
    LoaderCall(bool),
    Other,
}

/// Where the list of files of chunks is that Vite writes: `__vite__mapDeps=(i,m=…,d=(m.f||(m.f=["a.js","a.css"])))=>…`. Older ones
/// call it by a name of its own, and their helper says `crossorigin` for scripts alone (until 5.4.2, vitejs/vite#17930).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkFiles {
    Elsewhere,
    /// It is named, and the next bracket opens it; whether it is one of the older.
    Named {
        old: bool,
    },
    Within {
        old: bool,
    },
}

impl ChunkFiles {
    fn after(self, token: &Token<'_>) -> Self {
        match (self, token) {
            (_, Token::Word("__vite__mapDeps")) => ChunkFiles::Named { old: false },
            (_, Token::Word("__vite__fileDeps" | "viteFileDeps")) => ChunkFiles::Named { old: true },
            (ChunkFiles::Named { old }, Token::Mark(b'[')) => ChunkFiles::Within { old },
            (ChunkFiles::Named { .. }, Token::Mark(b';'))
            | (ChunkFiles::Within { .. }, Token::Mark(b']')) => ChunkFiles::Elsewhere,
            _ => self,
        }
    }
}

/// Whose requests a hint for what they are given would not match: workers that may run already and what workers import, `fetch()` with
/// whatever options, and what only tells the origin something. How a worker of the page's own is asked for is known.
const LOADERS: [&str; 6] = ["Worker", "SharedWorker", "importScripts", "register", "fetch", "sendBeacon"];

/// Reads one script.
#[derive(Debug)]
pub(crate) struct Finder {
    lexer: Lexer,
    /// Static imports exist only there.
    module: bool,
    state: State,
    before: Before,
    chunk_files: ChunkFiles,
}

impl Finder {
    pub(crate) fn new(module: bool) -> Self {
        Finder {
            lexer: Lexer::new(),
            module,
            state: State::Idle,
            before: Before::Other,
            chunk_files: ChunkFiles::Elsewhere,
        }
    }

    pub(crate) fn is_module(&self) -> bool {
        self.module
    }

    /// Reads the next piece of the script.
    pub(crate) fn feed(&mut self, text: &str, found: &mut Vec<Finding>) {
        self.lexer.feed(text);
        self.drain(found);
    }

    /// The script is complete.
    pub(crate) fn end(&mut self, found: &mut Vec<Finding>) {
        self.lexer.end();
        self.drain(found);
        settle(&mut self.state, found);
    }

    fn drain(&mut self, found: &mut Vec<Finding>) {
        loop {
            let nested = self.lexer.is_nested();
            let Some(token) = self.lexer.next() else { return };
            let before = self.before;
            self.chunk_files = self.chunk_files.after(&token);
            let place = match (before, self.chunk_files) {
                (Before::LoaderCall(true), _) => Place::Worker,
                (_, ChunkFiles::Within { old }) => Place::ChunkFiles { styles_with_cors: !old },
                _ => Place::Alone,
            };
            self.before = match token {
                Token::Mark(b'.') => Before::Dot,
                Token::Mark(b'=') => Before::Equals,
                Token::Mark(b'>') if before == Before::Equals => Before::Arrow,
                // `(` between an arrow and what it gives changes nothing.
                Token::Mark(b'(') if before == Before::Arrow => Before::Arrow,
                // `"" +` of what is called changes nothing.
                Token::Mark(b'+') if !matches!(before, Before::LoaderCall(_)) => Before::Plus,
                Token::Word(word) if LOADERS.contains(&word) => Before::Loader(word == "Worker"),
                Token::Mark(b'(') if let Before::Loader(worker) | Before::LoaderCall(worker) = before => {
                    Before::LoaderCall(worker)
                }
                Token::Word("new" | "URL") | Token::Mark(b'+') if matches!(before, Before::LoaderCall(_)) => {
                    before
                }
                Token::Text(ref text) if text.is_empty() && matches!(before, Before::LoaderCall(_)) => before,
                _ => Before::Other,
            };
            if self.state == State::Idle {
                // Nearly all tokens end here.
                match token {
                    Token::Word("import") if before != Before::Dot => {
                        self.state = State::Import { at_once: !nested && before != Before::Arrow };
                    }
                    Token::Word("export") if self.module && !nested && before != Before::Dot => {
                        self.state = State::Export;
                    }
                    Token::Text(text)
                        if !matches!(before, Before::Plus | Before::LoaderCall(false))
                            && literal::is_path(&text) =>
                    {
                        self.state = State::Literal { path: text.into_owned(), place, step: 0 };
                    }
                    Token::Text(text) if before == Before::Plus => {
                        if let Some(path) = literal::behind_scheme(&text) {
                            self.state = State::Literal { path: path.into(), place, step: 0 };
                        }
                    }
                    _ => {}
                }
                continue;
            }
            step(&mut self.state, token, place, self.module, nested, found);
        }
    }
}

/// What stands between `import.` and what is resolved.
const RESOLVE: [Token<'_>; 4] =
    [Token::Word("meta"), Token::Mark(b'.'), Token::Word("resolve"), Token::Mark(b'(')];
const RESOLVE_OPEN: usize = RESOLVE.len();

/// Takes a token in while a statement is followed.
fn step(
    state: &mut State,
    token: Token<'_>,
    place: Place,
    module: bool,
    nested: bool,
    found: &mut Vec<Finding>,
) {
    match (&mut *state, token) {
        (State::Import { at_once }, Token::Mark(b'(')) => *state = State::Call { at_once: *at_once },
        (State::Import { .. }, Token::Text(text)) if module && !nested => {
            *state = State::Attributes { specifier: text.into_owned(), step: Attribute::None };
        }
        (State::Import { .. }, Token::Word(_) | Token::Mark(b'{' | b'*')) if module && !nested => {
            *state = State::Clause { from: false };
        }
        (State::Import { .. }, Token::Mark(b'.')) => *state = State::Meta { step: 0 },
        (State::Meta { step: RESOLVE_OPEN }, Token::Text(text)) => {
            *state = State::Resolved { specifier: text.into_owned() };
        }
        (State::Meta { step }, token) if RESOLVE.get(*step) == Some(&token) => *step += 1,
        // `import.meta.resolve("x" + y)`: no literal.
        (State::Resolved { .. }, Token::Mark(b'+')) => *state = State::Idle,
        (State::Export, Token::Mark(b'{' | b'*')) => *state = State::Clause { from: false },
        (State::Clause { from }, Token::Word(word)) => *from = word == "from",
        (State::Clause { from: true }, Token::Text(text)) => {
            *state = State::Attributes { specifier: text.into_owned(), step: Attribute::None };
        }
        (State::Clause { from }, Token::Text(_) | Token::Mark(b',' | b'{' | b'}' | b'*')) => *from = false,
        (State::Attributes { step: Attribute::None, .. }, Token::Word("with")) => set(state, Attribute::With),
        // What attributes were called before; nobody reads it any more.
        (State::Attributes { step: Attribute::None, .. }, Token::Word("assert")) => {
            set(state, Attribute::Foreign);
        }
        (State::Attributes { step: Attribute::With, .. }, Token::Mark(b'{')) => set(state, Attribute::Open),
        (State::Attributes { step: Attribute::Foreign, .. }, Token::Mark(b'}')) => *state = State::Idle,
        (
            State::Attributes { step: Attribute::Open | Attribute::Type | Attribute::Kind(_), .. },
            Token::Mark(b'}'),
        ) => settle(state, found),
        (State::Call { at_once }, Token::Text(text)) => {
            *state = State::Called { specifier: text.into_owned(), at_once: *at_once, step: Attribute::None };
        }
        (State::Called { step: Attribute::None, .. }, Token::Mark(b',')) => set(state, Attribute::Open),
        (State::Called { step: Attribute::Foreign, .. }, Token::Mark(b')')) => *state = State::Idle,
        (State::Called { .. }, Token::Mark(b')')) => settle(state, found),
        // `import("x" + y)`: no literal.
        (State::Called { step: Attribute::None, .. }, _) => *state = State::Idle,
        (
            State::Attributes { step: step @ (Attribute::Open | Attribute::Type), .. }
            | State::Called { step: step @ (Attribute::Open | Attribute::Type), .. },
            token,
        ) => match (token, *step) {
            (Token::Word("type"), _) => *step = Attribute::Type,
            (Token::Text(text), Attribute::Open) if text == "type" => *step = Attribute::Type,
            (Token::Text(kind), Attribute::Type) => {
                *step = match &*kind {
                    "json" => Attribute::Kind(ModuleKind::Json),
                    "css" => Attribute::Kind(ModuleKind::Css),
                    _ => Attribute::Foreign,
                }
            }
            (Token::Mark(b';'), _) => settle(state, found),
            _ => {}
        },
        (State::Called { .. }, _) => {}
        // A part of a path.
        (State::Literal { step: 0, .. }, Token::Mark(b'+')) => *state = State::Idle,
        (State::Literal { path, place: around, step: matched }, token) => {
            let expected = [
                Token::Mark(b','),
                Token::Word("import"),
                Token::Mark(b'.'),
                Token::Word("meta"),
                Token::Mark(b'.'),
                Token::Word("url"),
            ];
            if expected[*matched] == token {
                *matched += 1;
                if *matched == expected.len() {
                    let (path, place) = (std::mem::take(path), *around);
                    found.push(Finding::Literal { path, place, of_module: true });
                    *state = State::Idle;
                }
                return;
            }
            let behind = match *matched {
                // `["a.png", import("x")]`
                2 => Some(State::Import { at_once: false }),
                // `["a.png", import.meta.resolve("x")]`
                matched @ 3..6 => Some(State::Meta { step: matched - 3 }),
                _ => None,
            };
            settle(state, found);
            if let Some(behind) = behind {
                *state = behind;
                return step(state, token, place, module, nested, found);
            }
            idle(state, token, place);
        }
        (_, token) => {
            settle(state, found);
            idle(state, token, place);
        }
    }
}

/// What begins a statement may come right behind another one.
fn idle(state: &mut State, token: Token<'_>, place: Place) {
    *state = match token {
        Token::Word("import") => State::Import { at_once: false },
        Token::Word("export") => State::Export,
        Token::Text(text) if literal::is_path(&text) => {
            State::Literal { path: text.into_owned(), place, step: 0 }
        }
        _ => State::Idle,
    };
}

fn set(state: &mut State, to: Attribute) {
    if let State::Attributes { step, .. } | State::Called { step, .. } = state {
        *step = to;
    }
}

/// Nothing more belongs to what was followed: gives it if it is complete.
fn settle(state: &mut State, found: &mut Vec<Finding>) {
    match std::mem::replace(state, State::Idle) {
        State::Attributes { step: Attribute::Foreign, .. } => {}
        State::Attributes { specifier, step } => {
            found.push(Finding::Static { specifier, kind: step.kind() });
        }
        State::Called { step: Attribute::Foreign, .. } => {}
        State::Called { specifier, at_once, step } => {
            found.push(Finding::Dynamic { specifier, kind: step.kind(), at_once });
        }
        State::Literal { path, place, .. } => {
            found.push(Finding::Literal { path, place, of_module: false });
        }
        State::Resolved { specifier } => found.push(Finding::Resolved { specifier }),
        _ => {}
    }
}
