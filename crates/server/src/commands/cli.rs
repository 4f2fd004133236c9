//! The command line: what was typed. Flags of settings come from their table.

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};

use super::engines;
use super::manual::SHELLS;
use super::status::StatusCommand;
use crate::settings::given::{GivenSettings, warn_of_slips};
use crate::settings::row::SettingRow;
use crate::settings::rows::rows;
use crate::supervisor::state::Serve;
use crate::worker::null::NullResponse;

/// The command to run.
pub(crate) enum Command {
    Serve(Serve),
    /// Serve the manual on this address.
    Book(String),
    Check(GivenSettings),
    Schema,
    Engines {
        name: Option<String>,
        matrix: bool,
        json: bool,
    },
    Status(StatusCommand),
    Bench(ArgMatches),
    Lab(ArgMatches),
    Users(ArgMatches),
    Man {
        command: Option<String>,
        folder: Option<PathBuf>,
    },
    Completions(String),
}

/// The most bytes of a `--null` body, which is staged for every request.
const MOST_NULL_BODY: u32 = 1 << 20;

/// Reads the command line; ends the process with 2 if it is wrong, and with 0 if it asks for help.
pub(crate) fn parse() -> Command {
    let matches = program().get_matches();
    match matches.subcommand() {
        Some(("serve", serve)) => Command::Serve(read_serve(serve)),
        Some(("book", book)) => Command::Book(book.get_one("listen").cloned().expect("it has a default")),
        Some(("check", check)) if check.get_flag("schema") => Command::Schema,
        Some(("check", check)) => {
            let mut given =
                GivenSettings { config: check.get_one("config").cloned(), ..GivenSettings::default() };
            given.take_variables();
            warn_of_slips();
            Command::Check(given)
        }
        Some(("engines", engines)) => Command::Engines {
            name: engines.get_one("NAME").cloned(),
            matrix: engines.get_flag("matrix"),
            json: engines.get_flag("json"),
        },
        Some(("status", status)) => {
            let variable = || std::env::var_os("TENFOLD_CONTROL").map(PathBuf::from);
            let control = status.get_one::<PathBuf>("control").cloned().or_else(variable);
            Command::Status(StatusCommand {
                address: status.get_one("address").cloned(),
                control,
                json: status.get_flag("json"),
                watch: status.get_flag("watch"),
            })
        }
        Some(("man", man)) => {
            Command::Man { command: man.get_one("command").cloned(), folder: man.get_one("to").cloned() }
        }
        Some(("completions", completions)) => {
            let shell = completions.get_one::<String>("shell").expect("clap requires it");
            Command::Completions(shell.clone())
        }
        Some(("bench", bench)) => Command::Bench(bench.clone()),
        Some(("lab", lab)) => Command::Lab(lab.clone()),
        Some(("users", users)) => Command::Users(users.clone()),
        _ => unreachable!("a command is required, and these are all"),
    }
}

fn read_serve(matches: &ArgMatches) -> Serve {
    let values = |row: &SettingRow| matches.get_many::<String>(row.name).map(|all| all.cloned().collect());
    let mut flags: Vec<_> =
        rows().filter_map(|row| values(row).map(|values: Vec<String>| (row.name, values))).collect();
    if let Some(folder) = matches.get_one::<String>("DIR") {
        flags.push(("root", vec![folder.clone()]));
    }
    let mut given =
        GivenSettings { flags, config: matches.get_one("config").cloned(), ..GivenSettings::default() };
    given.take_variables();
    let null = matches.get_flag("null").then(|| NullResponse {
        body: matches.get_one("null-body").map_or(0, |bytes: &u32| *bytes as usize),
        close: matches.get_flag("null-close"),
    });
    #[cfg(feature = "test-layer")]
    let layered = matches.contains_id("layer");
    #[cfg(not(feature = "test-layer"))]
    let layered = false;
    Serve { given, null, layered }
}

