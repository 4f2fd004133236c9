//! The mix of requests: paths with their frequencies, from an access log or from the files of the site.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenfold_http::encode_path;

use crate::measure::{show_count, show_number};

/// The most paths of a mix.
const MOST_PATHS: usize = 1_000;
/// The most paths of a log that are counted. Later paths are left out.
const MOST_COUNTED: usize = 100_000;
/// The most lines of a log that are read.
const MOST_LINES: u64 = 5_000_000;
/// The longest line in bytes. A longer line is split, and its parts are not requests.
const MOST_LINE: u64 = 64 * 1024;
/// The longest path in bytes.
const MOST_PATH: usize = 2_048;
/// The most entries of folders that are read.
const MOST_ENTRIES: usize = 100_000;

/// Paths with their frequencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMix {
    /// Paths and the number of their requests, the most frequent first.
    pub paths: Vec<(String, u64)>,
    /// Their origin, in words.
    pub from: String,
    /// The number of paths that were left out because of the bounds.
    pub left_out: usize,
}

impl RequestMix {
    fn new(mut paths: Vec<(String, u64)>, from: String, left_out: usize) -> RequestMix {
        paths.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let beyond = paths.len().saturating_sub(MOST_PATHS);
        paths.truncate(MOST_PATHS);
        RequestMix { paths, from, left_out: left_out + beyond }
    }

    /// The mix of an access log in the format combined, common or JSON: its GET requests with status 200.
    pub fn of_log(path: &Path) -> Result<RequestMix, String> {
        let shown = path.display();
        let failed = |error: std::io::Error| format!("cannot read the log {shown}: {error}");
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(format!("cannot read the log {shown}: it is not a regular file; name an access log"));
        }
        let mut reader = BufReader::new(file);
        let (mut counts, mut lines, mut used) = (HashMap::<String, u64>::new(), 0, 0);
        let (mut line, mut left_out) = (Vec::new(), 0);
        while lines < MOST_LINES {
            line.clear();
            let count = reader.by_ref().take(MOST_LINE).read_until(b'\n', &mut line).map_err(failed)?;
            if count == 0 {
                break;
            }
            lines += 1;
            let Some(path) = path_of_line(&line) else { continue };
            used += 1;
            if let Some(count) = counts.get_mut(&path) {
                *count += 1;
            } else if counts.len() < MOST_COUNTED {
                counts.insert(path, 1);
            } else {
                left_out += 1;
            }
        }
        if counts.is_empty() {
            return Err(format!(
                "{shown} has no GET request with status 200 in {}; name an uncompressed access log in the format \
                 combined, common or JSON",
                show_count(lines as usize, "line")
            ));
        }
        let from = format!("{} of {} lines of {shown}", show_number(used as f64), show_number(lines as f64));
        Ok(RequestMix::new(counts.into_iter().collect(), from, left_out))
    }

    /// The regular files of a folder, with equal weights, without hidden files and links. Of too many files, a random
    /// part is used.
    pub fn of_folder(root: &Path, seed: u64) -> Result<RequestMix, String> {
        let mut found = Vec::new();
        let (mut folders, mut entries) = (vec![PathBuf::new()], 0);
        while let Some(folder) = folders.pop() {
            let read = match fs::read_dir(root.join(&folder)) {
                Ok(read) => read,
                Err(error) if folder.as_os_str().is_empty() => {
                    return Err(format!("cannot read the site {}: {error}", root.display()));
                }
                // The server cannot read this folder, either.
                Err(_) => continue,
            };
            for entry in read.flatten() {
                entries += 1;
                let name = entry.file_name();
                let Some(kind) = entry.file_type().ok().filter(|_| !name.as_bytes().starts_with(b".")) else {
                    continue;
                };
                if kind.is_dir() {
                    folders.push(folder.join(&name));
                } else if kind.is_file() {
                    found.push(url_path(&folder, &name));
                }
            }
            if entries > MOST_ENTRIES {
                break;
            }
        }
        found.retain(|path| path.len() <= MOST_PATH);
        if found.is_empty() {
            return Err(format!(
                "the site {} has no files to request; name a folder with files that are not hidden",
                root.display()
            ));
        }
        found.sort_unstable();
        let beyond = found.len().saturating_sub(MOST_PATHS);
        fastrand::Rng::with_seed(seed).shuffle(&mut found);
        found.truncate(MOST_PATHS);
        let from = format!("{} of the site, equally often", show_count(found.len(), "file"));
        Ok(RequestMix::new(found.into_iter().map(|path| (path, 1)).collect(), from, beyond))
    }
}

