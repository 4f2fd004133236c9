//! The command line of `tenfold lab`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, value_parser};
use tenfold_lab::experiment::subject::Subject;
use tenfold_lab::plan::profile::Profile;

const ABOUT_CODES: &str = "\
Exit codes: 0 done; 1 failed; 2 wrong usage; 4 no trial succeeded; 130 interrupted, to be continued
with --resume.";

pub(crate) fn command() -> clap::Command {
    clap::Command::new("lab")
        .about("Repeat published comparisons of servers on this machine, with evidence")
        .after_help(ABOUT_CODES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(clap::Command::new("list").about("List the experiments"))
        .subcommand(
            clap::Command::new("show")
                .about("Print an experiment: claims, cells, rules")
                .arg(Arg::new("NAME").required(true).help("Its name, or the path of a TOML file"))
                .arg(switch("file", "Print its file (TOML)")),
        )
        .subcommand(
            clap::Command::new("doctor")
                .about("List faults of this machine, or of those named, that spoil a measurement; changes nothing")
                .args(machines("Examine this host as the server, at this IPv4 address")),
        )
        .subcommand(run_command())
        .subcommand(why_command())
        .subcommand(explain_command())
        .subcommand(wall_command())
        .subcommand(museum_command())
        .subcommand(
            clap::Command::new("report")
                .about("Write the report of a run again, from its raw data alone")
                .arg(folder("DIR", "The folder of a run")),
        )
        .subcommand(
            clap::Command::new("compare")
                .about("Print two runs side by side, with intervals")
                .arg(folder("A", "The folder of a run"))
                .arg(folder("B", "The folder of another run")),
        )
}

/// `why`: two cells under one load.
fn why_command() -> clap::Command {
    let words = "An engine, a server, settings or a cell: epoll, nginx, \"epoll --send copy\", n16-tcp:cork";
    let cell = |name: &'static str| Arg::new(name).required(true).help(words);
    clap::Command::new("why")
        .about("Split the difference of two servers or two switches into user, system and waiting time")
        .arg(cell("A"))
        .arg(cell("B"))
        .arg(flag("connections", "N", "Connections that make requests [default: 1]"))
        .arg(flag("idle", "N", "Additional idle connections [default: 0]"))
        .arg(flag("file", "BYTES", "Size of the file [default: 1067]"))
        .arg(switch("close", "Open a new connection for each request"))
        .args(shared("quick", "lab-why"))
}

/// `explain`: the calls of one request.
fn explain_command() -> clap::Command {
    clap::Command::new("explain")
        .about("Trace a request, and show the source line of each system call")
        .arg(Arg::new("ENGINE").required(true).help("The engine, such as epoll"))
        .arg(switch("table", "Print the tables of the engine's page in the book (Markdown)"))
}

/// `wall`: engines with many idle connections.
fn wall_command() -> clap::Command {
    let engines = flag("engines", "NAME", "Engines to compare [default: select,poll,epoll,uring]");
    clap::Command::new("wall")
        .about("Chart the CPU time of a request while idle connections grow")
        .arg(engines.action(ArgAction::Append).value_delimiter(','))
        .arg(flag(
            "idle",
            "N",
            "Largest number of idle connections [default: 8000, or fewer if descriptors or ports are scarce]",
        ))
        .args(shared("smoke", "lab-wall").into_iter().filter(|arg| arg.get_id() != "profile"))
        .mut_arg("blocks", |blocks| blocks.help("Number of blocks [default: 3]"))
}

/// `museum`: published mistakes and their corrections.
fn museum_command() -> clap::Command {
    let names = "An exhibit: accept-one, thread-race, send-once, not-found, sleeping-loop, file-in-a-string, \
                 write-per-line, queue or timer-list [default: all]";
    clap::Command::new("museum")
        .about("Run published mistakes as minimal C servers, before and after the corrected line")
        .arg(Arg::new("NAME").action(ArgAction::Append).help(names))
        .arg(switch("source", "Print the programs of the named exhibits instead"))
        .args(shared("smoke", "lab-museum"))
}

pub(super) fn flag(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// The flags of the commands that keep trials in a folder.
fn shared(profile: &str, folder: &str) -> [Arg; 4] {
    let profiles = PossibleValuesParser::new(Profile::WORDS.map(|(name, _)| name));
    let help = format!(
        "Length and precision: smoke (minutes), quick (half an hour) or full (hours) [default: {profile}]"
    );
    let profile = Arg::new("profile").long("profile").value_name("PROFILE").help(help);
    [
        profile.value_parser(profiles),
        flag("blocks", "N", "Number of blocks of each experiment [default: chosen in two stages]"),
        flag("seed", "N", "Repeat the random order of an earlier run [default: random]"),
        flag("output", "DIR", "")
            .help(format!("The folder of the run [default: a new one, such as {folder}-1]"))
            .value_parser(value_parser!(PathBuf)),
    ]
}

/// The flags of commands on several machines.
fn machines(server: &'static str) -> [Arg; 4] {
    [
        flag("server", "NAME=ADDRESS", server).requires("client"),
        clients().requires("server"),
        on_command().requires("server"),
        on_copy().requires("server"),
    ]
}

pub(super) fn clients() -> Arg {
    let help = "Make the load on this host, with N agents; repeatable, and divides connections and rates";
    flag("client", "NAME[*N]", help).action(ArgAction::Append)
}

pub(super) fn on_command() -> Arg {
    let help = "The command that starts an agent on {}; its words are separated by spaces \
                [default: ssh -o BatchMode=yes -- {} tenfold agent]";
    flag("on-command", "COMMAND", help)
}

pub(super) fn on_copy() -> Arg {
    switch("on-copy", "Copy this program to each host first, by ssh, and remove it at the end")
}

fn run_command() -> clap::Command {
    let peers = Subject::ALL.iter().filter(|subject| subject.is_peer()).map(|subject| subject.name());
    let peers = PossibleValuesParser::new(peers.chain(["none"]).collect::<Vec<_>>());
    clap::Command::new("run")
        .about("Run experiments, and write a report of them")
        .arg(
            flag(
                "only",
                "NAME",
                "Only these experiments: a name, a source such as n16, or a TOML file; repeatable",
            )
            .action(ArgAction::Append)
            .value_delimiter(','),
        )
        .args(shared("quick", "lab-quick"))
        .args(machines("Run servers on this host, at this IPv4 address"))
        .arg(flag("budget", "TIME", "Time for all trials [default: by profile]"))
        .arg(
            flag("peers", "NAME", "Start only these other servers, or none [default: those installed]")
                .action(ArgAction::Append)
                .value_delimiter(',')
                .value_parser(peers),
        )
        .arg(
            flag("resume", "DIR", "Continue an interrupted run")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["only", "profile", "budget", "blocks", "seed", "peers", "output"]),
        )
}

fn folder(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).required(true).help(help).value_parser(value_parser!(PathBuf))
}
