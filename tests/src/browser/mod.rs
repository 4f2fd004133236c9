//! A real browser: headless Chromium, driven over the DevTools protocol.

mod devtools;
mod page;

pub use devtools::DevTools;
pub use page::BrowserPage;