/// The path of a line of a log, if the line is a GET request with status 200. Clients determine the content of a log,
/// so only visible ASCII is accepted.
fn path_of_line(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let (target, status) = if text.starts_with('{') { of_json(text)? } else { of_combined(text)? };
    let path = target.split('?').next().unwrap_or_default();
    let legal = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'#' | b'<' | b'>');
    let usable = path.starts_with('/') && path.len() <= MOST_PATH && path.bytes().all(legal);
    (status == "200" && usable).then(|| path.to_owned())
}

/// Target and status of `127.0.0.1 - - [...] "GET /x HTTP/1.1" 200 5 ...`.
fn of_combined(text: &str) -> Option<(String, String)> {
    let (_, rest) = text.split_once('"')?;
    let (request, rest) = rest.split_once('"')?;
    let status = rest.split_whitespace().next()?;
    Some((of_request(request)?, status.to_owned()))
}

/// Target and status of a JSON object from Tenfold, Caddy (`request.uri`), or nginx with usual keys.
fn of_json(text: &str) -> Option<(String, String)> {
    let line: BTreeMap<String, Value> = serde_json::from_str(text).ok()?;
    let status = match line.get("status")? {
        Value::String(text) => text.clone(),
        other => other.as_u64()?.to_string(),
    };
    let of_keys = |method: Option<&Value>, target: Option<&Value>| {
        (method?.as_str()? == "GET").then_some(target?.as_str()?.to_owned())
    };
    let target = match line.get("request") {
        Some(Value::String(request)) => of_request(request)?,
        Some(Value::Object(request)) => of_keys(request.get("method"), request.get("uri"))?,
        _ => of_keys(
            line.get("method").or_else(|| line.get("request_method")),
            line.get("path").or_else(|| line.get("uri")).or_else(|| line.get("request_uri")),
        )?,
    };
    Some((target, status))
}

/// The target of a request line, if the method is GET.
fn of_request(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    (method == "GET" && words.next().is_some_and(|version| version.starts_with("HTTP/")))
        .then(|| target.to_owned())
}

