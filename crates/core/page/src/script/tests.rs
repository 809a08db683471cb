//! What is found in scripts, told in JavaScript.

use super::{Finder, Finding, ModuleKind, Place};
use proptest::prelude::*;

fn found_in_pieces(text: &str, module: bool, size: usize) -> Vec<Finding> {
    let mut finder = Finder::new(module);
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        finder.feed(piece, &mut found);
        rest = tail;
    }
    finder.end(&mut found);
    found
}

fn as_what(kind: ModuleKind) -> &'static str {
    match kind {
        ModuleKind::Script => "",
        ModuleKind::Json => " as json",
        ModuleKind::Css => " as css",
    }
}

fn told(text: &str, module: bool) -> Vec<String> {
    let found = found_in_pieces(text, module, usize::MAX);
    found
        .into_iter()
        .map(|finding| match finding {
            Finding::Static { specifier, kind } => specifier + as_what(kind),
            Finding::Dynamic { specifier, kind, at_once: true } => {
                format!("now {specifier}{}", as_what(kind))
            }
            Finding::Dynamic { specifier, kind, .. } => format!("later {specifier}{}", as_what(kind)),
            Finding::Literal { path, place, of_module } => {
                let around = match place {
                    Place::Alone => "",
                    Place::ChunkFiles { styles_with_cors: true } => "chunk's ",
                    Place::ChunkFiles { .. } => "old chunk's ",
                    Place::Worker => "worker's ",
                };
                format!("{around}{} {path}", if of_module { "own" } else { "path" })
            }
            Finding::Resolved { specifier } => format!("resolved {specifier}"),
        })
        .collect()
}

#[test]
fn modules_tell_what_they_load() {
    let cases: [(&str, &[&str]); 61] = [
        ("import 'a'", &["a"]),
        ("import\"a\";import\"b\"", &["a", "b"]),
        ("import 'a'\nimport 'b'\nexport {x} from 'c'", &["a", "b", "c"]),
        ("import x from 'a'", &["a"]),
        ("import x, {y as z} from 'a'", &["a"]),
        ("import * as x from 'a'", &["a"]),
        ("import{a as b,c}from\"./d.js\";b()", &["./d.js"]),
        ("import {default as from} from 'a'", &["a"]),
        ("import from from 'a'", &["a"]),
        ("import {'string name' as x} from 'a'", &["a"]),
        ("import /* c */ x // d\n from 'a'", &["a"]),
        ("export * from 'a'", &["a"]),
        ("export * as ns from 'a'", &["a"]),
        ("export {x, y as z} from 'a'", &["a"]),
        ("export {x}; const from = 'a'", &[]),
        ("export {x}\nfrom('a')", &[]),
        ("export default 'a'", &[]),
        ("export const x = 'a'", &[]),
        ("import data from './d.json' with {type: 'json'}", &["./d.json as json"]),
        ("import sheet from './s.css' with {'type': \"css\"}; import 'b'", &["./s.css as css", "b"]),
        ("import x from 'a' with {type: 'json',}; import 'b'", &["a as json", "b"]),
        ("import x from 'a' with {type: 'wasm'}; import 'b'", &["b"]),
        ("import x from 'a' with {}", &["a"]),
        ("import x from 'a' assert {type: 'json'}", &[]),
        ("import('a')", &["now a"]),
        ("await import(\"a\")", &["now a"]),
        ("import(`a`)", &["now a"]),
        ("import(`a${b}`)", &[]),
        ("import('a' + b)", &[]),
        ("import(x)", &[]),
        ("import('a', {with: {type: 'json'}})", &["now a as json"]),
        ("import('a', {})", &["now a"]),
        ("() => import('a')", &["later a"]),
        ("() => (import('a'))", &["later a"]),
        ("function f() { import('a') }", &["later a"]),
        ("if (x) { import('a') }", &["later a"]),
        ("x.import('a'); y?.import('b')", &[]),
        ("import.meta.url", &[]),
        ("new URL('./w.js', import.meta.url)", &["own ./w.js"]),
        ("import.meta.resolve('lib/a.mjs')", &["resolved lib/a.mjs"]),
        ("x(import.meta.resolve(`a`),'b.png')", &["resolved a", "path b.png"]),
        ("import.meta.resolve('lib/' + x); import.meta.env", &[]),
        ("x.import.meta.resolve('a'); import.meta\nimport 'b'", &["b"]),
        ("f('a.png', import.meta.resolve('b/c.js'))", &["path a.png", "resolved b/c.js"]),
        ("f('a.png', import.meta.env.X)", &["path a.png"]),
        ("new Worker(new URL('./w.js', import.meta.url), {type: 'module'})", &["worker's own ./w.js"]),
        (
            "new Worker(new URL(''+new URL('w/w.js',import.meta.url).href,import.meta.url))",
            &["worker's own w/w.js"],
        ),
        ("new Worker('/a/w.js'); i = 'b.png'", &["worker's path /a/w.js", "path b.png"]),
        ("new Worker(x + '/a/w.js')", &[]),
        ("f('x/w.js', import('a'))", &["path x/w.js", "later a"]),
        ("// import 'a'\n/* import 'b' */ import 'c'", &["c"]),
        ("'import \"a\"'; \"import('b')\"; `import 'c'`", &[]),
        ("`${import('a')}`", &["later a"]),
        ("`${`import('a')`} ${x}`; import('b')", &["now b"]),
        ("x = /import('a')/; import('b')", &["now b"]),
        ("x = /[/'\"]/; import('b')", &["now b"]),
        ("a / b / import('c')", &["now c"]),
        ("if (x) /'/.test(y); import('a')", &["now a"]),
        ("(x) / y; import('a') / 'b'", &["now a"]),
        ("function f() {} /'/.test(x); import('a')", &["now a"]),
        ("x = {} / 2; import('a'); y = 'b' / 2", &["now a"]),
    ];
    for (text, expected) in cases {
        assert_eq!(told(text, true), expected, "{text}");
    }
}

