//! The configuration: [`parse`] reads flags, variables and the file into [`values::Settings`]; [`check`] refuses
//! combinations without effect; [`resolve`] makes every choice that depends on this system.

pub(crate) mod check;
pub(crate) mod parse;
pub(crate) mod resolve;
pub(crate) mod values;
