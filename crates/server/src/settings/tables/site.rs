//! The keys of a site: `[site]` and each `[[host]]`.

use std::path::PathBuf;

use tenfold_site::{
    ErrorPages, HostName, Pattern, Policies, Policy, Redirect, Rewrite, Routes, Rule, Shown, Slash,
};
use tenfold_sys::links::Links;

use super::{Given, Key, Keys, Reader, Shape, Wrong};
use crate::settings::Settings;
use crate::settings::units::word;

/// What a table says of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteTable {
    /// None for `[site]`.
    pub(crate) names: Vec<HostName>,
    /// As the setting of the same name where a host says nothing else.
    pub(crate) root: Option<PathBuf>,
    /// The same.
    pub(crate) index: Option<String>,
    /// What holds everywhere.
    pub(crate) policy: Policy,
    /// What holds for some paths.
    pub(crate) rules: Vec<Rule>,
    redirects: Vec<Redirect>,
    rewrites: Vec<Rewrite>,
    slash: Option<Slash>,
    shown: Option<Shown>,
    links: Option<Links>,
    /// Statuses, and their pages; none where a line of text takes the place of one.
    error_pages: Vec<(String, Option<String>)>,
}

impl SiteTable {
    /// What a host says, behind what is said for all.
    pub(crate) fn above(&self, host: &SiteTable) -> SiteTable {
        let host = host.clone();
        let mut rules = self.rules.clone();
        rules.push(Rule { paths: Pattern::all(), policy: host.policy });
        rules.extend(host.rules);
        SiteTable {
            policy: self.policy.clone(),
            rules,
            // The first that fits counts.
            redirects: [host.redirects, self.redirects.clone()].concat(),
            rewrites: [host.rewrites, self.rewrites.clone()].concat(),
            slash: host.slash.or(self.slash),
            shown: host.shown.or_else(|| self.shown.clone()),
            links: host.links.or(self.links),
            error_pages: [self.error_pages.clone(), host.error_pages].concat(),
            ..host
        }
    }

    /// Every policy of it: for all paths, and by rules.
    pub(crate) fn all_policies(&self) -> impl Iterator<Item = &Policy> {
        std::iter::once(&self.policy).chain(self.rules.iter().map(|rule| &rule.policy))
    }

    /// What the site makes of it.
    pub(crate) fn policies(&self) -> Policies {
        Policies::new(self.policy.clone(), self.rules.clone())
    }

    /// The same of where its paths lead.
    pub(crate) fn routes(&self) -> Routes {
        let mut error_pages = ErrorPages::default();
        for (statuses, path) in &self.error_pages {
            error_pages.set(statuses, path.as_deref()).expect("it was seen to be legal when it was read");
        }
        Routes {
            redirects: self.redirects.clone(),
            rewrites: self.rewrites.clone(),
            slash: self.slash.unwrap_or_default(),
            shown: self.shown.clone().unwrap_or_default(),
            links: self.links.unwrap_or_default(),
            error_pages,
        }
    }
}

