//! Sections of PEM files (RFC 7468). An unreadable section is an error with its line; text between sections
//! is ignored.

use std::fmt::Display;

use base64ct::{Base64, Encoding};
use rustls::pki_types::CertificateDer;
use zeroize::Zeroizing;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// Labels of certificates, including the spellings of old programs (RFC 7468 §5.1).
const CERTIFICATES: [&str; 3] = ["CERTIFICATE", "X509 CERTIFICATE", "X.509 CERTIFICATE"];
/// Suffixes of labels that a file of certificates may also contain.
const OTHERS: [&str; 5] = ["PRIVATE KEY", "PUBLIC KEY", "PARAMETERS", "CERTIFICATE REQUEST", "X509 CRL"];
const KEYS: [&str; 3] = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"];

/// An undecoded section.
struct Section<'p> {
    label: &'p str,
    /// The line of its beginning, counted from 1.
    line: usize,
    body: &'p [u8],
}

/// A certificate, and the line where its section begins.
pub(super) struct LocatedCertificate {
    pub(super) line: usize,
    pub(super) der: CertificateDer<'static>,
}

const TEXT: &str = "text that is not base64 within a section";

/// Returns the error of a section that cannot be read.
fn at(line: usize, reason: impl Display) -> String {
    format!("line {line}: {reason}")
}

/// Returns the certificates of a file, or the first error. Sections of keys are skipped without decoding.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<LocatedCertificate>, String> {
    let mut found = Vec::new();
    for section in sections(pem)? {
        if CERTIFICATES.contains(&section.label) {
            let der = std::mem::take(&mut *section.decode()?).into();
            found.push(LocatedCertificate { line: section.line, der });
        } else if !OTHERS.iter().any(|label| section.label.ends_with(label)) {
            return Err(section.refused());
        }
    }
    Ok(found)
}

/// Returns the private key of a file, in DER; `None` if no section has a key. A second key is an error.
pub(super) fn private_key(pem: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
    let mut keys = sections(pem)?.into_iter().filter(|section| section.label.ends_with(KEYS[0]));
    let Some(key) = keys.next() else { return Ok(None) };
    if let Some(second) = keys.next() {
        return Err(at(second.line, "a second private key; only one key can belong to a certificate"));
    }
    if !KEYS.contains(&key.label) {
        return Err(key.refused());
    }
    key.decode().map(Some)
}

impl Section<'_> {
    /// Decodes the body, ignoring white space. Dropping the result wipes it, because it may be a key.
    fn decode(&self) -> Result<Zeroizing<Vec<u8>>, String> {
        let mut encoded = Zeroizing::new(Vec::with_capacity(self.body.len()));
        for (line, text) in (self.line..).zip(self.body.split(|byte| *byte == b'\n')) {
            for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
                if !(byte.is_ascii_alphanumeric() || b"+/=".contains(byte)) {
                    return Err(at(line, TEXT));
                }
                encoded.push(*byte);
            }
        }
        let mut decoded = Zeroizing::new(vec![0; encoded.len()]);
        match Base64::decode(&*encoded, &mut decoded).map(<[u8]>::len) {
            Ok(length) if length > 0 => {
                decoded.truncate(length);
                Ok(decoded)
            }
            Ok(_) | Err(_) => Err(at(self.line, "the base64 text of the section is incomplete")),
        }
    }

    fn refused(&self) -> String {
        at(self.line, format_args!("the section {} cannot be used here", self.label))
    }
}

/// The beginning or the end of a section.
struct Marker<'p> {
    label: &'p str,
    is_begin: bool,
    line: usize,
    /// The position in the file.
    start: usize,
    end: usize,
}

fn sections(pem: &[u8]) -> Result<Vec<Section<'_>>, String> {
    if pem.starts_with(&[0xff, 0xfe]) || pem.starts_with(&[0xfe, 0xff]) {
        return Err(at(1, "the text is UTF-16; save it as UTF-8"));
    }
    let (mut found, mut position) = (Vec::new(), 0);
    while let Some(begin) = marker(pem, position)? {
        let Marker { label, line, .. } = begin;
        if !begin.is_begin {
            return Err(at(line, "a section ends without a beginning"));
        }
        let Some(end) = marker(pem, begin.end)? else {
            // A malformed end marker is undecodable text in the section.
            let rest = Section { label, line, body: &pem[begin.end..] };
            let wrong = rest.decode().err().filter(|error| error.ends_with(TEXT));
            let last = line_of(pem, pem.trim_ascii_end().len());
            let cut = || at(last, format_args!("the file ends within the section of line {line}"));
            return Err(wrong.unwrap_or_else(cut));
        };
        if end.is_begin {
            let reason = format!("a section begins before the end of the section of line {line}");
            return Err(at(end.line, reason));
        }
        if end.label != label {
            return Err(at(end.line, format_args!("the section of line {line} ends with another label")));
        }
        found.push(Section { label, line, body: &pem[begin.end..end.start] });
        position = end.end;
    }
    Ok(found)
}

