//! Looks for libevent and Asio, and builds what Tenfold needs of them.
//!
//! Both are optional: without its headers an engine is left out and reports the missing package at run time.
//! `TENFOLD_LIBRARIES=require` makes a missing library an error, for machines that test both; `TENFOLD_LIBRARIES=off`
//! leaves both out.

use std::env;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(libevent, asio)");
    println!("cargo::rerun-if-env-changed=TENFOLD_LIBRARIES");
    println!("cargo::rerun-if-changed=native");
    let wanted = env::var("TENFOLD_LIBRARIES").unwrap_or_default();
    let required = match wanted.as_str() {
        "" => false,
        "require" => true,
        "off" => return,
        other => panic!("TENFOLD_LIBRARIES is {other:?}; it may be require or off"),
    };
    let found = [("libevent", "libevent-dev", libevent()), ("Asio", "libasio-dev or libboost-dev", asio())];
    for (library, package, _) in found.iter().filter(|(.., there)| !there) {
        assert!(!required, "{library} is required, and its headers are missing: install {package}");
        println!("cargo::warning=built without {library}, whose headers are missing: install {package}");
    }
}

/// Returns whether a file of ours that includes a library's headers compiles. The output is discarded.
fn compiles(file: &str, cpp: bool) -> bool {
    let name = format!("probe_{}", file.replace(['/', '.'], "_"));
    let mut build = cc::Build::new();
    build.cargo_metadata(false).cargo_warnings(false).warnings(false).cpp(cpp).file(file);
    build.try_compile(&name).is_ok()
}

/// The functions are declared by hand, so the header is checked against these declarations.
fn libevent() -> bool {
    let there = compiles("native/libevent.c", false);
    if there {
        println!("cargo::rustc-link-lib=event_core");
        println!("cargo::rustc-cfg=libevent");
    }
    there
}

fn asio() -> bool {
    let there = compiles("native/asio_probe.cpp", true);
    if there {
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").warnings(true).opt_level(2).file("native/asio.cpp");
        // If Rust is built with the address sanitizer, so is this; both use the same run-time library.
        if env::var("CARGO_CFG_SANITIZE").is_ok_and(|which| which.split(',').any(|one| one == "address")) {
            build.flag("-fsanitize=address").flag("-fno-omit-frame-pointer");
        }
        build.compile("tenfold_asio");
        println!("cargo::rustc-cfg=asio");
    }
    there
}
