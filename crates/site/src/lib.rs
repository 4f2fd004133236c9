//! The meaning of a URL: files beneath a root, with their types, validators and redirects, and responses
//! without a file.
//!
//! All workers share a [`Site`]. Each worker caches its responses in a store of its own: a hit takes no lock
//! and makes no system call. A request passes through the modules in this order:
//!
//! 1. `hosts` chooses the `site` by the request's host.
//! 2. `respond`: `store` answers from memory; after a miss, `steps` runs the other steps in order.
//! 3. `rules` decides by the path: `precheck`.
//! 4. `files` finds and opens a file beneath the root.
//! 5. `representation` turns the file into the bytes of a response.
//!
//! `cache` has the bounded maps of these modules.

#![forbid(unsafe_code)]

mod cache;
mod files;
mod hosts;
mod reason;
mod representation;
mod respond;
mod rules;
mod site;

pub use files::protection::MemberFolders;
pub use files::siblings::{Remarks, stale_files};
pub use hosts::{HostName, Hosts};
pub use representation::compress::MADE_CODINGS;
pub use representation::summary::ResponseSummary;
pub use respond::listing::page::inline_digest;
pub use respond::message::{misdirected, redirect, too_many_requests};
pub use respond::work::{Answered, FinishWork, Need, Otherwise, Work};
pub use rules::cache_control::CacheControl;
pub use rules::codings::Codings;
pub use rules::cors::Cors;
pub use rules::error_pages::{ErrorPages, page_name};
pub use rules::fields::FieldEdit;
pub use rules::media_types::MediaTypes;
pub use rules::password::StoredHash;
pub use rules::path::{PathError, Shown, SitePath};
pub use rules::pattern::Pattern;
pub use rules::policy::{Listing, Policies, Policy, PolicyRule};
pub use rules::realm::{Attempts, MOST_CREDENTIALS, Realm, RealmUser, basic_user};
pub use rules::redirect::{Redirect, Rewrite};
pub use rules::routes::{Routes, Slash};
pub use rules::settings::{MEMORY_UP_TO, Settings, TagFrom};
pub use rules::try_files::TryFile;
pub use site::Site;

#[cfg(test)]
mod tests;