#[test]
fn classic_scripts_import_only_dynamically() {
    assert_eq!(told("import 'a'; export * from 'b'; import('c')", false), ["now c"]);
    assert_eq!(told("i.src = 'img/a.png'; l.href = \"\\/a.css\"", false), ["path img/a.png", "path /a.css"]);
    assert_eq!(told("a = x++ / 2; b = 'a.png' / 3", false), ["path a.png"]);
}

#[test]
fn paths_that_are_parts_or_asked_for_otherwise_are_no_literals() {
    for text in [
        "i.src = 'img/a.png' + x",
        "i.src = x + 'img/a.png'",
        "i.src = x + '://cdn.test/' + y + '/a.png'",
        "i.src = x + '://cdn.test/a.png' + y",
        "i.src = `img/${x}.png`",
        "i.src = '/click.gif?vote=1'",
        "new Worker('/w.js' + x)",
        "new SharedWorker('/w.js', {})",
        "importScripts('/w.js')",
        "navigator.serviceWorker.register('/sw.js', {scope: '/'})",
        "window.fetch('/a.json')",
        "navigator.sendBeacon('/b.gif')",
    ] {
        assert_eq!(told(text, false), Vec::<String>::new(), "{text}");
    }
    assert_eq!(told("fetch(x); i.src = 'a.png'; x++; y = 'b.png'", false), ["path a.png", "path b.png"]);
    // Only the scheme stands before it, and that is nearly always the page's own.
    assert_eq!(told("s.src = p + '://cdn.test/w.js'; f()", false), ["path //cdn.test/w.js"]);
}

#[test]
fn files_of_chunks_are_told_from_other_paths() {
    let cases: [(&str, &[&str]); 4] = [
        (
            "const __vite__mapDeps=(i,m=__vite__mapDeps,d=(m.f||(m.f=[\"a/b.js\",\"a/b.css\"])))=>i.map(i=>d[i]); \
             x(__vite__mapDeps([0,1])); y = ['c.css']",
            &["chunk's path a/b.js", "chunk's path a/b.css", "path c.css"],
        ),
        (
            "const __vite__fileDeps=['a.css'],__vite__mapDeps=i=>i.map(i=>__vite__fileDeps[i]); y = ['c.css']",
            &["old chunk's path a.css", "path c.css"],
        ),
        (
            "function __vite__mapDeps(n){if(!__vite__mapDeps.viteFileDeps){__vite__mapDeps.viteFileDeps=['a.css']}\
             return n.map(i=>__vite__mapDeps.viteFileDeps[i])} y='c.css'",
            &["old chunk's path a.css", "path c.css"],
        ),
        ("x(__vite__mapDeps); y = ['c.css']", &["path c.css"]),
    ];
    for (text, expected) in cases {
        assert_eq!(told(text, true), expected, "{text}");
    }
}

#[test]
fn what_is_long_or_deep_is_passed_over() {
    let long = "x".repeat(100_000);
    for text in [
        format!("var a = '{long}/a.png'; import('b')"),
        format!("var a = `{long}/a.png ${{1}} {long}`; import('b')"),
        format!("/* {long} */ import('b')"),
        format!("var {long} = 1; import('b')"),
        format!("var a = /{long}\nimport('b')"),
    ] {
        assert_eq!(told(&text, true).last().map(String::as_str), Some("now b"), "{}", &text[..20]);
    }
    assert_eq!(told(&("(".repeat(100_000) + "import('a')"), true), Vec::<String>::new());
    assert_eq!(told(&("`${".repeat(100_000) + "import('a')"), true), Vec::<String>::new());
}

#[test]
fn marks_of_two_bytes_may_be_cut_in_their_middle() {
    let text = "x++/'e/f.png'+y; a=>/'g.png'/; b--/'h/i.png'";
    assert_eq!(found_in_pieces(text, false, 1), found_in_pieces(text, false, usize::MAX));
    assert!(!found_in_pieces(text, false, 1).is_empty());
}

fn source() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "import 'a';",
        "import x from \"b\"",
        "export * from 'c' with {type: 'json'}\n",
        "import(",
        "'d'",
        ")",
        "{",
        "}",
        "(",
        "`",
        "${",
        "\\",
        "'",
        "\"",
        "/",
        "/*",
        "*/",
        "//",
        "\n",
        " ",
        "x",
        "if",
        "=>",
        ".",
        "'e/f.png'",
        "é",
        "1.5",
        ", import.meta.url",
        "[",
        "]",
        "return",
        "=",
        "++",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cut_of_a_script_finds_the_same(text in source(), module: bool, size in 1usize..9) {
        prop_assert_eq!(found_in_pieces(&text, module, usize::MAX), found_in_pieces(&text, module, size));
    }
}
