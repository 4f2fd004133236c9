//! Errors of field blocks.

use std::fmt;

use crate::huffman::HuffmanError;

/// The reason why a block cannot be decoded. The connection ends with COMPRESSION_ERROR (RFC 9113 §4.3), because the
/// table no longer agrees with the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// An integer above 62 bits.
    Integer,
    /// An index that is 0, or that no table has.
    Index,
    /// A string that is not Huffman-coded as it claims.
    Huffman(HuffmanError),
    /// A change of the table's size after a field, or the third in a block (RFC 7541 §4.2).
    MisplacedUpdate,
    /// A table above the size that our settings allow.
    TooLargeUpdate,
    /// No change of the table's size after our settings reduced it (RFC 9113 §4.3.1).
    MissingUpdate,
    /// A block that ends inside a field.
    Truncated,
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HpackError::Integer => "an integer is too large",
            HpackError::Index => "an index is in no table",
            HpackError::Huffman(HuffmanError::EndOfString) => "a Huffman-coded string contains EOS",
            HpackError::Huffman(HuffmanError::Padding) => "the padding of a Huffman-coded string is wrong",
            HpackError::MisplacedUpdate => "a change of the table's size is not at the start of a block",
            HpackError::TooLargeUpdate => "the table's size exceeds the setting",
            HpackError::MissingUpdate => "the table's size is not reduced as the setting requires",
            HpackError::Truncated => "the block ends inside a field",
        })
    }
}

impl std::error::Error for HpackError {}
