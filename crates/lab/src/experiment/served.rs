//! A user's folder, and the mix of requests for its files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The most lines of the list from which the load generator draws.
const MOST_LINES: u64 = 10_000;

/// A user's folder that trials serve instead of generated files, and its requests. Trials never write to the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedSite {
    /// The folder.
    pub root: PathBuf,
    /// The requests, the most frequent first.
    pub requests: Vec<RequestedPath>,
}

/// A path, its frequency, and the correct response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedPath {
    /// The path in a URL.
    pub path: String,
    /// The number of its requests.
    pub weight: u64,
    /// The length of the body.
    pub bytes: u64,
    /// The SHA-256 of the body, in hexadecimal digits.
    pub sha256: String,
}

impl ServedSite {
    /// The URLs at `address`, one per line, in proportion to their weights.
    pub fn urls(&self, address: std::net::SocketAddr) -> String {
        let all: u64 = self.requests.iter().map(|one| one.weight).sum();
        // A random choice needs two lines.
        let least = if all < 2 { 2 } else { 1 };
        let lines = |weight: u64| match all {
            ..=MOST_LINES => weight.max(least),
            _ => (u128::from(weight) * u128::from(MOST_LINES) / u128::from(all)).max(1) as u64,
        };
        let mut text = String::new();
        for one in &self.requests {
            let line = format!("http://{address}{}\n", one.path);
            (0..lines(one.weight)).for_each(|_| text.push_str(&line));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_the_proportions_of_their_weights_within_a_bound() {
        let requests = [("/a", 3), ("/b", 1)].map(|(path, weight)| RequestedPath {
            path: path.to_owned(),
            weight,
            bytes: 0,
            sha256: String::new(),
        });
        let mut site = ServedSite { root: "/srv".into(), requests: requests.to_vec() };
        let address = "127.0.0.1:80".parse().expect("an address");
        let text = site.urls(address);
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [&["http://127.0.0.1:80/a"; 3][..], &["http://127.0.0.1:80/b"]].concat()
        );
        site.requests[0].weight = 3_000_000;
        let text = site.urls(address);
        assert_eq!(text.matches("/b\n").count(), 1, "a rare path stays");
        assert_eq!(text.lines().count(), 10_000);
        site.requests = vec![RequestedPath { weight: 1, ..site.requests[0].clone() }];
        assert_eq!(site.urls(address).lines().count(), 2, "a random choice needs two lines");
    }
}
