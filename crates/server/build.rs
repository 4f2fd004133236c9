//! Packs the manual into the binary: `docs/` as pages, in one compressed archive.

#[path = "src/supervisor/book/archive.rs"]
mod archive;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How hard to compress: the level that zlib takes by default.
const LEVEL: u8 = 6;

fn main() -> ExitCode {
    match pack() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error=cannot make the manual: {}", why.replace('\n', "; "));
            ExitCode::FAILURE
        }
    }
}

fn pack() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for source in tenfold_book::SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let files = tenfold_book::files(&root)?;
    for source in tenfold_book::linked(&files) {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let archive = archive::pack(&files);
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).ok_or("OUT_DIR is not set")?;
    let file = out.join("book.deflate");
    std::fs::write(&file, miniz_oxide::deflate::compress_to_vec(archive.as_bytes(), LEVEL))
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}
