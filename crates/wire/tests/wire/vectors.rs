//! The public test vectors of HPACK: blocks of fourteen encoders. `tests/vectors` has some of them; with
//! `TENFOLD_HPACK_VECTORS`, a folder with a copy of <https://github.com/http2jp/hpack-test-case>, all are tested.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenfold_wire::hpack::{Block, Constants, Decoder, Encoder};

use crate::{Field, decode, hex};

/// The stories in the folders of this folder.
fn stories(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("the folder of the vectors can be read");
        entries.map(|entry| entry.expect("the folder can be read").path()).collect::<Vec<_>>()
    };
    let folders = entries(folder).into_iter().filter(|path| path.is_dir());
    let files = folders.flat_map(|path| entries(&path));
    files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

fn fields(case: &Value) -> Vec<Field> {
    let headers = case["headers"].as_array().expect("a case has fields");
    let fields = headers.iter().flat_map(|header| header.as_object().expect("a field is an object"));
    let text = |value: &Value| value.as_str().expect("a value is text").as_bytes().to_vec();
    fields.map(|(name, value)| (name.clone().into_bytes(), text(value))).collect()
}

#[test]
fn blocks_of_other_encoders_are_decoded_and_their_fields_survive_ours() {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    let folder = env::var_os("TENFOLD_HPACK_VECTORS").unwrap_or_else(|| ours.into());
    let stories = stories(Path::new(&folder));
    let mut count = 0;
    for path in &stories {
        let text = fs::read_to_string(path).expect("the story can be read");
        let story: Value = serde_json::from_str(&text).expect("the story is JSON");
        let (mut decoder, mut encoder, mut peer) = (Decoder::new(), Encoder::new(), Decoder::new());
        for case in story["cases"].as_array().expect("a story has cases") {
            let expected = fields(case);
            if let Some(size) = case["header_table_size"].as_u64() {
                decoder.set_limit(u16::try_from(size).expect("sizes have 16 bits"));
            }
            if let Some(wire) = case["wire"].as_str() {
                assert_eq!(decode(&mut decoder, &hex(wire)), Ok(expected.clone()), "{}", path.display());
                count += 1;
            }
            let mut block = Block::new();
            let mut bytes = Vec::new();
            expected.iter().for_each(|(name, value)| block.field(&Constants::default(), name, value));
            encoder.write(&Constants::default(), &block, &mut bytes);
            let mut sent = expected;
            sent.sort_by_key(|(name, _)| !name.starts_with(b":"));
            assert_eq!(decode(&mut peer, &bytes), Ok(sent));
        }
    }
    println!("{} stories, {count} blocks", stories.len());
    assert!(count > 100, "{} has too few blocks", folder.display());
}
