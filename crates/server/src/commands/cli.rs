//! The command line. Flags of settings come from the table of settings.

use std::path::PathBuf;
use std::process::{self, ExitCode};

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, value_parser};

use super::advice::advise;
use super::manual::SHELLS;
use super::running::ServerChoice;
use super::{
    agent, bench, book, check, engines, help, init, lab, manual, migrate, reload, serve, status, stop,
    upgrade, users,
};
use crate::diagnostics::{coloured, raw};
use crate::supervisor::open;

const ABOUT_RELOAD: &str = "\
A wrong configuration changes nothing, and its errors are printed here.

Exit codes: 0 the new configuration serves; 1 the old one stays in use, or no server was found;
2 wrong usage.";

const ABOUT_STOP: &str = "\
The server accepts no more connections, and ends within its drain-timeout (30s by default). The
command waits for at most 150 seconds.

Exit codes: 0 the server has ended; 1 it has not, or no server was found; 2 wrong usage.";

/// Parses the command line; `None` without any word. Ends the process with 2 if the command line is wrong, and with 0
/// after help.
pub(crate) fn parse() -> Option<ArgMatches> {
    let has_words = std::env::args_os().len() > 1;
    has_words.then(|| shown_program().try_get_matches().unwrap_or_else(|error| refuse(&advise(error))))
}

/// Prints an error of the command line like every other error, or help; and ends the process.
fn refuse(error: &clap::Error) -> ! {
    if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let text = error.render();
        let text = if coloured() { text.ansi().to_string() } else { text.to_string() };
        raw(&format!("tenfold: {text}"));
        process::exit(error.exit_code());
    }
    error.exit()
}

/// The command line whose `serve --help` has the settings that a newcomer needs.
fn shown_program() -> clap::Command {
    program().mut_subcommand("serve", serve::with_usual_help)
}

/// Runs a command.
pub(crate) fn run(name: &str, typed: &ArgMatches) -> ExitCode {
    let text = |name: &str| typed.get_one::<String>(name).cloned();
    let path = |name: &str| typed.get_one::<PathBuf>(name).cloned();
    match name {
        "serve" if typed.get_flag("help-all") => serve::print_all_help(program()),
        "serve" => open::serve(serve::read(typed)),
        "book" => {
            // The default is a free port.
            let port = text("port").filter(|port| port != "auto");
            book::serve(port.or(text("listen")).expect("it has a default"))
        }
        "check" if typed.get_flag("schema") => check::print_schema(),
        "check" => check::check(path("config")),
        "help" => help::run(shown_program(), typed),
        "init" => init::run(typed),
        "migrate" => migrate::run(typed),
        "engines" => engines::show(text("NAME").as_deref(), typed.get_flag("matrix"), typed.get_flag("json")),
        "status" => status::show(&choice("status", typed), typed.get_flag("json"), typed.get_flag("watch")),
        "reload" => reload::reload(&choice("reload", typed)),
        "stop" => stop::stop(&choice("stop", typed), typed.get_flag("now")),
        "upgrade" => upgrade::upgrade(&choice("upgrade", typed)),
        "bench" => bench::run(typed),
        "agent" => agent::run(typed),
        "lab" => lab::run(typed),
        "tune" => lab::tune::run(typed),
        "users" => users::run(typed),
        "man" => manual::man(program(), text("command").as_deref(), path("to").as_deref()),
        "completions" => manual::completions(program(), &text("shell").expect("clap requires it")),
        _ => unreachable!("a command is required, and these are all"),
    }
}

/// Returns the server that the command line or the environment names. The value `off` of a server names none.
fn choice(command: &'static str, matches: &ArgMatches) -> ServerChoice {
    let address = matches.get_one::<String>("address").cloned();
    let variable = || std::env::var_os("TENFOLD_CONTROL").filter(|path| !path.is_empty() && path != "off");
    let control = matches.get_one::<PathBuf>("control").cloned();
    let control = control.or_else(|| variable().filter(|_| address.is_none()).map(PathBuf::from));
    ServerChoice { command, address, control }
}

