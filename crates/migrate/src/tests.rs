use proptest::prelude::*;

use crate::tree::Directive;
use crate::{Format, Input, Outcome, Translation, translate, tree};

fn of(format: Format, text: &str) -> Translation {
    let input = Input { format, name: "file", text, folder: "/srv/site" };
    translate(input, &|_| Ok(())).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// The outcome of the first directive with this name.
#[track_caller]
fn outcome(translation: &Translation, directive: &str) -> Outcome {
    let entry = translation.entries.iter().find(|entry| entry.directive == directive);
    entry.unwrap_or_else(|| panic!("no {directive} in {:#?}", translation.entries)).outcome.clone()
}

#[track_caller]
fn has(translation: &Translation, lines: &[&str]) {
    for line in lines {
        assert!(translation.toml.contains(line), "{line} is not in:\n{}", translation.toml);
    }
}

#[test]
fn formats_are_found_by_name_and_content() {
    for (name, text, format) in [
        ("/etc/nginx/sites-available/x.conf", "", Format::Nginx),
        ("site/.htaccess", "", Format::Apache),
        ("Caddyfile.prod", "", Format::Caddy),
        ("/etc/lighttpd/lighttpd.conf", "", Format::Lighttpd),
        ("x.conf", "server {\n  listen 80;\n}\n", Format::Nginx),
        ("x.conf", "RewriteEngine On\n", Format::Apache),
        ("x.conf", "# a\nserver.document-root = \"/srv\"\n", Format::Lighttpd),
        ("x", "example.org {\n  file_server\n}\n", Format::Caddy),
        ("x.service", "[Service]\nExecStart=/usr/bin/miniserve -p 80 /srv\n", Format::Miniserve),
        ("-", "miniserve /srv", Format::Miniserve),
    ] {
        assert_eq!(Format::detect(name, text), Some(format), "{name}");
    }
    assert_eq!(Format::detect("x", "hello"), None);
}

#[test]
fn what_cannot_be_translated_closes_its_paths() {
    let nginx = of(
        Format::Nginx,
        "server {\n root /srv/a;\n location /api/ { proxy_pass http://app; }\n location ~ \\.php$ { \
            fastcgi_pass x; }\n \
         location /private/ { allow 10.0.0.0/8; deny all; }\n location /internal/ { deny all; }\n \
         location /private/open/ { expires 1h; }\n location ~ /\\.ht { deny all; }\n}\n",
    );
    has(
        &nginx,
        &["from = \"/api/**\"", "from = \"/**.php\"", "from = \"/private/**\"", "from = \"/internal/**\""],
    );
    let order = |text: &str| nginx.toml.find(text).unwrap_or_else(|| panic!("{text}:\n{}", nginx.toml));
    assert!(order("from = \"/private/open/**\"") < order("from = \"/private/**\""), "{}", nginx.toml);
    assert_eq!(outcome(&nginx, "deny"), Outcome::Refused(crate::reasons::ADDRESSES.into()));
    let htaccess = of(
        Format::Apache,
        "<Files secret.txt>\nRequire ip 10.0.0.1\n</Files>\nRewriteRule . /index.php [L]\n",
    );
    has(&htaccess, &["from = \"/secret.txt\"", "from = \"/**/secret.txt\"", "from = \"/**.php\""]);
    let caddy = of(
        Format::Caddy,
        "a.example {\n root * /srv\n reverse_proxy app:80\n handle /static/* {\n file_server\n }\n}\n",
    );
    has(&caddy, &["from = \"/static/**\", to = \"/static/**\"", "from = \"/**\", to = \"/.closed\""]);
    let lighttpd =
        of(Format::Lighttpd, "server.document-root = \"/srv\"\nurl.access-deny = (\"~\", \".inc\")\n");
    has(&lighttpd, &["from = \"/**.inc\""]);
    let miniserve = of(Format::Miniserve, "miniserve -a bob:secret /srv");
    has(&miniserve, &["from = \"/**\", to = \"/.closed\""]);
    assert!(!miniserve.toml.contains("secret"), "a password is not repeated:\n{}", miniserve.toml);
}

/// A redirect of all paths of a host to itself never ends.
#[test]
fn one_of_several_names_is_redirected_to_another() {
    let condition = "if ($host = a.example) { return 301 http://www.a.example:81$request_uri; }";
    let nginx = |names: &str| {
        let other = "server { server_name b.example; root /srv/b; }";
        let text = format!("server {{ server_name {names}; root /srv/a; {condition} }}\n{other}\n");
        let translation = of(Format::Nginx, &text);
        assert_eq!(outcome(&translation, "if"), Outcome::Translated, "{}", translation.toml);
        translation
    };
    for translation in [nginx("www.a.example a.example"), nginx("a.example www.a.example")] {
        has(
            &translation,
            &[
                "name = \"www.a.example\"",
                "name = \"a.example\"",
                "from = \"/**\"",
                "to = \"http://www.a.example:81/**\"",
            ],
        );
    }
    let apache = of(
        Format::Apache,
        "<VirtualHost *:80>\nServerName a.example\nServerAlias www.a.example\nDocumentRoot /srv/a\nRewriteCond \
         %{HTTP_HOST} ^www\\.a\\.example$\nRewriteRule ^/(.*)$ http://a.example/$1 [R=301]\n</VirtualHost>\n\
         <VirtualHost *:80>\nServerName b.example\nDocumentRoot /srv/b\n</VirtualHost>\n",
    );
    has(&apache, &["name = \"a.example\"", "name = \"www.a.example\"", "to = \"http://a.example/**\""]);
    let lighttpd = of(
        Format::Lighttpd,
        "$HTTP[\"host\"] =~ \"^(www\\.)?a\\.example$\" {\nserver.document-root = \"/srv/a\"\n}\n\
         $HTTP[\"host\"] == \"a.example\" {\nurl.redirect = (\"^/(.*)\" => \"http://www.a.example/$1\")\n}\n",
    );
    assert!(matches!(outcome(&lighttpd, "url.redirect"), Outcome::Refused(_)), "{}", lighttpd.toml);
}

#[test]
fn lighttpd_closes_paths_of_addresses_and_proxies() {
    let url = "$HTTP[\"url\"] =~ \"^/internal/\" {\nurl.access-deny = (\"\")\n}\n";
    let denied = [
        format!("$HTTP[\"remoteip\"] !~ \"^127\\.\" {{\n{url}}}\n"),
        format!("$HTTP[\"remoteip\"] == \"127.0.0.1\" {{\n}} else {{\n{url}}}\n"),
    ];
    for text in denied {
        let translation = of(Format::Lighttpd, &format!("server.document-root = \"/srv\"\n{text}"));
        has(&translation, &["{ from = \"/internal/**\", to = \"/.closed\" }"]);
        let Outcome::Refused(why) = outcome(&translation, "url.access-deny") else {
            panic!("a rule is lost")
        };
        assert!(why.contains("these paths are closed"), "{why}");
    }
    let forwarded = of(
        Format::Lighttpd,
        "server.document-root = \"/srv\"\nproxy.server = (\"/api\" => ((\"host\" => \"127.0.0.1\")))\n\
         cgi.assign = (\".pl\" => \"/usr/bin/perl\")\n",
    );
    has(&forwarded, &["from = \"/api**\", to = \"/.closed\"", "from = \"/**.pl\", to = \"/.closed\""]);
    let unclear = of(
        Format::Lighttpd,
        "$HTTP[\"remoteip\"] != \"10.0.0.1\" {\n$HTTP[\"url\"] =~ \"^/(?!a)b\" {\nurl.access-deny = (\"\")\n}\n}\n",
    );
    let Outcome::Refused(why) = outcome(&unclear, "url.access-deny") else { panic!("a rule is lost") };
    assert!(why.contains(crate::reasons::SERVED), "{why}");
}

#[test]
fn a_condition_that_refuses_clients_says_that_they_get_the_files() {
    let nginx = of(Format::Nginx, "server { root /srv; if ($http_user_agent ~* bot) { return 403; } }");
    assert_eq!(outcome(&nginx, "if"), Outcome::Refused(crate::reasons::CONDITIONS_SERVED.into()));
    let apache = of(Format::Apache, "RewriteCond %{HTTP_USER_AGENT} bot\nRewriteRule . - [F]\n");
    assert_eq!(outcome(&apache, "RewriteRule"), Outcome::Refused(crate::reasons::CONDITIONS_SERVED.into()));
}

#[test]
fn a_page_for_missing_files_is_also_the_page_of_folders() {
    let translation = of(
        Format::Apache,
        "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteRule . /index.html [L]\n",
    );
    let is_remark =
        |outcome: &Outcome| matches!(outcome, Outcome::Default(why) if why.contains("without an index"));
    assert_eq!(translation.count(is_remark), 1, "{:#?}", translation.entries);
}

#[test]
fn a_command_line_runs_miniserve() {
    let read =
        |text| translate(Input { format: Format::Miniserve, name: "x", text, folder: "" }, &|_| Ok(()));
    assert!(read("\"miniserv\" \"-p\" \"80\"").is_err());
    assert!(read("sudo -u www /usr/bin/miniserve -p 80").is_ok());
}

#[test]
fn relative_paths_of_a_command_line_begin_at_the_folder() {
    let root =
        |folder, text| translate(Input { format: Format::Miniserve, name: "x", text, folder }, &|_| Ok(()));
    for (folder, text, line) in [
        ("", "miniserve www", "root = \"www\""),
        ("/srv", "miniserve www", "root = \"/srv/www\""),
        ("/srv", "miniserve /var/www", "root = \"/var/www\""),
        ("/srv", "miniserve", "root = \"/srv\""),
    ] {
        has(&root(folder, text).expect("it is a command line"), &[line]);
    }
}

#[test]
fn ports_of_caddy_are_those_of_its_sites_and_a_name_is_not_lost() {
    let ports = "{\n http_port 31111\n https_port 31112\n}\n";
    let site = "localhost {\n root * /srv\n file_server\n}\n";
    let caddy = of(Format::Caddy, &format!("{ports}{site}"));
    has(&caddy, &["tls = \"internal\"", "https-redirect = \"on\"", "\":31112\"", "\"http::31111\""]);
    assert!(matches!(outcome(&caddy, "localhost"), Outcome::Default(why) if why.contains("[[host]]")));
    let caddy = of(Format::Caddy, "a.example {\n root * /srv\n}\n");
    assert_eq!(outcome(&caddy, "a.example"), Outcome::Translated, "the name is in tls");
}

#[test]
fn addresses_of_caddy_that_all_sites_name_stay_closed_to_others() {
    let site = |name: &str, bind: &str| format!("{name} {{\n {bind}\n root * /srv\n file_server\n}}\n");
    let bound = "bind 127.0.0.1 [::1]";
    let plain =
        of(Format::Caddy, &(site("http://a.example:81", bound) + &site("http://b.example:81", bound)));
    has(&plain, &["\"127.0.0.1:81\"", "\"[::1]:81\""]);
    assert!(
        !plain.toml.contains("\":81\"") && outcome(&plain, "bind") == Outcome::Translated,
        "{}",
        plain.toml
    );
    let usual = of(Format::Caddy, &site("a.example", bound));
    has(&usual, &["\"127.0.0.1:443\"", "\"http:127.0.0.1:80\""]);
    let option = "{\n default_bind 127.0.0.1 [::1]\n}\n".to_owned();
    let by_option = of(Format::Caddy, &(option + &site("http://a.example:81", "")));
    assert_eq!(
        (&by_option.toml.contains("\":81\""), outcome(&by_option, "default_bind")),
        (&false, Outcome::Translated)
    );
    has(&by_option, &["\"127.0.0.1:81\"", "\"[::1]:81\""]);
    let mixed = of(Format::Caddy, &(site("http://a.example:81", bound) + &site("http://b.example:81", "")));
    has(&mixed, &["\":81\""]);
    assert!(matches!(outcome(&mixed, "bind"), Outcome::Refused(why) if why.contains("every address")));
}

#[test]
fn a_hostile_file_ends_with_an_error() {
    for (format, text) in [
        (Format::Nginx, "a {".repeat(1000)),
        (Format::Nginx, "a \"".into()),
        (Format::Nginx, "}".into()),
        (Format::Nginx, "a;".repeat(30_000)),
        (
            Format::Nginx,
            format!(
                "server {{ {} }}",
                "location ~ (a|b|c|d|e|f)(a|b|c|d|e|f)/x { deny all; }\n".repeat(4000)
            ),
        ),
        (Format::Caddy, "a {\n".repeat(1000)),
        (Format::Caddy, "a <<END\nb".into()),
        (Format::Caddy, "(a) {\nimport a\n}\nx {\nimport a\n}\n".into()),
        (
            Format::Caddy,
            (0..8).fold("(s0) {\nroot x\n}\n".to_owned(), |all, at| {
                format!("{all}(s{}) {{\n{}}}\n", at + 1, format!("import s{at}\n").repeat(20))
            }) + "x {\nimport s8\n}\n",
        ),
        (Format::Apache, "<a>\n".repeat(1000)),
        (Format::Apache, "<a>\n</b>".into()),
        (Format::Lighttpd, "a = (".to_owned() + &"(".repeat(100_000)),
        (Format::Lighttpd, "$HTTP[\"url\"] == \"a\" {".repeat(1000)),
        (Format::Lighttpd, "a = \"".into()),
        (Format::Miniserve, "nothing\nhere".into()),
        (Format::Nginx, "x".repeat(crate::MOST_BYTES + 1)),
    ] {
        let input = Input { format, name: "file", text: &text, folder: "." };
        assert!(translate(input, &|_| Ok(())).is_err(), "{}: {}", format.name(), &text[..text.len().min(60)]);
    }
}

#[test]
fn a_redirect_of_apache_keeps_the_rest_of_the_path() {
    let translation = of(Format::Apache, "Redirect permanent /a https://b.example/c\n");
    has(
        &translation,
        &[
            "from = \"/a\"",
            "to = \"https://b.example/c\"\n",
            "from = \"/a/**\"",
            "to = \"https://b.example/c/**\"",
        ],
    );
}

/// The directives of a tree that get an outcome: entries of types and maps are values.
fn count(directives: &[Directive]) -> usize {
    let of_values = |directive: &Directive| ["types", "map"].contains(&directive.name.as_str());
    let inner = |directive: &Directive| if of_values(directive) { 0 } else { count(directive.inner()) };
    directives.iter().map(|directive| 1 + inner(directive)).sum()
}

/// Words that a translator knows, in any order.
fn words() -> impl Strategy<Value = String> {
    let known = [
        "server",
        "location",
        "/",
        "/a/",
        "= /a",
        "~ \\.php$",
        "~* \\.(css|js)$",
        "return 301 https://$host$request_uri",
        "return 404",
        "if ($host = a.example)",
        "root /srv",
        "alias /srv/a/",
        "try_files $uri /index.html",
        "listen 80",
        "listen 443 ssl",
        "server_name a.example b.example",
        "deny all",
        "allow 10.0.0.1",
        "proxy_pass http://x",
        "expires 1d",
        "add_header A b",
        "add_header Cache-Control public",
        "gzip on",
        "auth_basic x",
        "error_page 404 /404.html",
        "types",
        "rewrite ^/a/(.*)$ /b/$1 last",
        "include x",
        "http",
        "limit_except GET",
        "location @x",
        "internal",
        "index index.php",
    ];
    let piece = (prop::sample::select(known.to_vec()), prop::sample::select(vec![";", "{", "}", ";", ";"]));
    prop::collection::vec(piece, 0..40).prop_map(|pieces| {
        let (mut text, mut depth) = (String::new(), 0);
        for (word, end) in pieces {
            match end {
                "}" if depth > 0 => {
                    text.push('}');
                    depth -= 1;
                }
                "{" => {
                    text.push_str(&format!("{word} {{\n"));
                    depth += 1;
                }
                _ => text.push_str(&format!("{word};\n")),
            }
        }
        text + &"}".repeat(depth)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// A directive that is dropped silently may leave a closed path open.
    #[test]
    fn every_directive_of_nginx_has_one_outcome(text in words()) {
        let tree = tree::nginx(&text).expect("the braces are balanced");
        prop_assert_eq!(of(Format::Nginx, &text).entries.len(), count(&tree), "{}", text);
    }

    #[test]
    fn no_text_panics(
        text in "\\PC{0,200}",
        lines in prop::collection::vec("[-$@<>(){}\\[\\]\"'`~^*=|:;,.#/%\\\\ a-zA-Z0-9]{0,30}", 0..12),
    ) {
        for text in [text, lines.join("\n")] {
            for format in Format::ALL {
                let input = Input { format, name: "file", text: &text, folder: "." };
                let _ = translate(input, &|_| Ok(()));
                let _ = Format::detect("", &text);
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        for format in Format::ALL {
            let _ = translate(Input { format, name: "file", text: &text, folder: "." }, &|_| Err("no".into()));
        }
    }
}
