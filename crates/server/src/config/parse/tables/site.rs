//! The keys of a site: `[site]` and each `[[host]]`.

use std::path::PathBuf;

use tenfold_site::{
    ErrorPages, HostName, Pattern, Policies, Policy, PolicyRule, Redirect, Rewrite, Routes, Shown, Slash,
};
use tenfold_sys::links::Links;

use super::policy::POLICY;
use super::reader::{BadValue, GivenValue, ReadResult, Shape, TableKeys, TableReader, keys};
use crate::config::parse::units::{file_name, word};

/// The keys of a site's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteTable {
    /// Empty for `[site]`.
    pub(crate) names: Vec<HostName>,
    /// The folder of this site; `None`: the setting `root`.
    pub(crate) root: Option<PathBuf>,
    /// The index files of this site; `None`: the setting `index`.
    pub(crate) index: Option<Vec<String>>,
    /// The policy of all paths.
    pub(crate) policy: Policy,
    /// The policies of some paths.
    pub(crate) rules: Vec<PolicyRule>,
    redirects: Vec<Redirect>,
    rewrites: Vec<Rewrite>,
    slash: Option<Slash>,
    shown: Option<Shown>,
    links: Option<Links>,
    /// Pages by status; `None`: a line of text in place of a page.
    error_pages: Vec<(String, Option<String>)>,
}

impl SiteTable {
    /// Returns this table with the entries of a host added or in their place.
    pub(crate) fn above(&self, host: &SiteTable) -> SiteTable {
        let host = host.clone();
        let mut rules = self.rules.clone();
        rules.push(PolicyRule { paths: Pattern::all(), policy: host.policy });
        rules.extend(host.rules);
        SiteTable {
            policy: self.policy.clone(),
            rules,
            // The first match counts, so the entries of the host precede.
            redirects: [host.redirects, self.redirects.clone()].concat(),
            rewrites: [host.rewrites, self.rewrites.clone()].concat(),
            slash: host.slash.or(self.slash),
            shown: host.shown.or_else(|| self.shown.clone()),
            links: host.links.or(self.links),
            error_pages: [self.error_pages.clone(), host.error_pages].concat(),
            ..host
        }
    }

    /// Every policy of the table: for all paths, and by rules.
    pub(crate) fn all_policies(&self) -> impl Iterator<Item = &Policy> {
        std::iter::once(&self.policy).chain(self.rules.iter().map(|rule| &rule.policy))
    }

    /// Whether the key `dotfiles` names files.
    pub(crate) fn names_dotfiles(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| *shown != Shown::new(Vec::new()))
    }

    /// The files in the table that are bodies of errors or fallbacks, beneath the root.
    pub(crate) fn named_files(&self) -> impl Iterator<Item = &str> {
        let pages = self.error_pages.iter().filter_map(|(_, path)| path.as_deref());
        let fallbacks = self.all_policies().filter_map(|policy| policy.fallback.as_ref()?.as_deref());
        pages.chain(fallbacks).map(|path| path.trim_start_matches('/'))
    }

    /// Returns the policies for the site.
    pub(crate) fn policies(&self) -> Policies {
        Policies::new(self.policy.clone(), self.rules.clone())
    }

    /// Returns the routes for the site.
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

const SLASHES: &[(&str, Slash)] =
    &[("add", Slash::Add), ("remove", Slash::Remove), ("either", Slash::Either)];
const LINKS: &[(&str, Links)] =
    &[("beneath", Links::Beneath), ("none", Links::None), ("owner", Links::SameOwner)];

/// The keys of a site that are the same for every host.
macro_rules! site_keys {
    ($($own:tt)*) => {
        keys! {
            $($own)*
            "path" Shape::Tables(&PATH);
                "rules for some paths; if several match, the later one wins for each key";
                |site, given, reader| read_rules(site, given, reader)?;
            "redirect" Shape::Tables(&REDIRECT);
                "redirects clients to another URL; the first match applies";
                |site, given, reader| read_redirects(site, given, reader)?;
            "rewrite" Shape::Tables(&REWRITE);
                "serves another path without a redirect; the first match applies";
                |site, given, reader| read_rewrites(site, given, reader)?;
            "trailing-slash" Shape::Word(&["add", "remove", "either"]);
                "the trailing slash of folders: add, remove or either; other requests are redirected";
                |site, given, _| site.slash = Some(given.parse(|text| word(text, "rule for slashes", SLASHES))?);
            "dotfiles" Shape::Many(&Shape::Text("/.well-known"));
                "hidden files and folders to serve; default: /.well-known";
                |site, given, _| site.shown = Some(Shown::new(given.parse_each(Pattern::new)?));
            "symlinks" Shape::Word(&["beneath", "none", "owner"]);
                "symbolic links to follow: beneath (if the target is beneath the root), none, owner (if the target has the same owner)";
                |site, given, _| site.links = Some(given.parse(|text| word(text, "choice of links", LINKS))?);
            "error-pages" Shape::Map("404", &Shape::Either(&[Shape::Text("/404.html"), Shape::Off]));
                "files for the bodies of error responses, by status: 404, 4xx; false for a line of text";
                |site, given, _| read_error_pages(site, given)?;
        }
    };
}

