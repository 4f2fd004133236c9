use std::path::Path;

use tenfold_testkit::folder::TempFolder;

use crate::config::parse::file;
use crate::config::parse::problem::Problem;
use crate::config::parse::tests::{from_file, refusal};
use crate::config::values::Settings;

const HASH: &str = "$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC";

#[test]
fn every_table_and_key_is_read() {
    let settings = from_file(&format!(
        r#"
        root = "site"

        [site]
        cache = "revalidate"
        charset = false
        trailing-slash = "remove"
        dotfiles = ["/.well-known", "/.nojekyll"]
        symlinks = "owner"
        error-pages = {{ 404 = "/missing.html", 5xx = false }}
        types = {{ ".md" = "text/markdown", LICENSE = "text/plain", "README*" = "text/plain", "" = "text/plain" }}
        headers.set = {{ X-Frame-Options = "DENY" }}
        headers.add = {{ Link = ["</a>; rel=next", "</b>; rel=prev"] }}
        headers.remove = ["ETag"]

        [[site.path]]
        match = ["/assets/**", "/**.woff2"]
        cache = "immutable"
        early-hints = "</site.css>; rel=preload; as=style"
        cors = {{ origins = "https://a.example", methods = ["GET"], headers = "X-A", expose = "ETag", max-age = "10m", credentials = true }}

        [[site.path]]
        match = "/app/**"
        try-files = ["{{path}}", "{{path}}.html"]
        fallback = "/app/index.html"
        auth = {{ realm = "Members", users = {{ alice = "{HASH}" }} }}

        [[site.path]]
        match = "/app/open/**"
        auth = false
        cors = false
        fallback = false

        [[site.redirect]]
        from = "/old/**"
        to = "/new/**"
        status = 308

        [[site.rewrite]]
        from = "/docs/**"
        to = "/manual/**"

        [[host]]
        name = ["example.org", "*.example.org"]
        root = "example"
        index = "start.html"
        cache = "1h"

        [[host.path]]
        match = "/"
        cache = "no-store"
        "#
    ));
    let settings = settings.unwrap_or_else(|problems| panic!("{}", problems[0]));
    assert_eq!(settings.site.rules.len(), 4);
    assert_eq!(settings.hosts.len(), 1);
    let host = settings.site.above(&settings.hosts[0]);
    assert_eq!((host.names.len(), host.index.clone()), (2, Some(vec!["start.html".to_owned()])));
    assert_eq!(host.root.as_deref(), Some(Path::new("conf/example")));
    assert_eq!(host.rules.len(), 4 + 1 + 1, "a host has the rules of the site, too");
    assert_eq!(host.routes(), settings.site.routes());
}

#[test]
fn an_unknown_key_is_shown_with_a_similar_key() {
    assert_eq!(
        refusal("[[site.path]]\nmatch = \"/a\"\ncahce = \"1h\"\n"),
        "tenfold: error: there is no key \"cahce\" in a path\n\
         \x20--> conf/tenfold.toml:3:1\n\
         \x20 |\n\
         3 | cahce = \"1h\"\n\
         \x20 | ^^^^^ did you mean cache?"
    );
}

#[test]
fn a_wrong_value_is_shown_at_its_place() {
    assert_eq!(
        refusal("[[host]]\nname = [\"a.example\", \"http://b.example\"]\n")
            .lines()
            .take(5)
            .collect::<Vec<_>>(),
        [
            "tenfold: error: invalid value of name",
            " --> conf/tenfold.toml:2:22",
            "  |",
            "2 | name = [\"a.example\", \"http://b.example\"]",
            "  |                      ^^^^^^^^^^^^^^^^^^ a host's name has no http:// prefix",
        ]
    );
}

/// Requires one error, at `place`, with the words `mend`.
#[track_caller]
fn refused(content: &str, place: &str, mend: &str) {
    let said = refusal(content);
    assert!(said.contains(&format!("conf/tenfold.toml:{place}\n")), "{content}:\n{said}");
    assert!(said.contains(mend), "{content}:\n{said}");
    assert_eq!(said.matches("error: ").count(), 1, "one mistake, one error: {content}:\n{said}");
}

