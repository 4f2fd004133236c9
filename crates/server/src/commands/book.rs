//! `tenfold book`: serves only the manual of this version.

use std::process::ExitCode;

use crate::config::parse::given::GivenSettings;
use crate::diagnostics::error;
use crate::supervisor::book::{Book, NAME};
use crate::supervisor::open;
use crate::supervisor::state::Serve;

pub(crate) fn serve(listen: String) -> ExitCode {
    let book = match Book::unpack(false) {
        Ok(book) => book,
        Err(why) => {
            error!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let root = book.root().join(NAME).display().to_string();
    // Environment variables are for servers of sites, so this command ignores them.
    let flags = [
        ("root", root.as_str()),
        ("listen", &listen),
        ("access-log", "off"),
        ("workers", "1"),
        ("listing", "off"),
        // `tenfold stop` and `tenfold status` are for servers of sites. A reader stops the book by Ctrl-C.
        ("control", "off"),
    ];
    let flags = flags.map(|(name, value)| (name, vec![value.to_owned()])).into();
    open::serve(Serve { given: GivenSettings { flags, ..GivenSettings::default() }, null: None, qr: false })
}
