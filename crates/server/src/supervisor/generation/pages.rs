//! The pages of members, with custom templates.

use tenfold_accounts::web::Web;

use crate::config::values::Settings;
use crate::sandbox::apart::problems_in_child;

/// The memory in which custom templates are compiled and rendered.
const MEMORY: u64 = 256 << 20;

/// Loads the members' pages. A child process compiles and renders custom templates first: they can take much memory,
/// stack and time.
pub(crate) fn load(settings: &Settings) -> Result<Web, String> {
    let templates = settings.members.read_templates()?;
    let compile = || settings.members.web(&templates);
    if !templates.is_empty() {
        let render = || compile().and_then(|web| web.check()).err().into_iter().collect();
        let problems = problems_in_child("the templates of members", None, Some(MEMORY), render);
        problems.into_iter().next().map_or(Ok(()), Err)?;
    }
    compile()
}
