//! Scripts: modules and their maps, and what else they name.

use crate::loading::{load, names, short};
use farhop_page::{Confidence, Destination, Initiator, Mode, Source, Timing};
use url::Url;

#[test]
fn modules_are_followed_with_import_maps() {
    let html = "<script type=importmap>{\"imports\": {\"lib\": \"./lib.js\", \"ui/\": \"/ui/\"}}</script>\
                <script type=module src=main.js></script>\
                <script type=module>import './inline.js'; import('./later.js'); () => import('./maybe.js')</script>";
    let hints = load(
        html,
        &[
            ("dir/main.js", "import x from 'lib'; import {y} from 'ui/button.js'; export * from './re.js'"),
            ("dir/lib.js", "import 'unknown'; import './main.js'; import './deep/one.js'"),
            ("dir/deep/one.js", "import '../two.js'"),
        ],
    );
    assert_eq!(
        names(&hints),
        [
            "dir/main.js",
            "dir/inline.js",
            "dir/later.js",
            "dir/maybe.js",
            "dir/lib.js",
            "ui/button.js",
            "dir/re.js",
            "dir/deep/one.js",
            "dir/two.js"
        ]
    );
    let of = |name: &str| hints.iter().find(|hint| short(hint) == name).unwrap();
    assert_eq!((of("dir/lib.js").mode, of("dir/lib.js").source), (Mode::Cors, Source::StaticImport));
    assert_eq!(of("dir/two.js").timing, Timing::Deferred);
    assert_eq!(
        of("dir/two.js").initiator,
        Initiator::Module(Url::parse("http://site.test/dir/deep/one.js").unwrap())
    );
    assert_eq!(of("dir/inline.js").initiator, Initiator::Document);
    assert_eq!(of("dir/inline.js").confidence, Confidence::Sure);
    assert_eq!(of("dir/later.js").confidence, Confidence::Likely);
    assert_eq!(of("dir/maybe.js").confidence, Confidence::Guess);
}

#[test]
fn imports_inherit_the_nonce_and_are_checked_by_the_map() {
    let hints = load(
        "<script type=importmap>{\"integrity\": {\"./dep.js\": \"sha256-x\"}}</script>\
         <script type=module nonce=n src=main.js></script><script nonce=m>import('./late.js')</script>\
         <script type=module src=bare.js></script>",
        &[
            ("dir/main.js", "import './dep.js'"),
            ("dir/dep.js", "import './deep.js'"),
            ("dir/bare.js", "import './x.js'"),
        ],
    );
    let told: Vec<_> = hints
        .iter()
        .map(|hint| (short(hint), hint.nonce.as_deref().unwrap_or_default(), hint.integrity.as_deref()))
        .collect();
    let expected = [
        ("dir/main.js", "n", None),
        ("dir/late.js", "m", None),
        ("dir/bare.js", "", None),
        ("dir/dep.js", "n", Some("sha256-x")),
        ("dir/x.js", "", None),
        ("dir/deep.js", "n", None),
    ];
    assert_eq!(told, expected.map(|(name, nonce, integrity)| (name.to_owned(), nonce, integrity)));
}

#[test]
fn what_an_element_says_of_its_module_counts_before_what_the_map_says() {
    let hints = load(
        "<script type=importmap>{\"integrity\": {\"./a.js\": \"sha256-a\", \"./b.js\": \"sha256-b\", \"./c.js\": \"sha256-c\"}}\
         </script><script type=module src=a.js></script><script type=module src=b.js integrity=sha256-own></script>\
         <link rel=modulepreload href=c.js><script src=c.js></script><script type=module src=d.js></script>",
        &[],
    );
    let told: Vec<_> = hints.iter().map(|hint| (short(hint), hint.mode, hint.integrity.as_deref())).collect();
    let expected = [
        ("dir/a.js", Mode::Cors, Some("sha256-a")),
        ("dir/b.js", Mode::Cors, Some("sha256-own")),
        ("dir/c.js", Mode::Cors, Some("sha256-c")),
        ("dir/c.js", Mode::NoCors, None),
        ("dir/d.js", Mode::Cors, None),
    ];
    assert_eq!(told, expected.map(|(name, mode, integrity)| (name.to_owned(), mode, integrity)));
}

#[test]
fn imports_of_inline_modules_name_the_base_as_their_referrer() {
    let script = "<script type=module>import './a.js'</script>";
    assert_eq!(load(script, &[])[0].initiator, Initiator::Document);
    let based = &load(&format!("<base href=/base/>{script}"), &[])[0];
    assert_eq!(based.initiator, Initiator::Module(Url::parse("http://site.test/base/").unwrap()));
    assert_eq!(short(based), "base/a.js");
}

#[test]
fn paths_in_scripts_are_guesses_against_the_document() {
    let hints = load(
        "<script src=sub/a.js></script><script>img.src = 'inline.png'</script>",
        &[("dir/sub/a.js", "load('data/x.json'); s = 'Vue.js'; u = new URL('w.js', import.meta.url)")],
    );
    assert_eq!(names(&hints), ["dir/sub/a.js", "dir/inline.png", "dir/data/x.json"]);
    assert!(
        hints[1..].iter().all(|hint| hint.confidence == Confidence::Guess && hint.source == Source::Literal)
    );
    assert_eq!(hints[2].destination, Destination::Fetch);
}

