//! Compression on the fly.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use tenfold_http::semantics::negotiate::ContentCoding;

/// Part of the entity tags of responses compressed here. Builds with the same number compress the same
/// content to the same bytes: change it together with the levels below, or when a new version of a library
/// changes its output.
pub(crate) const RECIPE: u8 = 1;

/// At these levels, a megabyte of text takes some hundredths of a second. Above them, each further percent
/// costs several times as much.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 9;
const BROTLI_LEVEL: i32 = 5;
const GZIP_LEVEL: u32 = 6;

/// The base-2 logarithm of brotli's window: 4 MiB.
const BROTLI_WINDOW: i32 = 22;

/// The content codings that this build supports, in the default order of preference.
pub const MADE_CODINGS: &[ContentCoding] = &[
    #[cfg(feature = "zstd")]
    ContentCoding::Zstd,
    ContentCoding::Brotli,
    ContentCoding::Gzip,
];

/// Compresses `content`. Fails if memory runs out or the coding is not one of [`MADE_CODINGS`].
pub(crate) fn encode(content: &[u8], coding: ContentCoding) -> io::Result<Vec<u8>> {
    match coding {
        // At this level the window is at most 4 MiB; clients must support 8 MiB (RFC 9659 §3).
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
        // The header has neither a name nor a time, so the same content gives the same bytes.
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

    /// Decompresses `coded` like a client.
    pub(crate) fn decode(coded: &[u8], coding: ContentCoding) -> Vec<u8> {
        let mut content = Vec::new();
        match coding {
            ContentCoding::Zstd => zstd::stream::copy_decode(coded, &mut content).expect("valid zstd"),
            ContentCoding::Brotli => {
                brotli::BrotliDecompress(&mut &coded[..], &mut content).expect("valid brotli")
            }
            ContentCoding::Gzip => {
                let mut decoder = flate2::read::GzDecoder::new(coded);
                decoder.read_to_end(&mut content).map(|_| ()).expect("valid gzip");
            }
            ContentCoding::Identity => content.extend_from_slice(coded),
        }
        content
    }

    #[test]
    fn compressed_text_is_smaller_and_decompresses_to_itself() {
        let text = "a line that occurs again and again\n".repeat(500).into_bytes();
        for coding in [ContentCoding::Zstd, ContentCoding::Brotli, ContentCoding::Gzip] {
            let coded = encode(&text, coding).expect("there is memory");
            assert!(coded.len() * 10 < text.len(), "{coding:?}: {} bytes", coded.len());
            assert_eq!(decode(&coded, coding), text, "{coding:?}");
            assert_eq!(
                encode(&text, coding).expect("there is memory"),
                coded,
                "compressing again gave different bytes"
            );
            let nothing = encode(b"", coding).expect("there is memory");
            assert_eq!(decode(&nothing, coding), b"", "{coding:?}");
        }
    }
}
