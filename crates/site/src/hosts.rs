//! Virtual hosts: which site a request is for, by the host that it names, and the first step of that site.
//!
//! An exact name wins over a pattern, and the longer pattern over the shorter. A request that names no host, or
//! one that no site has, is for the first site.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tenfold_http::{Method, Request, ResponseWriter, without_port};

use crate::files::protection::MemberFolders;
use crate::files::siblings::Remarks;
use crate::representation::status_text;
use crate::representation::summary::ResponseSummary;
use crate::respond::steps::ResponseSteps;
use crate::respond::work::{Answered, FinishWork, Otherwise};
use crate::respond::{message, store};
use crate::rules::access::{Access, MEMBER, STRANGER};
use crate::rules::precheck;
use crate::site::Site;

/// The name of a host, or a pattern of names: `example.org`, `*.example.org`, `192.0.2.1`, `[2001:db8::1]`.
/// Lower case, without a port. A pattern is for every name that ends so, but not for what follows `*.` itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostName(String);

impl HostName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a name.
    ///
    /// # Errors
    /// In words that say how to mend it.
    pub fn new(text: &str) -> Result<HostName, String> {
        let lower = text.trim_end_matches('.').to_ascii_lowercase();
        let name = lower.strip_prefix("*.").unwrap_or(&lower);
        let is_address = name.starts_with('[') && name.ends_with(']');
        let mend = match () {
            () if name.is_empty() => "a host has a name, such as example.org",
            () if name.contains("://") => "a host's name has no http:// prefix",
            () if name.contains('/') => "a host's name holds no path",
            () if name.contains('*') => "a star is allowed only as the whole first label: *.example.org",
            () if !is_address && name.contains(':') => "a host's name has no port",
            () if !name.is_ascii() => "a name in another script is written as it is sent: xn--...",
            () if !is_address
                && !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) =>
            {
                "a host's name is letters, digits, hyphens and dots"
            }
            () if name.split('.').any(str::is_empty) => "a host's name has no empty part",
            () => return Ok(HostName(lower)),
        };
        Err(mend.into())
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Sites by the names of their hosts.
#[derive(Debug)]
pub struct Hosts {
    sites: Vec<Site>,
    /// None if there is only one site, whatever a request names.
    names: Option<Names>,
}

#[derive(Debug, Default)]
struct Names {
    exact: HashMap<String, usize>,
    /// By the text behind the star, its dot included.
    endings: HashMap<String, usize>,
}

impl Hosts {
    /// `default` for all other names; the others for their names. Of a name that is given twice, the last
    /// one counts; a configuration with such is refused before.
    pub fn new(default: Site, others: impl IntoIterator<Item = (Vec<HostName>, Site)>) -> Hosts {
        let (mut sites, mut names) = (vec![default], Names::default());
        for (own, site) in others {
            for HostName(name) in own {
                match name.strip_prefix('*') {
                    Some(ending) => names.endings.insert(ending.to_owned(), sites.len()),
                    None => names.exact.insert(name, sites.len()),
                };
            }
            sites.push(site);
        }
        let names = (sites.len() > 1).then_some(names);
        // Each version of a file is encoded once for all hosts.
        if let Some((first, others)) = sites.split_first_mut() {
            for site in others {
                site.encoded = Arc::clone(&first.encoded);
                site.digests = Arc::clone(&first.digests);
            }
        }
        let areas: Vec<_> = sites.iter().map(|site| Arc::clone(site.files.protection.own())).collect();
        sites.iter_mut().for_each(|site| site.files.protection.beside(&areas));
        Hosts { sites, names }
    }

    /// The same, with these folders of every root for members alone.
    #[must_use]
    pub fn for_members(mut self, folders: MemberFolders) -> Hosts {
        let folders = Arc::new(folders);
        self.sites.iter_mut().for_each(|site| site.files.protection.for_members(&folders));
        self
    }

    /// The same, with remarks about files for the log.
    #[must_use]
    pub fn with_remarks(mut self, remarks: Remarks) -> Hosts {
        self.sites.iter_mut().for_each(|site| site.remarks = Some(remarks));
        self
    }