/// The keys of a site that are the same for every host.
macro_rules! site_keys {
    ($($own:expr,)*) => {
        &[
            $($own,)*
            Key {
                name: "path",
                shape: Shape::Tables(&PATH),
                about: "what holds for some paths; of several that fit, later ones win key by key",
                set: read_rules,
            },
            Key {
                name: "redirect",
                shape: Shape::Tables(&REDIRECT),
                about: "sends clients elsewhere; the first that fits counts",
                set: read_redirects,
            },
            Key {
                name: "rewrite",
                shape: Shape::Tables(&REWRITE),
                about: "looks for something else, and the client does not notice; the first that fits counts",
                set: read_rewrites,
            },
            Key {
                name: "trailing-slash",
                shape: Shape::Word(&["add", "remove", "either"]),
                about: "how folders are asked for: add (with a slash), remove (without), either; others are redirected",
                set: |site, given, _| {
                    let words = [("add", Slash::Add), ("remove", Slash::Remove), ("either", Slash::Either)];
                    site.slash = Some(given.parse(|text| word(text, "way to ask for a folder", &words))?);
                    Ok(())
                },
            },
            Key {
                name: "dotfiles",
                shape: Shape::Many(&Shape::Text("/.well-known")),
                about: "hidden files and folders that are served; /.well-known where nothing is said",
                set: |site, given, _| {
                    site.shown = Some(Shown::new(given.parse_each(Pattern::new)?));
                    Ok(())
                },
            },
            Key {
                name: "symlinks",
                shape: Shape::Word(&["beneath", "none", "owner"]),
                about: "symbolic links that are followed: beneath (the root), none, owner (of what they lead to)",
                set: |site, given, _| {
                    let words =
                        [("beneath", Links::Beneath), ("none", Links::None), ("owner", Links::SameOwner)];
                    site.links = Some(given.parse(|text| word(text, "choice of links", &words))?);
                    Ok(())
                },
            },
            Key {
                name: "error-pages",
                shape: Shape::Map("404", &Shape::Either(&[Shape::Text("/404.html"), Shape::Off])),
                about: "files that are the bodies of errors, by status: 404, 4xx; false for a line of text",
                set: read_error_pages,
            },
        ]
    };
}

/// `[site]`
pub(crate) static SITE: Keys<SiteTable> =
    Keys { of: "[site]", own: site_keys![], policy: Some(|site| &mut site.policy) };

/// `[[host]]`
pub(crate) static HOST: Keys<SiteTable> = Keys {
    of: "[[host]]",
    own: site_keys![
        Key {
            name: "name",
            shape: Shape::Many(&Shape::Text("example.org")),
            about: "the names it is for; *.example.org is for every name that ends so",
            set: |site, given, _| {
                site.names = given.parse_each(HostName::new)?;
                Ok(())
            },
        },
        Key {
            name: "root",
            shape: Shape::Text("site"),
            about: "the folder to serve; where it is not said, that of the setting root",
            set: |site, given, reader| {
                site.root = Some(given.path(reader)?);
                Ok(())
            },
        },
        Key {
            name: "index",
            shape: Shape::Text("index.html"),
            about: "the file that is served for a folder; where it is not said, that of the setting index",
            set: |site, given, _| {
                site.index =
                    Some(given.parse(|text| match text.is_empty() || text.contains(['/', '\0']) {
                        true => Err(format!("{text:?} is not the name of a file, such as index.html")),
                        false => Ok(text.to_owned()),
                    })?);
                Ok(())
            },
        },
    ],
    policy: Some(|site| &mut site.policy),
};

/// `[[site.path]]` and `[[host.path]]`
static PATH: Keys<PathTable> = Keys {
    of: "a path",
    own: &[Key {
        name: "match",
        shape: Shape::Many(&Shape::Text("/assets/**")),
        about: "the paths it is for; * is for a part of a name, ** for any number of names",
        set: |path, given, _| {
            path.patterns = given.parse_each(Pattern::new)?;
            Ok(())
        },
    }],
    policy: Some(|path| &mut path.policy),
};

#[derive(Default)]
struct PathTable {
    patterns: Vec<Pattern>,
    policy: Policy,
}

fn read_rules(site: &mut SiteTable, given: &Given<'_>, reader: &mut Reader<'_>) -> Result<(), Wrong> {
    given.read_each(&PATH, reader, |PathTable { patterns, policy }, table, _| {
        if patterns.is_empty() {
            return Err(table.wrong("it says for which paths it is: match = \"/assets/**\""));
        }
        site.rules.extend(patterns.into_iter().map(|paths| Rule { paths, policy: policy.clone() }));
        Ok(())
    })
}

/// `[[...redirect]]` and `[[...rewrite]]`
#[derive(Default)]
struct Way {
    from: Option<Pattern>,
    to: Option<String>,
    status: Option<u16>,
}