#[test]
fn files_of_vites_chunks_are_asked_for_as_its_helper_does_below_what_was_built() {
    let list =
        |files: &str| format!("const __vite__mapDeps=(i,m=__vite__mapDeps,d=(m.f||(m.f=[{files}])))=>i");
    let built = list("'assets/Home.js','assets/Home.css','other/far.css'");
    let relative =
        list("'./Home.js','../x.css'") + ";theme='assets/own.css';const __vite__fileDeps=['./old.css'];";
    let hints = load(
        "<script type=module nonce=n src=/app/assets/index.js></script><script type=module src=/rel/a/index.js></script>",
        &[("app/assets/index.js", &built), ("rel/a/index.js", &relative)],
    );
    let told: Vec<_> = hints[2..].iter().map(|hint| (short(hint), hint.mode)).collect();
    let expected = [
        ("app/assets/Home.js", Mode::Cors),
        ("app/assets/Home.css", Mode::Cors),
        ("dir/other/far.css", Mode::Cors),
        ("rel/a/Home.js", Mode::Cors),
        ("rel/x.css", Mode::Cors),
        ("dir/assets/own.css", Mode::NoCors),
        ("rel/a/old.css", Mode::NoCors),
    ];
    assert_eq!(told, expected.map(|(name, mode)| (name.to_owned(), mode)));
    assert!(hints[2..].iter().all(|hint| hint.confidence == Confidence::Guess));
    assert_eq!(hints[3].nonce.as_deref(), Some("n"));
}

#[test]
fn what_a_worker_runs_is_guessed_as_workers_ask_for_it() {
    let hints = load(
        "<script type=module src=sub/a.js></script>",
        &[(
            "dir/sub/a.js",
            "new Worker(new URL('./w.mjs', import.meta.url)); new Worker('w/b.js'); new Worker('/x.css')",
        )],
    );
    assert_eq!(names(&hints), ["dir/sub/a.js", "dir/sub/w.mjs", "dir/w/b.js"]);
    assert!(
        hints[1..]
            .iter()
            .all(|hint| (hint.destination, hint.mode) == (Destination::Worker, Mode::SameOrigin)
                && hint.initiator == Initiator::Document
                && hint.confidence == Confidence::Guess)
    );
}

#[test]
fn what_a_module_resolves_is_guessed_by_the_import_map() {
    let hints = load(
        "<script type=importmap>{\"imports\": {\"lib/\": \"/m/libdir/\", \"icon\": \"/i.svg\"}}</script>\
         <script type=module src=sub/a.js></script>",
        &[(
            "dir/sub/a.js",
            "import.meta.resolve('lib/z.mjs'); f(import.meta.resolve('icon')); import.meta.resolve('./y.mjs'); \
             import.meta.resolve('bare/x.mjs')",
        )],
    );
    assert_eq!(names(&hints), ["dir/sub/a.js", "m/libdir/z.mjs", "i.svg", "dir/sub/y.mjs"]);
    assert!(hints[1..].iter().all(|hint| hint.confidence == Confidence::Guess));
}

#[test]
fn what_a_page_loads_by_the_attribute_of_its_body_is_guessed() {
    let body = "<body onload=\"MM_preloadImages('i/over.gif', &quot;b.gif&quot;)\"><img src=a.gif onload=\"x('no.gif')\">";
    let hints = load(body, &[]);
    assert_eq!(names(&hints), ["dir/i/over.gif", "dir/b.gif", "dir/a.gif"]);
    let guesses = hints.iter().filter(|hint| hint.confidence == Confidence::Guess);
    assert_eq!(guesses.count(), 2);
    let policy = "<meta http-equiv=content-security-policy content=\"script-src 'self' 'unsafe-inline'; script-src-attr 'none'\">";
    assert_eq!(names(&load(&format!("{policy}{body}"), &[])), ["dir/a.gif"]);
}

#[test]
fn what_is_one_of_few_in_a_script_is_guessed_before_what_stands_in_a_list() {
    let chunks: String = (0..40).map(|at| format!("'assets/Page{at}-x.js',")).collect();
    let routes: String = (0..30).map(|at| format!("()=>import('./view{at}.js');")).collect();
    let bundle = format!(
        "import './dep.js';const map=[{chunks}];{routes}logo='img/logo.svg';theme='css/dark.css';again='img/logo.svg';\
         import('./now.js')"
    );
    let hints = load("<script type=module src=app.js></script>", &[("dir/app.js", &bundle)]);
    let mut expected = vec!["dir/app.js", "dir/dep.js", "dir/now.js", "dir/img/logo.svg", "dir/css/dark.css"];
    let listed: Vec<String> = (0..8).map(|at| format!("dir/assets/Page{at}-x.js")).collect();
    expected.extend(listed.iter().map(String::as_str));
    assert_eq!(names(&hints), expected);
    let is_guess = |at: usize| hints[at].confidence == Confidence::Guess;
    assert!((0..3).all(|at| !is_guess(at)) && (3..hints.len()).all(is_guess));
}

#[test]
fn the_guesses_of_one_script_leave_room_for_those_of_the_next() {
    let list: String = (0..300).map(|at| format!("'l{at}.png',")).collect();
    let html = "<script src=a.js></script><script src=b.js></script>";
    let hints = load(html, &[("dir/a.js", &list), ("dir/b.js", "show('b.png')")]);
    assert_eq!(hints.len(), 2 + 8 + 1);
    assert_eq!(names(&hints).last().map(String::as_str), Some("dir/b.png"));
}
