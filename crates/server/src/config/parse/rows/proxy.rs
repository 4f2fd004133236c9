//! Proxies in front of the server.

use tenfold_http::semantics::forwarded::ForwardedFields;

use super::read::{each_or_off, rows};
use crate::config::parse::row::Initial::Value;
use crate::config::parse::row::{SettingRow, Text};

pub(super) static ROWS: &[SettingRow] = rows! { "Behind a proxy":
    Many "trusted-proxy" "ADDRESS|unix" = Value("off"), not_null;
        proxies.proxies = each_or_off;
        "a proxy that names its clients (forwarded-fields, and the listener prefix proxy:): an address, a network, or \
         unix (every client of a Unix socket of this server); repeatable";
    Many "forwarded-fields" "FIELD|off" = Value("x-forwarded-for x-forwarded-proto forwarded"), not_null;
        proxies.fields = forwarded_fields;
        "header fields of a trusted-proxy to use: x-forwarded-for, x-forwarded-proto, x-forwarded-host and forwarded, or \
         off; the proxy must set or remove each of them; repeatable";
};

fn forwarded_fields(given: &[Text<'_>]) -> Result<ForwardedFields, String> {
    let mut fields = ForwardedFields::default();
    let words = given.iter().flat_map(|given| given.text.split(' '));
    for word in words {
        let field = match word {
            "off" if given.len() == 1 && fields.is_empty() => continue,
            "x-forwarded-for" => &mut fields.x_for,
            "x-forwarded-proto" => &mut fields.x_proto,
            "x-forwarded-host" => &mut fields.x_host,
            "forwarded" => &mut fields.forwarded,
            other => {
                return Err(format!(
                    "{other:?} is not x-forwarded-for, x-forwarded-proto, x-forwarded-host or forwarded, nor off alone"
                ));
            }
        };
        *field = true;
    }
    Ok(fields)
}
