//! The tables at the top of the file.

use super::reader::{GivenValue, Keyed, ReadResult, Shape, TableKeys, TableReader, keys};
use super::site::{HOST, SITE, SiteTable};
use crate::config::parse::counterparts::{Counterpart, counterpart};
use crate::config::values::Settings;

/// The tables of a whole file.
pub(crate) static TOP: TableKeys<Settings> = TableKeys {
    of: "the file",
    own: keys! {
        "site" Shape::Table(&SITE);
            "rules for every host, and for requests that match none of them";
            |settings, given, reader| SITE.read(given.table()?, &mut settings.site, reader);
        "host" Shape::Tables(&HOST);
            "a virtual host: a site for requests with its name";
            |settings, given, reader| read_hosts(settings, given, reader)?;
    },
    policy: None,
};

/// Returns the remedy for a name that is neither a setting nor a table: the name is one of another server, or a key of
/// a site.
pub(crate) fn remedy(name: &str) -> Option<Remedy> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let own =
        || HOST.keys().into_iter().find(|(key, ..)| *key == name).map(|(key, ..)| Counterpart::Key(key));
    Some(match counterpart(&name).or_else(own)? {
        Counterpart::Setting(setting) => Remedy::Setting(setting),
        Counterpart::Advice(advice) => Remedy::Sentence(advice.into()),
        Counterpart::Key("name") => Remedy::Sentence(
            "a virtual host is a table of the configuration file: [[host]] with name = \"example.org\""
                .into(),
        ),
        Counterpart::Key(key) => {
            let shape = HOST.keys().into_iter().find(|(name, ..)| *name == key).map(|(_, shape, _)| shape);
            let place = match shape {
                Some(Shape::Tables(_)) => format!("[[site.{key}]]"),
                Some(Shape::Table(_) | Shape::Map(..)) => format!("[site.{key}]"),
                _ => format!("{key}, below [site]"),
            };
            Remedy::Sentence(format!(
                "this belongs to a site, in the configuration file: {place}; see \"Rules of a site\" in `tenfold book`"
            ))
        }
    })
}

/// The remedy for an unknown name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// This setting has the same purpose.
    Setting(&'static str),
    /// A sentence for the message.
    Sentence(String),
}

/// Reads `[[host]]`: each has a name, and names are unique.
fn read_hosts(settings: &mut Settings, given: &GivenValue<'_>, reader: &mut TableReader<'_>) -> ReadResult {
    given.read_each(&HOST, reader, |host: SiteTable, table, _| {
        if host.names.is_empty() {
            return Err(table.wrong("a host has a name: name = \"example.org\""));
        }
        let others = settings.hosts.iter().flat_map(|other| &other.names);
        let known: Vec<_> = others.collect();
        let twice = (0..host.names.len())
            .find(|&at| known.contains(&&host.names[at]) || host.names[..at].contains(&host.names[at]));
        if let Some(at) = twice {
            return Err(table.wrong(format!("duplicate host {}", host.names[at])));
        }
        settings.hosts.push(host);
        Ok(())
    })
}