pub(crate) fn program() -> clap::Command {
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON");
    let config = |arg: Arg| arg.value_name("FILE").value_parser(value_parser!(PathBuf));
    let check = config(Arg::new("config"))
        .help("The configuration file [env: TENFOLD_CONFIG] [default: tenfold.toml, if it is in the current folder]");
    let schema = Arg::new("schema").long("schema").action(ArgAction::SetTrue).conflicts_with("config");
    let schema = schema.help("Print the schema of the file for editors (JSON Schema)");
    let control = Arg::new("control").long("control").value_name("PATH").value_parser(value_parser!(PathBuf));
    let control = control
        .help("The server's control socket [env: TENFOLD_CONTROL]; not needed if only one server runs");
    let address = Arg::new("address").value_name("ADDRESS").conflicts_with("control");
    let server =
        address.clone().help("An address or port of the server, as in 8080; not needed if only one runs");
    let now = Arg::new("now").long("now").action(ArgAction::SetTrue);
    let watch = Arg::new("watch").long("watch").action(ArgAction::SetTrue);
    let listen =
        Arg::new("listen").short('l').long("listen").value_name("ADDRESS").default_value("127.0.0.1:0");
    let port = Arg::new("port").short('p').long("port").value_name("PORT");
    let engine = Arg::new("NAME").value_parser(PossibleValuesParser::new(engines::names()));
    let matrix = Arg::new("matrix").long("matrix").action(ArgAction::SetTrue);
    clap::Command::new("tenfold")
        .version(env!("CARGO_PKG_VERSION"))
        .about("An HTTP server for static sites and media whose I/O model is a switch")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(serve::command(config(Arg::new("config").short('c').long("config"))))
        .subcommand(
            clap::Command::new("check")
                .about("Check the configuration, and report every error with its position")
                .arg(check)
                .arg(schema),
        )
        .subcommand(help::command())
        .subcommand(init::command())
        .subcommand(migrate::command())
        .subcommand(
            clap::Command::new("book")
                .about("Serve the manual of this version locally, for reading offline")
                .arg(listen.help("The address to listen on; with port 0 the system chooses the port"))
                .arg(port.conflicts_with("listen").help("The port to listen on, for this machine only; auto is a free port")),
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
                .arg(address.help("An address or port of the server, or its admin listener, also on another machine"))
                .arg(control.clone())
                .arg(watch.help("Refresh every second: rates, latencies, connections and memory"))
                .arg(json().conflicts_with("watch")),
        )
        .subcommand(
            clap::Command::new("reload")
                .about("Have a running server read its configuration again, and report the result")
                .after_help(ABOUT_RELOAD)
                .arg(server.clone())
                .arg(control.clone()),
        )
        .subcommand(
            clap::Command::new("stop")
                .about("Stop a running server when its running responses have ended, and wait for the end")
                .after_help(ABOUT_STOP)
                .arg(server.clone())
                .arg(now.help("Cut off running responses"))
                .arg(control.clone()),
        )
        .subcommand(
            clap::Command::new("upgrade")
                .about("Replace the program of a running server with the file at its path, without losing a request")
                .arg(server)
                .arg(control),
        )
        .subcommand(super::bench::command())
        .subcommand(agent::command())
        .subcommand(super::lab::command())
        .subcommand(super::lab::tune::command())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        program().debug_assert();
    }

    #[test]
    fn contradicting_flags_are_refused() {
        for words in [
            &["serve", "site", "--root", "other"][..],
            &["serve", "--null-body", "5"],
            &["serve", "--null", "--null-body", "1048577"],
            &["serve", "--engine", "epoll", "--engine", "uring"],
            &["serve", "--no-such-flag"],
            &["serve", "-p", "8000", "--listen", "8001"],
            &["serve", "-p", "70000"],
            &["serve", "-v", "--log-level", "warn"],
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
