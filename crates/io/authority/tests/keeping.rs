//! A CA in its folder: who can read it, what is never overwritten, and what is said of a file that is not right.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use farhop_authority::{Authority, Terms};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A folder with a CA in it, and the CA's file.
fn made() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    Authority::create(&folder.path().join("ca"), &Terms::default()).unwrap();
    let file = folder.path().join("ca/ca.key");
    (folder, file)
}

fn load_error(file: &Path) -> String {
    Authority::load(file.parent().unwrap()).unwrap_err().to_string()
}

#[test]
fn what_is_made_loads_again_and_only_its_owner_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("etc/ca");
    let terms = Terms {
        name: "Station Süd".into(),
        lifetime: Duration::from_secs(365 * 86_400),
        permitted: vec!["example.org".parse().unwrap(), "10.0.0.0/8".parse().unwrap()].into(),
    };
    let made = Authority::create(&inner, &terms).unwrap();
    assert_eq!((mode(&inner), mode(&inner.join("ca.key"))), (0o700, 0o600));
    let loaded = Authority::load(&inner).unwrap();
    assert_eq!(loaded.certificate(), made.certificate());
    let certificate = loaded.certificate();
    assert_eq!(certificate.name(), terms.name);
    assert_eq!(certificate.permitted(), &terms.permitted);
    assert!(
        certificate.subject().starts_with("Station Süd ")
            && certificate.subject().len() == "Station Süd ".len() + 8
    );
    let lifetime = certificate.valid_until().duration_since(certificate.valid_from()).unwrap();
    assert_eq!(lifetime.as_secs() / 86_400, 365 + 30, "thirty days of it before it was made");
}

#[test]
fn a_ca_is_never_overwritten() {
    let (folder, file) = made();
    let before = fs::read(&file).unwrap();
    let error = Authority::create(&folder.path().join("ca"), &Terms::default()).unwrap_err().to_string();
    assert!(error.contains("exists already and is not overwritten; 'farhop ca rotate "), "{error}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_rotation_replaces_the_file_and_keeps_it_secret() {
    let (_folder, file) = made();
    let before = fs::read_to_string(&file).unwrap();
    Authority::rotate(file.parent().unwrap(), &Terms::default(), Duration::from_secs(86_400)).unwrap();
    let after = fs::read_to_string(&file).unwrap();
    let key = before.split("-----").nth(2).unwrap();
    assert!(!after.contains(key), "the older key is gone");
    assert_eq!(mode(&file), 0o600);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_ca_that_is_over_has_a_successor_which_carries_nothing_over() {
    let folder = tempfile::tempdir().unwrap();
    Authority::create(folder.path(), &Terms { lifetime: Duration::ZERO, ..Terms::default() }).unwrap();
    assert!(Authority::load(folder.path()).unwrap().in_force().is_err());
    let newer = Authority::rotate(folder.path(), &Terms::default(), Duration::from_secs(86_400)).unwrap();
    assert!(newer.in_force().is_ok() && newer.bridge().is_none());
    assert_eq!(Authority::load(folder.path()).unwrap().certificate(), newer.certificate());
}

#[test]
fn a_key_that_others_can_read_is_refused_with_the_remedy() {
    let (_folder, file) = made();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let error = load_error(&file);
    assert!(error.contains("can be read by other users (mode 0644), run 'chmod 600 "), "{error}");
}

#[test]
fn a_folder_in_which_everybody_may_put_another_ca_is_refused_with_the_remedy() {
    let (folder, file) = made();
    for (mode, is_refused) in [(0o777, true), (0o1777, false), (0o775, false)] {
        fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(mode)).unwrap();
        let error = Authority::load(file.parent().unwrap()).err().map(|error| error.to_string());
        assert_eq!(error.is_some(), is_refused, "{mode:o}: {error:?}");
        assert!(error.is_none_or(|error| error.contains("(mode 0777), run 'chmod go-w ")));
    }
    drop(folder);
}

#[test]
fn what_is_missing_foreign_or_damaged_is_told_apart() {
    let missing = load_error(Path::new("/nonexistent/ca/ca.key"));
    assert_eq!(
        missing,
        "/nonexistent/ca/ca.key does not exist, make a CA with 'farhop ca init /nonexistent/ca'"
    );

    let (_folder, file) = made();
    let whole = fs::read_to_string(&file).unwrap();
    let other = { fs::read_to_string(made().1).unwrap() };
    let own_key = whole.split("-----BEGIN CERTIFICATE").next().unwrap();
    let other_certificate = other.split_once("-----BEGIN CERTIFICATE").unwrap().1;
    let body = whole.split_once("-----BEGIN").unwrap().1;
    let cases = [
        (format!("-----BEGIN{body}"), "is no CA made by 'farhop ca init'"),
        (String::new(), "is no CA made by 'farhop ca init'"),
        (
            whole.replace("farhop-authority 1", "farhop-authority 9"),
            "is of format '9', this version of farhop reads format 1",
        ),
        (own_key.to_owned(), "is damaged: it holds the wrong number of certificates"),
        ("farhop-authority 1\n".to_owned(), "is damaged: it does not hold a private key and certificates"),
        (
            whole.replacen("-----BEGIN PRIVATE KEY-----\nM", "-----BEGIN PRIVATE KEY-----\nA", 1),
            "is damaged: its private key cannot be read",
        ),
        (
            format!("{own_key}-----BEGIN CERTIFICATE{other_certificate}"),
            "is damaged: its certificate is not that of its key",
        ),
        (
            format!("{whole}-----BEGIN CERTIFICATE{other_certificate}"),
            "is damaged: it holds the wrong number",
        ),
    ];
    for (text, told) in cases {
        fs::write(&file, text).unwrap();
        let error = load_error(&file);
        assert!(error.contains(told), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_name_that_cannot_be_one_is_refused() {
    for name in ["", "  ", "a\nb", &"x".repeat(49)] {
        let error = Authority::ephemeral(&Terms { name: name.to_owned(), ..Terms::default() }).unwrap_err();
        assert!(error.to_string().contains("cannot be the name of a CA"), "{error}");
    }
}

#[test]
fn the_exports_are_the_certificate_and_nothing_of_the_key() {
    let (_folder, file) = made();
    let authority = Authority::load(file.parent().unwrap()).unwrap();
    let certificate = authority.certificate();
    let parsed = pem::parse(certificate.pem()).unwrap();
    assert_eq!((parsed.tag(), parsed.contents()), ("CERTIFICATE", certificate.der().as_ref()));
    let profile = certificate.profile();
    let data = profile.split("<data>").nth(1).unwrap().split("</data>").next().unwrap();
    let again = pem::parse(format!("-----BEGIN X-----\n{data}\n-----END X-----\n")).unwrap();
    assert_eq!(again.contents(), certificate.der().as_ref());
    assert_eq!(certificate.profile(), profile, "the same certificate, the same profile");
    assert_eq!(certificate.fingerprint().split(':').count(), 32);
    let secret = pem::parse_many(fs::read(&file).unwrap()).unwrap()[0].contents().to_vec();
    // The private scalar of the key stands at this place of its PKCS #8 form.
    let scalar = &secret[36..68];
    assert!(!certificate.der().windows(32).any(|window| window == scalar));
}