/// `[site]`
pub(crate) static SITE: TableKeys<SiteTable> =
    TableKeys { of: "[site]", own: site_keys! {}, policy: Some((|site| &mut site.policy, POLICY)) };

/// `[[host]]`
pub(crate) static HOST: TableKeys<SiteTable> = TableKeys {
    of: "[[host]]",
    own: site_keys! {
        "name" Shape::Many(&Shape::Text("example.org"));
            "the names of the host; *.example.org matches every name with this ending";
            |site, given, _| site.names = given.parse_each(HostName::new)?;
        "root" Shape::Text("site");
            "the folder to serve; default: the setting root";
            |site, given, reader| site.root = Some(given.path(reader)?);
        "index" Shape::Many(&Shape::Text("index.html"));
            "the file to serve for a folder, or several: the first one that exists; default: the setting index";
            |site, given, _| site.index = Some(given.parse_each(file_name)?);
    },
    policy: Some((|site| &mut site.policy, POLICY)),
};

/// `[[site.path]]` and `[[host.path]]`
static PATH: TableKeys<PathTable> = TableKeys {
    of: "a path",
    own: keys! {
        "match" Shape::Many(&Shape::Text("/assets/**"));
            "the paths to match; * matches a part of a name, ** any characters";
            |path, given, _| path.patterns = given.parse_each(Pattern::new)?;
    },
    policy: Some((|path| &mut path.policy, POLICY)),
};

#[derive(Default)]
struct PathTable {
    patterns: Vec<Pattern>,
    policy: Policy,
}

fn read_rules(site: &mut SiteTable, given: &GivenValue<'_>, reader: &mut TableReader<'_>) -> ReadResult {
    given.read_each(&PATH, reader, |PathTable { patterns, policy }, table, _| {
        if patterns.is_empty() {
            return Err(table.wrong("the key match is missing: match = \"/assets/**\""));
        }
        site.rules.extend(patterns.into_iter().map(|paths| PolicyRule { paths, policy: policy.clone() }));
        Ok(())
    })
}

/// `[[...redirect]]` and `[[...rewrite]]`
#[derive(Default)]
struct RedirectRow {
    from: Option<Pattern>,
    to: Option<String>,
    status: Option<u16>,
}

macro_rules! way_keys {
    ($($more:tt)*) => {
        keys! {
            "from" Shape::Text("/old/**");
                "the paths to match; * matches a part of a name, ** any characters";
                |way, given, _| way.from = Some(given.parse(Pattern::new)?);
            "to" Shape::Text("/new/**");
                "the target; if it and the path both end with /**, the rest of the path is kept";
                |way, given, _| way.to = Some(given.text()?.to_owned());
            $($more)*
        }
    };
}

static REDIRECT: TableKeys<RedirectRow> = TableKeys {
    of: "a redirect",
    own: way_keys! {
        "status" Shape::Number(301, 308);
            "the status: 301 (default), 302, 303, 307 or 308";
            |way, given, _| {
                let status = given.number(301, 308).ok().and_then(|number| u16::try_from(number).ok());
                let status = status.filter(|status| Redirect::STATUSES.contains(status));
                way.status = Some(status.ok_or_else(|| given.wrong("use 301, 302, 303, 307 or 308"))?);
            };
    },
    policy: None,
};

static REWRITE: TableKeys<RedirectRow> = TableKeys { of: "a rewrite", own: way_keys! {}, policy: None };

fn read_redirects(site: &mut SiteTable, given: &GivenValue<'_>, reader: &mut TableReader<'_>) -> ReadResult {
    given.read_each(&REDIRECT, reader, |way: RedirectRow, table, _| {
        let (from, to) = way.ends(table)?;
        let redirect = Redirect::new(from, &to, way.status.unwrap_or(301));
        site.redirects.push(redirect.map_err(|mend| table.at("to").wrong(mend))?);
        Ok(())
    })
}

fn read_rewrites(site: &mut SiteTable, given: &GivenValue<'_>, reader: &mut TableReader<'_>) -> ReadResult {
    given.read_each(&REWRITE, reader, |way: RedirectRow, table, _| {
        let (from, to) = way.ends(table)?;
        site.rewrites.push(Rewrite::new(from, &to).map_err(|mend| table.at("to").wrong(mend))?);
        Ok(())
    })
}

impl RedirectRow {
    fn ends(&self, table: &GivenValue<'_>) -> Result<(Pattern, String), BadValue> {
        let both = self.from.clone().zip(self.to.clone());
        both.ok_or_else(|| {
            table.wrong("the keys from and to are required: from = \"/old/**\", to = \"/new/**\"")
        })
    }
}

fn read_error_pages(site: &mut SiteTable, given: &GivenValue<'_>) -> ReadResult {
    for (statuses, page) in given.entries()? {
        // A name that is no status is probably a setting of another table, so the message is about the name.
        ErrorPages::default().set(statuses.text(), None).map_err(|mend| statuses.wrong(mend))?;
        let page = match page.is_off() {
            true => None,
            false => {
                page.parse(|path| tenfold_site::page_name(path).map(drop))?;
                Some(page.text()?.to_owned())
            }
        };
        site.error_pages.push((statuses.text().to_owned(), page));
    }
    Ok(())
}
