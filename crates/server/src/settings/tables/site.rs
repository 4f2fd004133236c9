//! The keys of a site: `[site]` and each `[[host]]`.

use std::path::PathBuf;

use tenfold_site::{HostName, Pattern, Policies, Policy, Rule};

use super::{Given, Key, Keys, Reader, Shape, Wrong};
use crate::settings::Settings;

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
}

impl SiteTable {
    /// What a host says, behind what is said for all.
    pub(crate) fn above(&self, host: &SiteTable) -> SiteTable {
        let host = host.clone();
        let mut rules = self.rules.clone();
        rules.push(Rule { paths: Pattern::all(), policy: host.policy });
        rules.extend(host.rules);
        SiteTable { policy: self.policy.clone(), rules, ..host }
    }

    /// What the site makes of it.
    pub(crate) fn policies(&self) -> Policies {
        Policies::new(self.policy.clone(), self.rules.clone())
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
