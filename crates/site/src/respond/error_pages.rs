//! The site's own pages for errors.

use tenfold_http::Instant;

use crate::Site;
use crate::cache::clock::is_fresh;
use crate::files::open::{self as resolve, Wanted};
use crate::representation::variant::Resource;

/// The pages that were looked for: of the statuses that were answered so far, no more than there are errors.
#[derive(Default)]
pub(super) struct Pages {
    looked_for: Vec<Page>,
}

/// The page for an error, and when it was looked for.
struct Page {
    status: u16,
    resource: Option<Resource>,
    checked: Option<Instant>,
}

impl Pages {
    /// The page for an error, looked for once a second.
    pub(super) fn of(&mut self, status: u16, site: &Site, now: Instant) -> Option<&mut Resource> {
        let name = site.settings.routes.error_pages.of(status)?;
        let pages = &mut self.looked_for;
        let place = pages.iter().position(|page| page.status == status).unwrap_or_else(|| {
            pages.push(Page { status, resource: None, checked: None });
            pages.len() - 1
        });
        let page = &mut pages[place];
        if page.checked.is_none_or(|checked| !is_fresh(checked, now)) {
            let wanted = Wanted::file(name);
            let still = |page: &Resource| resolve::is_still(site, &wanted, page);
            page.resource = page.resource.take().filter(still);
            if page.resource.is_none() {
                let loaded = resolve::load(site, &wanted, status, site.settings.policies.everywhere());
                page.resource = loaded.ok().map(|loaded| loaded.resource);
            }
            page.checked = Some(now);
        }
        page.resource.as_mut()
    }

    /// Looks for all of them again when they are next wanted.
    pub(super) fn doubt(&mut self) {
        self.looked_for.iter_mut().for_each(|page| page.checked = None);
    }
}
