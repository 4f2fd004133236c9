//! The tables that stand at the top of the file.

use super::reader::{BadValue, GivenValue, Shape, TableKeys, TableReader, keys};
use super::site::{HOST, SITE, SiteTable};
use crate::settings::values::Settings;

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

/// Reads `[[host]]`: each has a name, and names are unique.
fn read_hosts(
    settings: &mut Settings,
    given: &GivenValue<'_>,
    reader: &mut TableReader<'_>,
) -> Result<(), BadValue> {
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
