//! Virtual hosts: the site for a request's host, and the first step of that site.
//!
//! An exact name wins over a pattern, and a longer pattern over a shorter one. Requests without a host, or
//! with an unknown host, get the first site.

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
/// Lower case, without a port. `*.example.org` matches every name that ends in `.example.org`, but not
/// `example.org`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostName(String);

impl HostName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a name. An error explains the remedy.
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
    /// None if there is only one site, which serves every host.
    names: Option<Names>,
}

#[derive(Debug, Default)]
struct Names {
    exact: HashMap<String, usize>,
    /// By the text after the star, including the dot.
    endings: HashMap<String, usize>,
}

impl Hosts {
    /// `default` serves all other names. If a name occurs twice, its last site wins; the configuration
    /// refuses such names earlier.
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
        // All hosts share encodings and digests, so each version of a file is encoded once.
        if let Some((first, others)) = sites.split_first_mut() {
            for site in others {
                site.encoded = Arc::clone(&first.encoded);
                site.digests = Arc::clone(&first.digests);
            }
        }
        let areas: Vec<_> = sites.iter().map(|site| Arc::clone(site.files.protection.own())).collect();
        sites.iter_mut().for_each(|site| site.files.protection.add_hosts(&areas));
        Hosts { sites, names }
    }

    /// Restricts these folders of every root to members.
    #[must_use]
    pub fn for_members(mut self, folders: MemberFolders) -> Hosts {
        let folders = Arc::new(folders);
        self.sites.iter_mut().for_each(|site| site.files.protection.for_members(&folders));
        self
    }

    /// Adds a sink for remarks about files.
    #[must_use]
    pub fn with_remarks(mut self, remarks: Remarks) -> Hosts {
        self.sites.iter_mut().for_each(|site| site.remarks = Some(remarks));
        self
    }

    /// Writes the whole response to `request`, or returns the work that must be done first.
    #[inline]
    pub fn respond(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> Answered {
        self.site(request).respond(request, response)
    }

    /// Like [`Hosts::respond`], for a client that is logged in as a member.
    pub fn respond_to_member(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> Answered {
        self.site(request).respond_to_member(request, response)
    }

    /// Answers `request` with the result of finished work.
    pub fn finish(
        &self,
        finish: FinishWork,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> Answered {
        finish.answer(self.site(request), request, response)
    }

    /// Answers if the queue of work is full: as declared in [`Work::split`], or with 503.
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

    /// Answers a malformed or rejected request with the first site's error page, if it has one. Without
    /// `whole`, only the head is sent. The connection ends after it. Returns the length of the body.
    pub fn refuse(&self, status: u16, whole: bool, response: &mut ResponseWriter<'_>) -> Option<u64> {
        let site = &self.sites[0];
        store::with(site, |store| store.refuse_with_page(site, status, whole, response))
    }

    /// Answers 500 because the work failed.
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
    /// Returns the index of the site for this `Host`.
    fn find(&self, host: &str) -> Option<usize> {
        let name = without_port(host);
        let name = name.strip_suffix('.').unwrap_or(name);
        // A name has at most 253 bytes (RFC 1035 §2.3.4), so a longer name matches no site.
        let mut buffer = [0; 253];
        let lower = buffer.get_mut(..name.len())?;
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        let name = std::str::from_utf8(lower).ok()?;
        if let Some(index) = self.exact.get(name) {
            return Some(*index);
        }
        if self.endings.is_empty() {
            return None;
        }
        let dots = name.bytes().enumerate().skip(1).filter(|(_, byte)| *byte == b'.');
        dots.map(|(at, _)| &name[at..]).find_map(|ending| self.endings.get(ending)).copied()
    }
}

impl Site {
    /// Writes the whole response to `request`, or returns the work that must be done first. A file outside
    /// this worker's store is opened immediately, and read if it is small.
    ///
    /// A cached file is checked again after a second, so responses reflect changes on disk.
    #[inline]
    pub fn respond(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> Answered {
        self.respond_as(&STRANGER, request, response)
    }

    /// Like [`Site::respond`], for a client that is logged in as a member.
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
                // The summary fits two registers; an `Answered` from the store would go through memory.
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
        for (name, index) in all {
            match name.strip_prefix('*') {
                Some(ending) => names.endings.insert(ending.to_owned(), *index),
                None => names.exact.insert((*name).to_owned(), *index),
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
        for (host, index) in [
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
            assert_eq!(names.find(host), index, "{host}");
        }
        assert_eq!(names.find(&format!("{}.example.org", "a".repeat(250))), None);
    }

    #[test]
    fn invalid_host_names_are_refused() {
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
