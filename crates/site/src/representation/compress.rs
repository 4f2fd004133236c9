//! Compression on the fly.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use tenfold_http::semantics::negotiate::ContentCoding;

/// Part of the entity tags of encodings made here. Every build with the same number encodes a version of a file
/// into the same bytes: change it with the levels below, and if a new version of one of the libraries makes
/// other bytes.
pub(crate) const RECIPE: u8 = 1;

/// The levels at which a text of a megabyte takes some hundredths of a second: past them each percent costs
/// several times as much.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 9;
const BROTLI_LEVEL: i32 = 5;
const GZIP_LEVEL: u32 = 6;

/// The window of brotli: 4 MiB.
const BROTLI_WINDOW: i32 = 22;

/// The codings that this build can make, in the default order of preference.
pub const MADE_CODINGS: &[ContentCoding] = &[
    #[cfg(feature = "zstd")]
    ContentCoding::Zstd,
    ContentCoding::Brotli,
    ContentCoding::Gzip,
];

/// `content` in this coding.
///
/// # Errors
/// There is no memory for it, or the coding is not one of [`MADE_CODINGS`].
pub(crate) fn encode(content: &[u8], coding: ContentCoding) -> io::Result<Vec<u8>> {
    match coding {
        // Windows keep within the 8 MiB that every client has to have (RFC 9659 §3): these levels use no
        // more than 4 MiB.
        #[cfg(feature = "zstd")]
        ContentCoding::Zstd => zstd::bulk::compress(content, ZSTD_LEVEL),
        #[cfg(not(feature = "zstd"))]
        ContentCoding::Zstd => Err(io::ErrorKind::Unsupported.into()),
        ContentCoding::Brotli => {
            let params = brotli::enc::BrotliEncoderParams {
                quality: BROTLI_LEVEL,
                lgwin: BROTLI_WINDOW,
                size_hint: content.len(),
                ..Default::default()
            };
            let mut coded = Vec::with_capacity(content.len() / 2);
            brotli::BrotliCompress(&mut &content[..], &mut coded, &params)?;
            Ok(coded)
        }
        // No name and no time stand in its header, so that the same content makes the same bytes.
        ContentCoding::Gzip => {
            let mut encoder =
                GzEncoder::new(Vec::with_capacity(content.len() / 2), Compression::new(GZIP_LEVEL));
            encoder.write_all(content)?;
            encoder.finish()
        }
        ContentCoding::Identity => Ok(content.to_vec()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Read;

    /// Decodes as a client does.
    pub(crate) fn decode(coded: &[u8], coding: ContentCoding) -> Vec<u8> {
        let mut content = Vec::new();
        match coding {
            ContentCoding::Zstd => zstd::stream::copy_decode(coded, &mut content).expect("it is zstd"),
            ContentCoding::Brotli => {
                brotli::BrotliDecompress(&mut &coded[..], &mut content).expect("it is brotli")
            }
            ContentCoding::Gzip => {
                let mut decoder = flate2::read::GzDecoder::new(coded);
                decoder.read_to_end(&mut content).map(|_| ()).expect("it is gzip");
            }
            ContentCoding::Identity => content.extend_from_slice(coded),
        }
        content
    }

    #[test]
    fn what_is_coded_is_smaller_and_comes_back() {
        let text = "a line that is said again and again\n".repeat(500).into_bytes();
        for coding in [ContentCoding::Zstd, ContentCoding::Brotli, ContentCoding::Gzip] {
            let coded = encode(&text, coding).expect("there is memory");
            assert!(coded.len() * 10 < text.len(), "{coding:?}: {} bytes", coded.len());
            assert_eq!(decode(&coded, coding), text, "{coding:?}");
            assert_eq!(encode(&text, coding).expect("there is memory"), coded, "the same bytes each time");
            let nothing = encode(b"", coding).expect("there is memory");
            assert_eq!(decode(&nothing, coding), b"", "{coding:?}");
        }
    }
}
