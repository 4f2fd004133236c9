//! Whether this kernel runs an engine.

use tenfold_engine::{Engine, Facility, MODELS};

/// Lists the facilities that an engine lacks, each with the error of the system.
pub(crate) fn missing(engine: Engine) -> Vec<(Facility, String)> {
    tenfold_engine::probe(engine).err().unwrap_or_default()
}

/// Checks that this kernel has the facilities of `engine`.
pub(crate) fn require(engine: Engine) -> Result<(), String> {
    let missing = missing(engine);
    if missing.is_empty() {
        return Ok(());
    }
    let able = MODELS.iter().filter(|model| self::missing(model.engine).is_empty());
    let able: Vec<_> = able.map(|model| model.name).collect();
    Err(format!("engine {engine} does not run here: {}; {} can", listed(&missing), able.join(", ")))
}

/// The missing facilities, each with the system's error.
pub(crate) fn listed(missing: &[(Facility, String)]) -> String {
    let all: Vec<_> = missing.iter().map(|(facility, said)| format!("{}: {said}", facility.name())).collect();
    all.join("; ")
}