/// The whole command line.
pub(crate) fn program() -> clap::Command {
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON");
    let config = |arg: Arg| arg.value_name("FILE").value_parser(value_parser!(PathBuf));
    let check = config(Arg::new("config"))
        .help("The configuration file; without it, only the environment variables are checked");
    let schema = Arg::new("schema").long("schema").action(ArgAction::SetTrue).conflicts_with("config");
    let schema = schema.help("Print the schema of the file for editors (JSON Schema)");
    let control = Arg::new("control").long("control").value_name("PATH").value_parser(value_parser!(PathBuf));
    let address = Arg::new("address").value_name("ADDRESS").conflicts_with("control");
    let watch = Arg::new("watch").long("watch").action(ArgAction::SetTrue);
    let listen = Arg::new("listen").long("listen").value_name("ADDRESS").default_value("127.0.0.1:0");
    let engine = Arg::new("NAME").value_parser(PossibleValuesParser::new(engines::names()));
    let matrix = Arg::new("matrix").long("matrix").action(ArgAction::SetTrue);
    clap::Command::new("tenfold")
        .version(env!("CARGO_PKG_VERSION"))
        .about("An HTTP server for static sites and media whose I/O model is a switch")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(serve_command(config(Arg::new("config").long("config"))))
        .subcommand(
            clap::Command::new("check")
                .about("Check the configuration, and report every error with its position")
                .arg(check)
                .arg(schema),
        )
        .subcommand(
            clap::Command::new("book")
                .about("Serve the manual of this version locally, for reading offline")
                .arg(listen.help("The address to listen on; with port 0 the system chooses the port")),
        )
        .subcommand(
            clap::Command::new("engines")
                .about("List I/O models and senders; with a name, its system calls and requirements")
                .arg(engine.help("A model or sender, to be shown in detail").conflicts_with("matrix"))
                .arg(matrix.help("Print every legal combination"))
                .arg(json()),
        )
        .subcommand(
            clap::Command::new("status")
                .about("Print the counters of a running server")
                .arg(address.help("The admin listener of the server, as in 127.0.0.1:9145 or unix:PATH"))
                .arg(control.help("The server's control socket; not needed if only one server runs"))
                .arg(watch.help("Refresh every second: rates, latencies, connections and memory"))
                .arg(json().conflicts_with("watch")),
        )
        .subcommand(super::bench::command())
        .subcommand(super::lab::command())
        .subcommand(super::users::command())
        .subcommand(man_command())
        .subcommand(
            clap::Command::new("completions")
                .about("Print a shell script that completes the command line")
                .arg(
                    Arg::new("shell")
                        .value_name("SHELL")
                        .required(true)
                        .value_parser(SHELLS)
                        .help("The shell"),
                ),
        )
}

fn man_command() -> clap::Command {
    let command =
        Arg::new("command").value_name("COMMAND").help("The command; without it, the page of tenfold itself");
    let to = Arg::new("to").long("to").value_name("DIR").value_parser(value_parser!(PathBuf));
    clap::Command::new("man")
        .about("Print or write the manual pages")
        .arg(command)
        .arg(to.conflicts_with("command").help("Write all pages into this folder instead of printing one"))
}

fn serve_command(config: Arg) -> clap::Command {
    let null = |name: &'static str| Arg::new(name).long(name).help_heading("Measuring");
    let serve = clap::Command::new("serve");
    #[cfg(feature = "test-layer")]
    let serve =
        serve.arg(null("layer").value_name("LAYER").value_parser(["framed"]).help("A layer below HTTP"));
    serve
        .about("Serve a folder, or the sites of a configuration file")
        .after_help(
            "Every setting is also an environment variable (TENFOLD_IDLE_TIMEOUT) and a key of the file (idle-timeout).\n\
             A flag overrides a variable, a variable overrides the file, and the file overrides the default.",
        )
        .arg(
            Arg::new("DIR")
                .help("The folder to serve; default: the current folder")
                .value_parser(NonEmptyStringValueParser::new())
                .conflicts_with("root"),
        )
        .arg(config.help("The configuration file (TOML); its paths are relative to its own folder"))
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

fn flag(row: &SettingRow) -> Arg {
    let action = if row.is_many() { ArgAction::Append } else { ArgAction::Set };
    let help = format!("{} [default: {}]", row.about, row.shown_initial());
    let hint = match row.value {
        "DIR" => ValueHint::DirPath,
        value if value.contains("PATH") || value == "FILE" => ValueHint::FilePath,
        _ => ValueHint::Other,
    };
    Arg::new(row.name)
        .long(row.name)
        .value_name(row.value)
        .value_hint(hint)
        .action(action)
        .help(help)
        .help_heading(row.heading)
        // `-1` is a wrong value, not a flag.
        .allow_negative_numbers(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        program().debug_assert();
    }

    #[test]
    fn every_setting_is_a_flag_and_a_folder_is_the_root() {
        for row in rows() {
            let words = ["tenfold", "serve", &format!("--{}", row.name), "x"].map(str::to_owned);
            let matches = program().try_get_matches_from(words).expect(row.name);
            let serve = matches.subcommand_matches("serve").expect("it was typed");
            assert_eq!(read_serve(serve).given.flags, [(row.name, vec!["x".to_owned()])]);
        }
        let matches = program().try_get_matches_from(["tenfold", "serve", "site"]).expect("legal");
        let serve = matches.subcommand_matches("serve").expect("it was typed");
        assert_eq!(read_serve(serve).given.flags, [("root", vec!["site".to_owned()])]);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for words in [
            &["serve", "site", "--root", "other"][..],
            &["serve", "--null-body", "5"],
            &["serve", "--null", "--null-body", "1048577"],
            &["serve", "--engine", "epoll", "--engine", "uring"],
            &["serve", "--no-such-flag"],
            &[],
        ] {
            let words = std::iter::once(&"tenfold").chain(words);
            assert!(
                program().try_get_matches_from(words.clone()).is_err(),
                "{:?}",
                words.collect::<Vec<_>>()
            );
        }
    }
}