/// The URL path of a file. An index is requested by the path of its folder.
fn url_path(folder: &Path, name: &OsStr) -> String {
    let mut path = String::from("/");
    if !folder.as_os_str().is_empty() {
        encode_path(folder.as_os_str().as_bytes(), &mut path);
        path.push('/');
    }
    if name != "index.html" {
        encode_path(name.as_bytes(), &mut path);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tenfold-tune-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub/.git")).expect("a folder");
        folder
    }

    #[test]
    fn lines_of_every_format_have_their_path() {
        let path = |line: &str| path_of_line(line.as_bytes());
        let found = Some("/a/b.css".to_owned());
        for line in [
            r#"1.2.3.4 - bob [21/Nov/2026:08:00:00 +0000] "GET /a/b.css?v=2 HTTP/1.1" 200 118 "-" "Mozilla/5.0""#,
            r#"::1 - - [21/Nov/2026:08:00:00 +0000] "GET /a/b.css HTTP/2.0" 200 -"#,
            r#"{"time":"x","request":"GET /a/b.css?q HTTP/1.1","method":"GET","path":"/a/b.css","status":200}"#,
            r#"{"request":{"method":"GET","uri":"/a/b.css?q","host":"x"},"status":200}"#,
            r#"{"request_method":"GET","request_uri":"/a/b.css","status":"200"}"#,
        ] {
            assert_eq!(path(line), found, "{line}");
        }
        for line in [
            "",
            "{",
            "{}",
            r#"1.2.3.4 - - [x] "POST /a HTTP/1.1" 200 1 "-" "-""#,
            r#"1.2.3.4 - - [x] "GET /a HTTP/1.1" 304 - "-" "-""#,
            r#"1.2.3.4 - - [x] "GET http://other/ HTTP/1.1" 200 1 "-" "-""#,
            r#"1.2.3.4 - - [x] "GET /\x1B[31m HTTP/1.1" 200 1 "-" "-""#,
            r#"1.2.3.4 - - [x] "GET /a b HTTP/1.1" 200 1 "-" "-""#,
            r#"{"request":"GET /\u001b\u00e9 HTTP/1.1","status":200}"#,
            r#"{"request":"GET /a#b HTTP/1.1","status":200}"#,
            r#"{"request":7,"status":200}"#,
        ] {
            assert_eq!(path(line), None, "{line}");
        }
        assert_eq!(path_of_line(b"1.2.3.4 - - [x] \"GET /\xff HTTP/1.1\" 200 1"), None);
        let long = format!("- - [x] \"GET /{} HTTP/1.1\" 200 1", "a".repeat(MOST_PATH));
        assert_eq!(path(&long), None);
    }

    #[test]
    fn a_log_is_a_mix_and_a_log_without_requests_is_refused() {
        let folder = folder("log");
        let file = folder.join("access.log");
        let line = |path: &str| format!("1.2.3.4 - - [x] \"GET {path} HTTP/1.1\" 200 1 \"-\" \"-\"\n");
        let text = [line("/b"), line("/a"), "garbage\n".to_owned(), line("/b")].concat();
        fs::write(&file, text).expect("it is written");
        let mix = RequestMix::of_log(&file).expect("it has requests");
        assert_eq!(mix.paths, [("/b".to_owned(), 2), ("/a".to_owned(), 1)]);
        assert!(mix.from.starts_with("3 of 4 lines of "), "{}", mix.from);
        fs::write(&file, (0..1_500).map(|number| line(&format!("/{number}"))).collect::<String>())
            .expect("it is written");
        let mix = RequestMix::of_log(&file).expect("it has requests");
        assert_eq!((mix.paths.len(), mix.left_out), (MOST_PATHS, 500));
        fs::write(&file, "no request\n").expect("it is written");
        let said = RequestMix::of_log(&file).expect_err("none");
        assert!(said.contains("in 1 line; name an uncompressed access log"), "{said}");
        let said = RequestMix::of_log(&folder).expect_err("a folder");
        assert!(said.contains("not a regular file"), "{said}");
        let said = RequestMix::of_log(&folder.join("none")).expect_err("nothing");
        assert!(said.contains("cannot read the log"), "{said}");
        fs::remove_dir_all(&folder).expect("it is removed");
    }

    #[test]
    fn a_folder_is_a_mix_of_its_files_without_hidden_ones_and_links() {
        let folder = folder("site");
        let said = RequestMix::of_folder(&folder, 1).expect_err("it is empty");
        assert!(said.contains("no files to request"), "{said}");
        for name in ["index.html", "a b%.txt", "sub/index.html", "sub/x", ".hidden", "sub/.git/config"] {
            fs::write(folder.join(name), "x").expect("it is written");
        }
        std::os::unix::fs::symlink(folder.join("index.html"), folder.join("link")).expect("it is made");
        let mix = RequestMix::of_folder(&folder, 1).expect("it has files");
        let paths: Vec<&str> = mix.paths.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/", "/a%20b%25.txt", "/sub/", "/sub/x"]);
        assert_eq!(mix.from, "4 files of the site, equally often");
        fs::remove_dir_all(&folder).expect("it is removed");
        let said = RequestMix::of_folder(&folder, 1).expect_err("it is gone");
        assert!(said.contains("cannot read the site"), "{said}");
    }
}
