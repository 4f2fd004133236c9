//! Whether a worker or the kernel encrypts TLS records.

use std::fmt;

use tenfold_engine::{Engine, Plan, Sender};
use tenfold_sys::kernel_tls;
use tenfold_tls::config::SecurityPreset;
use tenfold_tls::connection::{KernelUse, sample_kernel_parameters};

use crate::config::values::{KernelTlsChoice, Settings};

/// Whether the kernel encrypts the output of TLS 1.3 connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KernelTls {
    /// The settings do not ask for it.
    Off,
    /// The kernel cannot encrypt, for this reason, and the settings permit that.
    Missing(String),
    Used(KernelUse),
}

impl KernelTls {
    pub(crate) fn used(&self) -> Option<KernelUse> {
        if let KernelTls::Used(how) = self { Some(*how) } else { None }
    }
}

/// Asks the kernel if the settings do, and checks that the sender of `plan` can send files.
pub(super) fn resolve(settings: &Settings, plan: &Plan) -> Result<KernelTls, String> {
    if !settings.uses_tls() {
        return Ok(KernelTls::Off);
    }
    let samples = sample_kernel_parameters();
    let probe = || match plan.engine {
        Engine::Uring => Err(Missing::InEngine),
        _ => kernel_tls::probe(&[&samples[0], &samples[1], &samples[2]]).map_err(Missing::InKernel),
    };
    let probed = (settings.tls_kernel != KernelTlsChoice::Off).then(probe);
    let source = if settings.tls_certificate.is_empty() { "tls" } else { "tls-certificate" };
    decide(settings.tls_kernel, settings.tls_preset, source, plan.sender, probed)
}

/// The reason why the kernel cannot encrypt.
enum Missing {
    /// The kernel refused this step.
    InKernel(String),
    /// The ring sends with MSG_WAITALL, so that a send completes when all its bytes have left.
    InEngine,
}

impl Missing {
    fn with_remedy(&self) -> String {
        match self {
            Missing::InKernel(why) => {
                format!(
                    "needs TLS in the kernel (CONFIG_TLS), which refuses: {why}; load its module (modprobe tls)"
                )
            }
            Missing::InEngine => format!("does not go with engine uring: {self}; take another engine"),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::InKernel(why) => write!(f, "TLS in the kernel (CONFIG_TLS) is refused: {why}"),
            Missing::InEngine => {
                f.write_str("TLS in the kernel refuses MSG_WAITALL, with which the ring sends")
            }
        }
    }
}

fn decide(
    choice: KernelTlsChoice,
    preset: SecurityPreset,
    source: &str,
    sender: Sender,
    probed: Option<Result<kernel_tls::KernelTls, Missing>>,
) -> Result<KernelTls, String> {
    let explicit = !matches!(sender, Sender::Auto | Sender::Copy);
    if sender == Sender::Zerocopy {
        return Err(format!(
            "send zerocopy does not go with {source}: encryption copies files, and TLS in the kernel refuses \
             MSG_ZEROCOPY; take send auto"
        ));
    }
    match probed {
        None if explicit => Err(format!(
            "send {sender} does not go with {source}: files are read and encrypted by this process; take send auto, or \
             have the kernel encrypt with tls-kernel on"
        )),
        None => Ok(KernelTls::Off),
        Some(Err(missing)) if choice == KernelTlsChoice::On => {
            Err(format!("tls-kernel on {}, or take tls-kernel auto or off", missing.with_remedy()))
        }
        Some(Err(missing)) if explicit => Err(format!(
            "tls-kernel, which send {sender} with {source} requires, {}, or take send auto",
            missing.with_remedy()
        )),
        Some(Err(missing)) => Ok(KernelTls::Missing(missing.to_string())),
        Some(Ok(_)) if explicit && preset != SecurityPreset::Modern => Err(format!(
            "send {sender} with {source} is for TLS 1.3: files of TLS 1.2 are read and encrypted by this process; set \
             tls-preset modern, or take send auto"
        )),
        Some(Ok(kernel)) => {
            let required = explicit || choice == KernelTlsChoice::On;
            Ok(KernelTls::Used(KernelUse { required, rekeys: kernel.rekeys }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(
        choice: KernelTlsChoice,
        preset: SecurityPreset,
        sender: Sender,
        missing: Option<Missing>,
    ) -> Result<KernelTls, String> {
        let found = missing.map_or(Ok(kernel_tls::KernelTls { rekeys: true }), Err);
        decide(choice, preset, "tls", sender, (choice != KernelTlsChoice::Off).then_some(found))
    }

    #[test]
    fn on_and_an_explicit_sender_require_the_kernel_and_auto_does_not() {
        use KernelTlsChoice::{Auto, Off, On};
        use SecurityPreset::{Intermediate, Modern};
        let used = |required| Ok(KernelTls::Used(KernelUse { required, rekeys: true }));
        let no_module = || Some(Missing::InKernel("TCP_ULP \"tls\": No such file".into()));
        assert_eq!(decided(Off, Modern, Sender::Auto, None), Ok(KernelTls::Off));
        assert_eq!(decided(On, Intermediate, Sender::Auto, None), used(true));
        assert_eq!(decided(Auto, Intermediate, Sender::Copy, None), used(false));
        assert_eq!(decided(Auto, Modern, Sender::Sendfile, None), used(true));
        let refuses = "TLS in the kernel (CONFIG_TLS), which refuses: TCP_ULP \"tls\": No such file";
        let missing = decided(Auto, Intermediate, Sender::Auto, no_module());
        let is_refused = "TLS in the kernel (CONFIG_TLS) is refused: TCP_ULP \"tls\": No such file";
        assert_eq!(missing, Ok(KernelTls::Missing(is_refused.into())));
        for (choice, sender, missing, expected) in [
            (
                On,
                Sender::Auto,
                no_module(),
                format!(
                    "tls-kernel on needs {refuses}; load its module (modprobe tls), or take tls-kernel auto or off"
                ),
            ),
            (
                On,
                Sender::Auto,
                Some(Missing::InEngine),
                "tls-kernel on does not go with engine uring: TLS in the kernel refuses MSG_WAITALL, with which the \
                 ring sends; take another engine, or take tls-kernel auto or off"
                    .into(),
            ),
            (
                Auto,
                Sender::Mmap,
                no_module(),
                format!(
                    "tls-kernel, which send mmap with tls requires, needs {refuses}; load its module (modprobe tls), \
                     or take send auto"
                ),
            ),
            (
                On,
                Sender::Splice,
                None,
                "send splice with tls is for TLS 1.3: files of TLS 1.2 are read and encrypted by this process; set \
                 tls-preset modern, or take send auto"
                    .into(),
            ),
            (
                On,
                Sender::Zerocopy,
                None,
                "send zerocopy does not go with tls: encryption copies files, and TLS in the kernel refuses \
                 MSG_ZEROCOPY; take send auto"
                    .into(),
            ),
            (
                Off,
                Sender::Sendfile,
                None,
                "send sendfile does not go with tls: files are read and encrypted by this process; take send auto, or \
                 have the kernel encrypt with tls-kernel on"
                    .into(),
            ),
        ] {
            assert_eq!(decided(choice, Intermediate, sender, missing), Err(expected));
        }
    }
}