    /// Writes the whole response to `request`, or returns the work that it needs first.
    #[inline]
    pub fn respond(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> Answered {
        self.site(request).respond(request, response)
    }

    /// As [`Hosts::respond`], to a client that has logged in as a member.
    pub fn respond_to_member(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> Answered {
        self.site(request).respond_to_member(request, response)
    }

    /// Makes the answer to `request` of work that was done for it.
    pub fn finish(
        &self,
        finish: FinishWork,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> Answered {
        finish.answer(self.site(request), request, response)
    }

    /// Answers without the work that there is too much of: as its [`Work::split`] says, or with 503.
    ///
    /// [`Work::split`]: crate::Work::split
    pub fn busy(
        &self,
        otherwise: Option<Otherwise>,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> ResponseSummary {
        match otherwise {
            Some(otherwise) => otherwise.answer(self.site(request), request, response),
            None => message::unavailable(request, response),
        }
    }

    /// Answers a malformed or rejected request with the first site's own page for it, if it has one; if not `whole`, with
    /// its head alone. The connection ends after it. Returns the number of bytes of the body.
    pub fn refuse(&self, status: u16, whole: bool, response: &mut ResponseWriter<'_>) -> Option<u64> {
        let site = &self.sites[0];
        store::with(site, |store| store.refuse_with_page(site, status, whole, response))
    }

    /// Answers 500: the work failed.
    pub fn failed(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> ResponseSummary {
        status_text::plain(request, 500, response)
    }

    #[inline]
    fn site(&self, request: &Request<'_>) -> &Site {
        match &self.names {
            None => &self.sites[0],
            Some(names) => &self.sites[request.host().and_then(|host| names.find(host)).unwrap_or(0)],
        }
    }
}

impl Names {
    /// The place of the site that is for this `Host`.
    fn find(&self, host: &str) -> Option<usize> {
        let name = without_port(host);
        let name = name.strip_suffix('.').unwrap_or(name);
        // A name is at most 253 bytes (RFC 1035 §2.3.4), so a longer one has no site.
        let mut buffer = [0; 253];
        let lower = buffer.get_mut(..name.len())?;
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        let name = std::str::from_utf8(lower).ok()?;
        if let Some(place) = self.exact.get(name) {
            return Some(*place);
        }
        if self.endings.is_empty() {
            return None;
        }
        let dots = name.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'.');
        dots.map(|(at, _)| &name[at..]).find_map(|ending| self.endings.get(ending)).copied()
    }
}

impl Site {
    /// Writes the whole response to `request`, or returns the work that it needs first. A file
    /// that is not in this worker's store is opened, and read if it is small, here and now.
    ///
    /// A cached file is checked again after a second: if it was changed, replaced or removed, the response shows
    /// that.
    #[inline]
    pub fn respond(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> Answered {
        self.respond_as(&STRANGER, request, response)
    }

    /// As [`Site::respond`], to a client that has logged in as a member.
    pub fn respond_to_member(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> Answered {
        self.respond_as(&MEMBER, request, response)
    }

    fn respond_as(
        &self,
        access: &Access,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> Answered {
        match request.method {
            Method::Get | Method::Head => {
                // The summary is two words; all that a response can be takes a detour through memory.
                match store::with(self, |store| store.respond_from_memory(self, access, request, response)) {
                    Some(summary) => Answered::Staged(summary.into_cached()),
                    None => ResponseSteps::with(self, request, access, |steps| steps.respond(response)),
                }
            }
            Method::Options => {
                if let Some(fields) = precheck::options_fields(&self.settings, request) {
                    response.add_fields(&fields);
                }
                message::options(response).into()
            }
            _ => ResponseSteps::with(self, request, &STRANGER, |steps| steps.method_not_allowed(response))
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[(&str, usize)]) -> Names {
        let mut names = Names::default();
        for (name, place) in all {
            match name.strip_prefix('*') {
                Some(ending) => names.endings.insert(ending.to_owned(), *place),
                None => names.exact.insert((*name).to_owned(), *place),
            };
        }
        names
    }

    #[test]
    fn an_exact_name_wins_and_then_the_longest_ending() {
        let names = names(&[
            ("example.org", 1),
            ("*.example.org", 2),
            ("*.b.example.org", 3),
            ("www.example.org", 4),
            ("[::1]", 5),
            ("127.0.0.1", 6),
        ]);
        for (host, place) in [
            ("example.org", Some(1)),
            ("EXAMPLE.org.", Some(1)),
            ("example.org:8080", Some(1)),
            ("www.example.org", Some(4)),
            ("a.example.org", Some(2)),
            ("c.b.a.example.org:80", Some(2)),
            ("b.example.org", Some(2)),
            ("a.b.example.org", Some(3)),
            ("[::1]:8080", Some(5)),
            ("[::1]", Some(5)),
            ("127.0.0.1:1", Some(6)),
            ("xexample.org", None),
            ("example.org.evil", None),
            ("org", None),
            ("", None),
            (".example.org", None),
        ] {
            assert_eq!(names.find(host), place, "{host}");
        }
        assert_eq!(names.find(&format!("{}.example.org", "a".repeat(250))), None);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for wrong in [
            "",
            "*",
            "*.",
            "http://a",
            "a/b",
            "a.*",
            "*a.b",
            "a:80",
            "b\u{fc}cher.example",
            "a b",
            "a..b",
            ".",
        ] {
            assert!(HostName::new(wrong).is_err(), "{wrong:?}");
        }
        for (text, name) in [
            ("Example.ORG.", "example.org"),
            ("*.A.b", "*.a.b"),
            ("[::1]", "[::1]"),
            ("192.0.2.1", "192.0.2.1"),
        ] {
            assert_eq!(HostName::new(text).expect(text).to_string(), name);
        }
    }
}
