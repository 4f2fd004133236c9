//! The processors for which packages are made. A package for another processor is cross-built and tried in an emulator.

use std::path::Path;
use std::str::FromStr;
use std::{fmt, fs};

use crate::shell::{self, Failed};

/// The tools that make packages for aarch64 on x86_64.
const CROSS_TOOLS: &[&str] = &[
    "aarch64-target",
    "g++-aarch64-linux-gnu",
    "libstdc++6:arm64",
    "qemu-user-static",
    "qemu-system-arm",
    "cpio",
];

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    X86_64,
    Aarch64,
}

impl Platform {
    pub(crate) const ALL: [Platform; 2] = [Platform::X86_64, Platform::Aarch64];

    /// The processor of this machine, if packages are made for it.
    pub(super) fn native() -> Option<Platform> {
        Platform::ALL.into_iter().find(|platform| platform.name() == std::env::consts::ARCH)
    }

    /// The name in the files of archives, and in Rust.
    pub(super) fn name(self) -> &'static str {
        match self {
            Platform::X86_64 => "x86_64",
            Platform::Aarch64 => "aarch64",
        }
    }

    /// The name in packages of Debian and in images.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Platform::X86_64 => "amd64",
            Platform::Aarch64 => "arm64",
        }
    }

    /// The target of the compiler.
    pub(super) fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    pub(super) fn is_native(self) -> bool {
        Platform::native() == Some(self)
    }

    /// The processors for which this machine makes packages: on x86_64, both.
    pub(super) fn possible() -> Vec<Platform> {
        match Platform::native() {
            Some(Platform::X86_64) => Platform::ALL.to_vec(),
            other => other.into_iter().collect(),
        }
    }

    /// The tools that make its packages on this machine, besides the tools of every package.
    pub(super) fn tools(self) -> &'static [&'static str] {
        if self.is_native() { &[] } else { CROSS_TOOLS }
    }

    /// A program of the binutils or compilers for it: `gcc`, `strip`.
    pub(super) fn tool(self, name: &str) -> String {
        if self.is_native() { name.to_owned() } else { format!("{}-linux-gnu-{name}", self.name()) }
    }

    /// The variables of a build for it on this machine, with these flags of the compiler. `folder` is for libraries.
    pub(super) fn variables(self, flags: &str, folder: &Path) -> Result<Vec<(String, String)>, Failed> {
        let mut variables = vec![("TENFOLD_LIBRARIES".to_owned(), "require".to_owned())];
        if self.is_native() {
            variables.push(("RUSTFLAGS".to_owned(), flags.to_owned()));
            return Ok(variables);
        }
        let target = self.target().replace('-', "_");
        let programs = [
            (format!("CARGO_TARGET_{}_LINKER", target.to_uppercase()), "gcc"),
            (format!("CC_{target}"), "gcc"),
            (format!("CXX_{target}"), "g++"),
            (format!("AR_{target}"), "ar"),
        ];
        variables.extend(programs.map(|(variable, name)| (variable, self.tool(name))));
        let libraries = self.unpack_libevent(folder)?;
        variables.push(("RUSTFLAGS".to_owned(), format!("{flags} -L native={libraries}")));
        Ok(variables)
    }

    /// Unpacks libevent for another processor, because its package excludes that of this machine. Returns the folder
    /// of the static library; without the shared library, the linker takes the static one.
    fn unpack_libevent(self, folder: &Path) -> Result<String, Failed> {
        let folder = folder.join(format!("libevent-{self}"));
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        let name = format!("libevent-dev:{}", self.debian());
        let script = format!(
            "apt-get -q download {name} && dpkg -x libevent-dev_*.deb . && find . -name '*.so' -delete"
        );
        shell::run(&folder, "sh", &["-c", &script], &[])?;
        Ok(folder.join(format!("usr/lib/{}-linux-gnu", self.name())).display().to_string())
    }

    /// The words that run a program for it: the program, or an emulator with the libraries of this processor.
    pub(super) fn runner(self, program: &Path) -> Vec<String> {
        let program = program.display().to_string();
        if self.is_native() {
            return vec![program];
        }
        let libraries = format!("/usr/{}-linux-gnu", self.name());
        vec![format!("qemu-{}-static", self.name()), "-L".to_owned(), libraries, program]
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Platform, String> {
        Platform::ALL
            .into_iter()
            .find(|platform| [platform.name(), platform.debian()].contains(&text))
            .ok_or_else(|| format!("unknown platform `{text}`; packages are made for x86_64 and aarch64"))
    }
}