/// Returns the next marker from `from` on. In its line it may follow other text, such as the end of a section
/// or a byte-order mark. After a number sign, it is part of a comment.
fn marker(pem: &[u8], mut from: usize) -> Result<Option<Marker<'_>>, String> {
    loop {
        let rest = &pem[from..];
        let found = rest.windows(DASHES.len()).position(|text| text == DASHES);
        let Some(start) = found.map(|found| from + found) else { return Ok(None) };
        let is_begin = pem[start..].starts_with(BEGIN);
        let prefix = if is_begin { BEGIN } else { END };
        let line_start = pem[..start].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let is_comment = pem[line_start..start].trim_ascii_start().starts_with(b"#");
        if is_comment || !pem[start..].starts_with(prefix) {
            from = start + 1;
            continue;
        }
        let line = line_of(pem, start);
        let text = pem[start + prefix.len()..].split(|byte| *byte == b'\n').next().unwrap_or_default();
        let length = text.windows(DASHES.len()).position(|text| text == DASHES);
        let label = length.and_then(|length| std::str::from_utf8(&text[..length]).ok());
        let label = label.ok_or_else(|| at(line, "the marker of a section does not end with -----"))?;
        let end = start + prefix.len() + label.len() + DASHES.len();
        return Ok(Some(Marker { label, is_begin, line, start, end }));
    }
}

/// Returns the line of a position in the file, counted from 1.
fn line_of(pem: &[u8], position: usize) -> usize {
    1 + pem[..position].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::generate;

    fn certificate() -> (String, Vec<u8>) {
        let pair = generate::pair(&["a.test"], &rcgen::PKCS_ED25519);
        (pair.certificate_pem.replace("\r\n", "\n"), pair.certificate.to_vec())
    }

    fn read(pem: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let found = certificates(pem).unwrap_or_else(|error| panic!("{error}"));
        found.into_iter().map(|found| (found.line, found.der.to_vec())).collect()
    }

    fn refused(pem: impl AsRef<[u8]>) -> String {
        certificates(pem.as_ref()).err().expect("it is refused")
    }

    /// Encodes a section with this label.
    fn section(label: &str, der: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", Base64::encode_string(der))
    }

    #[test]
    fn every_spelling_of_a_certificate_is_read() {
        let (pem, der) = certificate();
        let lines = pem.lines().count();
        let joined = format!("{}{pem}", pem.trim_end());
        assert_eq!(read(joined.as_bytes()), [(1, der.clone()), (lines, der.clone())]);
        let marked = format!("\u{feff}{pem}\u{feff}{pem}");
        assert_eq!(read(marked.as_bytes()), [(1, der.clone()), (lines + 1, der.clone())]);
        for label in ["X509 CERTIFICATE", "X.509 CERTIFICATE"] {
            assert_eq!(read(pem.replace("CERTIFICATE", label).as_bytes()), [(1, der.clone())]);
        }
        let key = "-----BEGIN PRIVATE KEY-----\nnot decoded!\n-----END PRIVATE KEY-----";
        let commented: String = pem.lines().map(|line| format!("# {line}\n")).collect();
        let text = format!("subject=a.test\n{commented}{key}{pem}-----\n{key}");
        assert_eq!(read(text.replace('\n', "\r\n").as_bytes()), [(lines + 4, der.clone())]);
        assert_eq!(read(pem.replace('\n', " ").as_bytes()), [(1, der)], "in one line");
        assert!(read(b"").is_empty() && read(b"-----\nBEGIN").is_empty());
    }

    #[test]
    fn a_section_that_cannot_be_read_is_refused_with_its_line() {
        let (pem, der) = certificate();
        let (first, last) = (pem.lines().count() + 1, 2 * pem.lines().count());
        let text: Vec<&str> = pem.lines().collect();
        let without = |line: usize| {
            let kept = text.iter().enumerate().filter(|(at, _)| *at != line);
            kept.map(|(_, line)| format!("{line}\n")).collect::<String>()
        };
        let second = |wrong: &str| refused(format!("{pem}{wrong}"));
        let at = |line: usize, reason: &str| format!("line {line}: {reason}");
        let cut = text[..3].join("\n");
        assert_eq!(second(&cut), at(first + 2, &format!("the file ends within the section of line {first}")));
        assert_eq!(
            second(pem[..pem.len() - 3].trim_end()),
            at(last, "the marker of a section does not end with -----")
        );
        assert_eq!(
            refused(format!("{cut}\n{pem}")),
            at(4, "a section begins before the end of the section of line 1")
        );
        assert_eq!(second(&without(0)), at(last - 1, "a section ends without a beginning"));
        assert_eq!(
            second(&pem.replace("-----END", "----END")),
            at(last, "text that is not base64 within a section")
        );
        let key = pem.replace("END CERTIFICATE", "END PRIVATE KEY");
        assert_eq!(second(&key), at(last, &format!("the section of line {first} ends with another label")));
        assert_eq!(
            second(&pem.replace("==", "")),
            second("-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----")
        );
        assert_eq!(second(&section("PKCS7", &der)), at(first, "the section PKCS7 cannot be used here"));
        assert_eq!(refused([0xff, 0xfe, b'-', 0]), at(1, "the text is UTF-16; save it as UTF-8"));
    }

    #[test]
    fn any_bytes_are_sections_or_refused() {
        let (pem, _) = certificate();
        bolero::check!().with_iterations(5000).with_type::<(u16, Vec<u8>)>().for_each(|(at, bytes)| {
            let _ = (certificates(bytes), private_key(bytes));
            let (front, back) = pem.split_at(usize::from(*at) % pem.len());
            let _ = certificates(&[front.as_bytes(), bytes, back.as_bytes()].concat());
        });
    }
}
