//! The command line of `tenfold serve`. Flags of settings come from the table of settings.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::process::ExitCode;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};

use super::output::{end, print};
use crate::config::parse::given::GivenSettings;
use crate::config::parse::row::{Initial, SettingRow};
use crate::config::parse::rows::rows;
use crate::supervisor::state::Serve;
use crate::supervisor::upgrade::handover::handed_port;
use crate::worker::null::NullResponse;

/// The most bytes of a `--null` body, which the server copies for every request.
const MOST_NULL_BODY: u32 = 1 << 20;
/// The ports that `--port auto` tries, in this order.
const AUTO_PORTS: RangeInclusive<u16> = 8080..=8179;

/// The settings in `--help`.
const USUAL: [&str; 17] = [
    "listen",
    "index",
    "compress",
    "listing",
    "engine",
    "workers",
    "tls",
    "tls-certificate",
    "tls-key",
    "idle-timeout",
    "accounts",
    "protect",
    "access-log",
    "log-format",
    "log-level",
    "user",
    "admin",
];

pub(super) fn read(matches: &ArgMatches) -> Serve {
    let values = |row: &SettingRow| matches.get_many::<String>(row.name).map(|all| all.cloned().collect());
    let mut flags: Vec<_> =
        rows().filter_map(|row| values(row).map(|values: Vec<String>| (row.name, values))).collect();
    if let Some(folder) = matches.get_one::<String>("DIR") {
        flags.push(("root", vec![folder.clone()]));
    }
    if let Some(port) = matches.get_one::<Port>("port") {
        flags.push(("listen", vec![port.number().to_string()]));
    }
    if matches.get_flag("verbose") {
        flags.push(("log-level", vec!["debug".to_owned()]));
    }
    let mut given =
        GivenSettings { flags, config: matches.get_one("config").cloned(), ..GivenSettings::default() };
    given.take_variables();
    let null = matches.get_flag("null").then(|| NullResponse {
        body: matches.get_one("null-body").map_or(0, |bytes: &u32| *bytes as usize),
        close: matches.get_flag("null-close"),
    });
    Serve { given, null, qr: matches.get_flag("qr") }
}

/// The value of `--port`.
#[derive(Clone, Copy, Debug)]
enum Port {
    Number(u16),
    /// The first free port of [`AUTO_PORTS`].
    Auto,
}

impl Port {
    fn read(text: &str) -> Result<Port, String> {
        match text {
            "auto" => Ok(Port::Auto),
            _ => text.parse().map(Port::Number).map_err(|_| "a port is a number up to 65535, or auto".into()),
        }
    }

    /// Returns the port to listen on. If another process takes a free port first, the start reports an error.
    fn number(self) -> u16 {
        let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        match self {
            Port::Number(port) => port,
            Port::Auto => {
                let found = handed_port().or_else(|| AUTO_PORTS.clone().find(free));
                found.unwrap_or(*AUTO_PORTS.start())
            }
        }
    }
}

/// The command; `config` is the argument for the configuration file.
pub(super) fn command(config: Arg) -> clap::Command {
    let null = |name: &'static str| Arg::new(name).long(name).help_heading("Measuring").hide_short_help(true);
    clap::Command::new("serve")
        .about("Serve a folder, or the sites of a configuration file")
        .override_usage("tenfold serve [DIR] [OPTIONS]\n       tenfold serve -c FILE [OPTIONS]")
        .after_help("These are the most used settings; --help-all has all, and `tenfold help WORD` finds them.")
        .after_long_help(
            "`tenfold help WORD` finds settings by a word of their names and descriptions.\n\
             Every setting is also an environment variable (TENFOLD_IDLE_TIMEOUT) and a key of the file (idle-timeout).\n\
             A flag overrides a variable, a variable overrides the file, and the file overrides the default.",
        )
        .arg(
            Arg::new("DIR")
                .help("The folder to serve [default: the current folder]")
                .value_parser(NonEmptyStringValueParser::new())
                .value_hint(ValueHint::DirPath)
                .conflicts_with("root"),
        )
        .arg(
            config
                .help("The configuration file (TOML)")
                .long_help("The configuration file (TOML); its paths are relative to its own folder [env: TENFOLD_CONFIG]")
                .value_hint(ValueHint::FilePath),
        )
        .arg(
            Arg::new("port")
                .short('p')
                .long("port")
                .value_name("PORT")
                .value_parser(Port::read)
                .conflicts_with("listen")
                .help("Listen on this port, for this machine only; auto is the first free one from 8080"),
        )
        .arg(
            Arg::new("verbose")
                .short('v')
                .long("verbose")
                .action(ArgAction::SetTrue)
                .conflicts_with("log-level")
                .help("Print the engine, bounds and sandbox at the start, and details later")
                .long_help("Print the engine, bounds and sandbox at the start, and details later: the same as --log-level debug"),
        )
        .arg(
            Arg::new("qr")
                .long("qr")
                .action(ArgAction::SetTrue)
                .help("Show a QR code of the link for other machines at the start"),
        )
        .arg(
            Arg::new("help-all")
                .long("help-all")
                .action(ArgAction::SetTrue)
                .help("Print help with all settings"),
        )
        .args(rows().map(flag))
        .arg(null("null").action(ArgAction::SetTrue).help("Send one fixed response to every request without parsing it"))
        .arg(
            null("null-body")
                .value_name("BYTES")
                .value_parser(value_parser!(u32).range(..=i64::from(MOST_NULL_BODY)))
                .requires("null")
                .help("Size of the fixed response's body [default: 0]"),
        )
        .arg(
            null("null-close")
                .action(ArgAction::SetTrue)
                .requires("null")
                .help("Close the connection after the fixed response"),
        )
}