macro_rules! way_keys {
    ($($more:expr,)*) => {
        &[
            Key {
                name: "from",
                shape: Shape::Text("/old/**"),
                about: "the paths it is for; * is for a part of a name, ** for any number of names",
                set: |way, given, _| {
                    way.from = Some(given.parse(Pattern::new)?);
                    Ok(())
                },
            },
            Key {
                name: "to",
                shape: Shape::Text("/new/**"),
                about: "where they lead; where both end with /**, the rest of the path is taken along",
                set: |way, given, _| {
                    way.to = Some(given.text()?.to_owned());
                    Ok(())
                },
            },
            $($more,)*
        ]
    };
}

static REDIRECT: Keys<Way> = Keys {
    of: "a redirect",
    own: way_keys![Key {
        name: "status",
        shape: Shape::Number(301, 308),
        about: "301 (where nothing is said), 302, 303, 307 or 308",
        set: |way, given, _| {
            way.status = Some(given.number(301, 308)? as u16);
            Ok(())
        },
    },],
    policy: None,
};

static REWRITE: Keys<Way> = Keys { of: "a rewrite", own: way_keys![], policy: None };

fn read_redirects(site: &mut SiteTable, given: &Given<'_>, reader: &mut Reader<'_>) -> Result<(), Wrong> {
    given.read_each(&REDIRECT, reader, |way: Way, table, _| {
        let (from, to) = way.ends(table)?;
        let redirect = Redirect::new(from, &to, way.status.unwrap_or(301));
        site.redirects.push(redirect.map_err(|mend| table.wrong(mend))?);
        Ok(())
    })
}

fn read_rewrites(site: &mut SiteTable, given: &Given<'_>, reader: &mut Reader<'_>) -> Result<(), Wrong> {
    given.read_each(&REWRITE, reader, |way: Way, table, _| {
        let (from, to) = way.ends(table)?;
        site.rewrites.push(Rewrite::new(from, &to).map_err(|mend| table.wrong(mend))?);
        Ok(())
    })
}

impl Way {
    fn ends(&self, table: &Given<'_>) -> Result<(Pattern, String), Wrong> {
        let both = self.from.clone().zip(self.to.clone());
        both.ok_or_else(|| table.wrong("it says from where to where: from = \"/old/**\", to = \"/new/**\""))
    }
}

fn read_error_pages(site: &mut SiteTable, given: &Given<'_>, _: &mut Reader<'_>) -> Result<(), Wrong> {
    for (statuses, page) in given.entries()? {
        let page = match page.is_off() {
            true => None,
            false => {
                page.parse(|path| tenfold_site::page_name(path).map(drop))?;
                Some(page.text()?.to_owned())
            }
        };
        let result = ErrorPages::default().set(statuses.text(), page.as_deref());
        result.map_err(|mend| statuses.wrong(mend))?;
        site.error_pages.push((statuses.text().to_owned(), page));
    }
    Ok(())
}

/// Reads `[[host]]`: each with a name, and no name twice.
pub(super) fn read_hosts(
    settings: &mut Settings,
    given: &Given<'_>,
    reader: &mut Reader<'_>,
) -> Result<(), Wrong> {
    given.read_each(&HOST, reader, |host: SiteTable, table, _| {
        if host.names.is_empty() {
            return Err(table.wrong("a host has a name: name = \"example.org\""));
        }
        let others = settings.hosts.iter().flat_map(|other| &other.names);
        let known: Vec<_> = others.collect();
        let twice = (0..host.names.len())
            .find(|&at| known.contains(&&host.names[at]) || host.names[..at].contains(&host.names[at]));
        if let Some(at) = twice {
            return Err(table.wrong(format!("there is a host called {} already", host.names[at])));
        }
        settings.hosts.push(host);
        Ok(())
    })
}
