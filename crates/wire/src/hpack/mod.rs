//! HPACK (RFC 7541): field blocks of HTTP/2.
//!
//! [`decoder`] reads blocks into a [`list`] with bounds. Its `table` is one allocation of at most the size that our
//! settings allow; an empty table needs no memory. [`encoder`] writes prepared blocks and has almost no state: it
//! inserts the same fields into the peer's table on each connection, once.

pub mod decoder;
pub mod encoder;
pub mod error;
pub mod list;
mod static_table;
mod table;

pub use decoder::Decoder;
pub use encoder::{Block, Constants, Encoder};
pub use error::HpackError;
pub use list::{FieldList, ListLimits};
pub use table::DEFAULT_TABLE_SIZE;
