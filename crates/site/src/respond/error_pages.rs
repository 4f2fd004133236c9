//! The site's own pages for errors.

use tenfold_http::Instant;

use crate::cache::clock::is_fresh;
use crate::files::open::{Found, LookupName};
use crate::representation::description::RepresentationForm;
use crate::representation::resource::is_still;
use crate::representation::variant::Variant;
use crate::site::Site;

/// The pages that were looked for: of the statuses that were sent so far, no more than there are errors.
#[derive(Default)]
pub(crate) struct Pages {
    looked_for: Vec<ErrorPage>,
}

/// The page for an error, and the time of the last look for it.
struct ErrorPage {
    status: u16,
    body: Option<Variant>,
    checked: Option<Instant>,
}

impl Pages {
    /// The page for an error, looked for once a second.
    pub(crate) fn of(&mut self, status: u16, site: &Site, now: Instant) -> Option<&mut Variant> {
        let name = site.settings.routes.error_pages.of(status)?;
        let pages = &mut self.looked_for;
        let place = pages.iter().position(|page| page.status == status).unwrap_or_else(|| {
            pages.push(ErrorPage { status, body: None, checked: None });
            pages.len() - 1
        });
        let page = &mut pages[place];
        if page.checked.is_none_or(|checked| !is_fresh(checked, now)) {
            let wanted = LookupName::file(name);
            let look = || wanted.look(&site.files.roots).map(|facts| (&wanted, facts));
            let still = |body: &Variant| is_still(&site.files, body, look(), |_, _| true);
            page.body = page.body.take().filter(still).or_else(|| load(&wanted, status, site));
            page.checked = Some(now);
        }
        page.body.as_mut()
    }

    /// Looks for all of them again when they are next needed.
    pub(crate) fn doubt(&mut self) {
        self.looked_for.iter_mut().for_each(|page| page.checked = None);
    }
}

fn load(wanted: &LookupName, status: u16, site: &Site) -> Option<Variant> {
    let Found { facts, opened, guard, .. } = site.files.open(wanted).ok()?;
    let form = RepresentationForm::plain(&facts, site.settings.policies.everywhere(), &guard);
    Some(Variant::new(status, wanted.name(), facts, opened, form))
}