#[test]
fn a_wrong_value_is_refused_with_line_column_and_remedy() {
    for (column, line, mend) in [
        (9, "cache = \"forever\"", "neither immutable, hashed, revalidate nor no-store"),
        (11, "charset = \"utf 8\"", "such as utf-8"),
        (19, "types = { \".md\" = \"markdown\" }", "such as text/markdown"),
        (11, "types = { \"a/b\" = \"text/a\" }", "such as .md"),
        (11, "types = { \"***\" = \"text/a\" }", "*** has no meaning"),
        (17, "headers.set = { Content-Length = \"5\" }", "belongs to the protocol"),
        (23, "headers.set = { X-A = \"a\\nb\" }", "cannot contain control characters"),
        (19, "headers.remove = [\"a b\"]", "not the name of a field"),
        (9, "headers.drop = \"ETag\"", "the keys of headers are set, add, remove"),
        (15, "early-hints = \" x\"", "begin or end with a space"),
        (13, "try-files = []", "1 to 8 files"),
        (14, "try-files = [\"$uri\"]", "write [\"{path}\"]"),
        (12, "fallback = \"index.html\"", "write \"/index.html\""),
        (12, "fallback = true", "a text in quotes is needed, not a TOML boolean"),
        (18, "trailing-slash = \"both\"", "there are add, remove, either"),
        (13, "dotfiles = [\".git\"]", "begins with a slash"),
        (12, "symlinks = \"all\"", "there are beneath, none, owner"),
        (17, "error-pages = { 200 = \"/a\" }", "not an error status"),
        (23, "error-pages = { 404 = \"a\" }", "write \"/a\""),
        (8, "cors = { origins = [\"a.example\"] }", "https://a.example"),
        (8, "cors = { origins = \"*\", credentials = true }", "list the allowed origins"),
        (8, "cors = true", "a table is needed"),
        (8, "auth = {}", "at least one user is needed"),
        (20, "auth.users = { a = \"secret\" }", "htpasswd -nB"),
        (14, "auth.users = \"none.htpasswd\"", "conf/none.htpasswd"),
    ] {
        refused(&format!("[site]\n{line}"), &format!("2:{column}"), mend);
    }
    refused("[site.headers.set]\ncompress = \"on\"", "2:1", "compress is a setting of the whole server");
    refused("[site]\nlisten = \"127.0.0.1:80\"", "2:1", "listen is a setting of the whole server");
    refused("[[site.path]]\ncache = \"1h\"", "1:1", "match = ");
    refused("[[site.path]]\nmatch = \"*.css\"", "2:9", "write \"/*.css\"");
    refused("[[site.redirect]]\nfrom = \"/a\"\nto = \"/a\"", "3:6", "would be a loop");
    refused("[[site.redirect]]\nfrom = \"/a\"", "1:1", "the keys from and to are required");
    refused(
        "[[site.redirect]]\nfrom = \"/a\"\nto = \"/b\"\nstatus = 200",
        "4:10",
        "use 301, 302, 303, 307 or 308",
    );
    refused(
        "[[site.redirect]]\nfrom = \"/a\"\nto = \"/b\"\nstatus = 304",
        "4:10",
        "use 301, 302, 303, 307 or 308",
    );
    refused("[[site.rewrite]]\nfrom = \"/a\"\nto = \"/../b\"", "3:6", "cannot contain an empty name");
    refused("[[host]]\nroot = \"x\"", "1:1", "name = \"example.org\"");
    refused("[[host]]\nname = \"a\"\n[[host]]\nname = \"A.\"", "3:1", "duplicate host a");
    refused("[[host]]\nname = [\"a\", \"a\"]", "1:1", "duplicate host a");
    refused("[[host]]\nname = \"a\"\nindex = \"a/b\"", "3:9", "not the name of a file");
    refused("site = 5", "1:8", "a table is needed, not a TOML integer");
    refused("[sites]", "1:2", "did you mean site?");
}

#[test]
fn users_may_be_in_a_separate_file() {
    let folder = TempFolder::new("users");
    let read = |users: &str| {
        folder.write("users", users);
        let text = "[site]\nauth.users = \"users\"\n";
        let (mut settings, mut problems) = (Settings::default(), Vec::new());
        file::read_text(&folder.at("tenfold.toml"), text, &mut settings, &mut problems);
        problems.first().map(Problem::to_string)
    };
    assert_eq!(read(&format!("# members\n\nalice:{HASH}\n  bob:{HASH}\n")), None);
    // Apache and nginx ignore further columns and a byte-order mark.
    assert_eq!(read(&format!("alice:{HASH}:Alice, on loan:\nbob:{HASH} :x\n")), None);
    let marked = read(&format!("\u{feff}alice:{HASH}\nalice:{HASH}\n"));
    assert!(marked.is_some_and(|told| told.contains("a user called alice already")));
    assert_eq!(read(&format!("\u{feff}# members\nalice:{HASH}\n")), None);
    for (users, said) in [
        ("alice", "users, line 1: a line is name:hash"),
        (&format!("\nalice:{HASH}\nbob:$apr1$x$y\n"), "users, line 3: it is neither"),
        (&format!("alice:{HASH}\nalice:{HASH}\n"), "line 2: there is a user called alice already"),
        ("", "at least one user is needed"),
    ] {
        let told = read(users).expect(users);
        assert!(told.contains(said), "{told}");
    }
}
