//! The start block, as text.

use std::path::Path;

use tenfold_sys::user::SystemUser;

use super::*;
use crate::config::parse::given::GivenSettings;
use crate::config::resolve::ResolvedConfig;

fn said(flags: &[(&'static str, &str)]) -> String {
    said_with(flags, false, false)
}

/// The block of `-v`.
fn detailed(flags: &[(&'static str, &str)]) -> String {
    said(&[flags, &[("log-level", "debug")]].concat())
}

fn said_with(flags: &[(&'static str, &str)], qr: bool, configured: bool) -> String {
    let flags = flags.iter().map(|(name, value)| (*name, vec![(*value).to_owned()])).collect();
    let mut settings = GivenSettings { flags, ..GivenSettings::default() }.resolve().expect("legal");
    settings.configured = configured;
    let config = ResolvedConfig::resolve(&settings, 1024).expect("it can be done");
    let addresses: Vec<_> = settings.addresses().cloned().collect();
    block(
        &StartFacts {
            settings: &settings,
            config: &config,
            addresses: &addresses,
            accounts: None,
            user: None,
            signing: None,
            control: Some(Path::new("/run/tenfold.sock")),
            null: None,
            qr,
            files_limited: false,
        },
        false,
    )
}

#[test]
fn the_start_of_a_folder_has_three_lines_and_details_name_the_engine() {
    let flags = [("root", "/srv/site"), ("engine", "epoll"), ("workers", "1"), ("backlog", "64")];
    let people = "  serves   http://127.0.0.1:8080/   this machine only; `-l :8080` opens it to the network\n\
                  \x20 folder   /srv/site (no index.html: its files are listed)\n";
    assert_eq!(said(&flags), format!("{people}  Ctrl-C stops it; -v shows more\n"));
    let usual = people;

    let configured = said_with(&flags, false, true);
    let people = people.replace("; `-l :8080` opens it to the network", "");
    let (first, rest) = configured.split_once('\n').expect("several lines");
    assert!(first.starts_with("tenfold 0."), "{first}");
    assert_eq!(
        rest.replace("404; --listing html lists its files", "its files are listed"),
        format!(
            "{people}\
         \x20 log      standard output, combined, buffered\n\
         \x20 off      folder listings, dotfiles, links that leave the root (for safety), TLS (tls off),\n\
         \x20          the sandbox for files (this kernel has no Landlock)\n"
        )
    );

    let detailed = detailed(&flags);
    let (first, rest) = detailed.split_once('\n').expect("several lines");
    assert!(first.starts_with("tenfold 0."), "{first}");
    let rest = rest.strip_prefix(usual).expect("the same lines are first");
    let process = std::process::id();
    assert_eq!(
        rest,
        format!(
            "  log      standard output, combined, buffered\n\
             \x20 off      dotfiles, links that leave the root (for safety), TLS (tls off),\n\
             \x20          the sandbox for files (this kernel has no Landlock)\n\
             \x20 process  {process}\n\
             \x20 engine   epoll, topology single, 1 worker, trigger lt+et\n\
             \x20 files    auto: up to 32 KiB from memory; others by sendfile\n\
             \x20 bounds   663 connections a worker (from 1024 descriptors), backlog 64, idle 75s\n\
             \x20 sandbox  on: workers are held to the system calls of epoll,\n\
             \x20          and not to folders (this kernel has no Landlock)\n\
             \x20 control  /run/tenfold.sock\n"
        )
    );
}

#[test]
fn a_code_for_phones_has_the_address_that_they_reach() {
    let code = |listen: &str| said_with(&[("root", "/srv/site"), ("listen", listen)], true, false);
    let reached = code("192.0.2.1:8080");
    let (link, rest) = reached.split_once("this address\n").expect("it is the first link");
    assert!(link.contains("http://192.0.2.1:8080/") && rest.starts_with("  ████"), "{reached}");
    let alone = code("127.0.0.1:8080");
    assert!(alone.contains("  no QR code: other machines reach no address of this server;"), "{alone}");
    assert!(code("127.0.0.1:31002").contains("`-l :31002` opens it"), "the port is the user's");
    assert!(alone.lines().all(|line| line.chars().count() <= WIDTH), "{alone}");
}

#[test]
fn no_line_is_wider_than_a_hundred_columns() {
    let names = (0..40).map(|number| format!("part {number}")).collect::<Vec<_>>().join(", ");
    for value in [names.as_str(), &"word ".repeat(60), "short"] {
        let text = wrapped(value);
        assert!(
            text.lines()
                .enumerate()
                .all(|(at, line)| { line.chars().count() <= if at == 0 { WIDTH - INDENT } else { WIDTH } }),
            "{text}"
        );
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), value.split_whitespace().collect::<Vec<_>>());
    }
    assert_eq!(wrapped(&"/long".repeat(40)), "/long".repeat(40));
    assert!(said(&[]).lines().all(|line| line.chars().count() <= WIDTH));
}

#[test]
fn a_folder_without_an_index_is_listed_or_explains_listings() {
    let words = |flags: &[_]| detailed(flags).split_whitespace().collect::<Vec<_>>().join(" ");
    let everyone = [("root", "/srv/site"), ("listen", "0.0.0.0:80")];
    let listed = words(&everyone);
    assert!(
        listed.contains(
            "(no index.html: its files are listed, also to other machines; --listing off hides them)"
        ),
        "{listed}"
    );
    assert!(listed.contains(" off dotfiles,"), "{listed}");
    let wanted = words(&[&everyone[..], &[("listing", "html")]].concat());
    assert!(wanted.contains("(no index.html: its files are listed)"), "{wanted}");
    let proxied = words(&[&everyone[..], &[("trusted-proxy", "192.0.2.1")]].concat());
    assert!(proxied.contains("(no index.html: 404; --listing html lists its files)"), "{proxied}");
    assert!(proxied.contains(" off folder listings, dotfiles,"), "{proxied}");
    let chosen = said(&[("root", "/srv/site"), ("listing", "off")]);
    assert!(chosen.contains("404; --listing html"), "{chosen}");
}

#[test]
fn h78_the_start_reports_the_isolation_of_the_accounts() {
    let settings = GivenSettings::default().resolve().expect("legal");
    let config = ResolvedConfig::resolve(&settings, 1024).expect("it can be done");
    let url = "sqlite:members.db".parse().expect("a legal URL");
    let named = |name: &str, id| SystemUser { name: name.into(), id, group: id, groups: vec![id] };
    let (web, keeper) = (named("web", 1), named("keeper", 2));
    let said = |user, accounts| {
        let accounts = Some((&url, accounts));
        let (settings, config) = (&settings, &config);
        let facts = StartFacts {
            settings,
            config,
            addresses: &[],
            accounts,
            user,
            signing: None,
            control: None,
            null: None,
            qr: false,
            files_limited: false,
        };
        super::user(&facts).expect("there are accounts")
    };
    let shared = "the workers and the process of the accounts run as ";
    assert_eq!(said(None, None), format!("{shared}the user of this process; start as root to separate them"));
    assert_eq!(
        said(Some(&web), Some(&web)),
        format!("{shared}web; set accounts-user to separate them; the supervisor stays root")
    );
    assert_eq!(
        said(Some(&web), Some(&keeper)),
        "web serves, keeper keeps the accounts; the supervisor stays root"
    );
}

#[test]
fn switches_are_reported_if_they_differ_from_their_defaults() {
    let said =
        detailed(&[("tcp-nodelay", "off"), ("write", "split"), ("accept", "all"), ("engine", "epoll")]);
    assert!(said.contains("\n  switches write split, tcp-nodelay off\n"), "{said}");
    assert!(said.contains("\n  versions HTTP/1.1 only, because of write split\n"), "{said}");
}

#[test]
fn auto_reports_its_choice_and_the_reason() {
    let said = detailed(&[]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" engine epoll, topology "), "{said}");
    assert!(words.contains("(auto: small responses cost the same as on uring, and large files"), "{said}");
}

#[test]
fn listings_are_off_only_if_no_path_has_them() {
    assert!(detailed(&[("listing", "off")]).contains("  off      folder listings, dotfiles"));
    for flags in [&[][..], &[("listing", "html")], &[("listing", "json")]] {
        assert!(detailed(flags).contains("  off      dotfiles, links"), "{flags:?}");
    }
}

#[test]
fn the_start_reports_the_reach_of_its_addresses() {
    let all = detailed(&[("listen", "0.0.0.0:80"), ("access-log", "off")]);
    assert!(all.starts_with("tenfold ") && all.contains("\n  serves   http://127.0.0.1:80/   "), "{all}");
    assert!(all.contains("   other machines: it listens on all addresses\n"), "{all}");
    assert!(all.contains("access log (access-log off)"), "{all}");
    let one = said(&[("listen", "192.0.2.1:80")]);
    assert!(
        one.starts_with("  serves   http://192.0.2.1:80/   other machines that reach this address\n"),
        "{one}"
    );
}