/// Limits `--help` to the settings that a newcomer needs.
pub(super) fn with_usual_help(command: clap::Command) -> clap::Command {
    let more = format!(
        "These are the settings of most servers; --help-all lists all {}. {}",
        rows().count(),
        command.get_after_long_help().map(ToString::to_string).unwrap_or_default()
    );
    let is_rare = |arg: &Arg| {
        let name = arg.get_id().as_str();
        name.starts_with("null") || rows().any(|row| row.name == name) && !USUAL.contains(&name)
    };
    command.after_long_help(more).mut_args(|arg| {
        let is_rare = is_rare(&arg);
        arg.hide_long_help(is_rare)
    })
}

/// Prints the help with all settings.
pub(super) fn print_all_help(mut program: clap::Command) -> ExitCode {
    program.build();
    let serve = program.find_subcommand_mut("serve").expect("it is a command");
    end(print(serve.render_long_help().to_string().as_bytes()))
}

fn flag(row: &'static SettingRow) -> Arg {
    let action = if row.is_many() { ArgAction::Append } else { ArgAction::Set };
    let brief = match row.initial {
        Initial::Value(text) => format!("{} [default: {text}]", row.brief()),
        Initial::Follows(_) => row.brief().to_owned(),
    };
    let long = format!("{} [default: {}] [env: {}]", row.about, row.shown_initial(), row.variable());
    let hint = match row.value {
        "DIR" => ValueHint::DirPath,
        value if value.contains("PATH") || value.contains("FILE") => ValueHint::FilePath,
        _ => ValueHint::Other,
    };
    // Shells complete either words or paths.
    let words = if hint == ValueHint::Other { row.words() } else { Vec::new() };
    let arg = Arg::new(row.name)
        .long(row.name)
        .value_name(row.value)
        .value_hint(hint)
        .value_parser(Suggestions(words))
        .hide_possible_values(true)
        .action(action)
        .help(brief)
        .long_help(long)
        .help_heading(row.heading)
        // `-1` is a wrong value, not a flag.
        .allow_negative_numbers(true);
    match row.short() {
        Some(letter) => arg.short(letter),
        None => arg.hide_short_help(true),
    }
}

/// Accepts any text, and offers words for completion. Settings check their text, as they do for the file.
#[derive(Clone)]
struct Suggestions(Vec<&'static str>);

impl TypedValueParser for Suggestions {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = self.0.iter().map(|word| PossibleValue::new(*word));
        (!self.0.is_empty()).then(|| Box::new(words) as Box<dyn Iterator<Item = PossibleValue>>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cli::program;

    fn flags(words: &[&str]) -> Vec<(&'static str, Vec<String>)> {
        let words = ["tenfold", "serve"].iter().chain(words);
        let matches = program().try_get_matches_from(words).expect("legal");
        read(matches.subcommand_matches("serve").expect("it was typed")).given.flags
    }

    #[test]
    fn every_setting_is_a_flag_and_a_folder_is_the_root() {
        for row in rows() {
            assert_eq!(flags(&[&format!("--{}", row.name), "x"]), [(row.name, vec!["x".to_owned()])]);
            if let Some(letter) = row.short() {
                assert_eq!(flags(&[&format!("-{letter}"), "x"]), [(row.name, vec!["x".to_owned()])]);
            }
        }
        assert_eq!(flags(&["site"]), [("root", vec!["site".to_owned()])]);
    }

    #[test]
    fn a_port_listens_and_verbose_is_a_level() {
        assert_eq!(flags(&["-p", "8000"]), [("listen", vec!["8000".to_owned()])]);
        assert_eq!(flags(&["--port", "0"]), [("listen", vec!["0".to_owned()])]);
        assert_eq!(flags(&["-v"]), [("log-level", vec!["debug".to_owned()])]);
    }

    #[test]
    fn the_offered_words_are_legal_values() {
        for row in rows() {
            for word in row.words() {
                let given = GivenSettings {
                    flags: vec![(row.name, vec![word.to_owned()])],
                    ..GivenSettings::default()
                };
                assert!(given.resolve().is_ok(), "--{} {word}", row.name);
            }
        }
        assert!(rows().filter(|row| row.short().is_some()).count() == 10);
    }

    #[test]
    fn the_short_help_fits_a_screen_and_the_long_help_has_everything() {
        let mut serve = program();
        let serve = serve.find_subcommand_mut("serve").expect("it is a command");
        let short = serve.render_help().to_string();
        assert!(short.lines().count() <= 48, "{short}");
        assert!(short.lines().all(|line| line.chars().count() <= 100), "{short}");
        let long = serve.render_long_help().to_string();
        assert!(
            rows().all(|row| long.contains(&format!("[env: {}]", row.variable())) || long.contains(row.name))
        );
        assert!(long.contains("[env: TENFOLD_ENGINE]"), "{long}");
    }

    #[test]
    fn the_usual_help_is_short_and_names_the_help_with_all_settings() {
        for name in USUAL {
            assert!(rows().any(|row| row.name == name), "{name} is no setting");
        }
        let mut program = program().mut_subcommand("serve", with_usual_help);
        let serve = program.find_subcommand_mut("serve").expect("it is a command");
        let usual = serve.render_long_help().to_string();
        assert!(usual.lines().count() <= 120, "{} lines: {usual}", usual.lines().count());
        assert!(USUAL.iter().all(|name| usual.contains(&format!("--{name} "))), "{usual}");
        assert!(usual.contains("--help-all lists all") && !usual.contains("--tcp-cork"), "{usual}");
    }
}
