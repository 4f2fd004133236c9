//! `tenfold users`: manages the members of a site in their database, whether the server runs or not.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use serde_json::json;
use tenfold_accounts::Accounts;
use tenfold_accounts::store::url::DatabaseUrl;
use tenfold_sys::limits;
use tenfold_sys::process;
use tenfold_sys::terminal::Hidden;
use tenfold_sys::user::{self, SystemUser};

use super::output::{self, escape_json, print};
use crate::config::parse::given::{GivenSettings, warn_of_slips};
use crate::config::parse::problem::{WRONG_USAGE, complain};
use crate::config::values::Settings;
use crate::config::values::members::AccountsLocation;
use crate::diagnostics::{self, error};
use crate::members::database::{self, Users};
use crate::members::process::most_memory;
use crate::supervisor::children::privileges;

/// The default number of days until an invitation expires.
const DAYS: &str = "14";

pub(crate) fn command() -> clap::Command {
    let name = || Arg::new("NAME").required(true).help("The name of the member");
    let with_name =
        |command: &'static str, about: &'static str| clap::Command::new(command).about(about).arg(name());
    clap::Command::new("users")
        .about("Manage the members of a site")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .global(true)
                .help("The server's configuration file, which names the members' database"),
        )
        .arg(
            Arg::new("accounts")
                .long("accounts")
                .value_name("URL")
                .global(true)
                .help("The members' database, as in the server's --accounts"),
        )
        .subcommand(with_name(
            "add",
            "Create an account; reads the password from the terminal or standard input",
        ))
        .subcommand(
            clap::Command::new("list")
                .about("List all members")
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON")),
        )
        .subcommand(with_name("disable", "Prevent a member from logging in, and end the member's sessions"))
        .subcommand(with_name("enable", "Allow a member to log in again"))
        .subcommand(with_name("passwd", "Change a member's password, and end the member's sessions"))
        .subcommand(with_name("remove", "Delete an account permanently"))
        .subcommand(
            clap::Command::new("invite")
                .about("Create an invitation for one account, and print its code")
                .arg(
                    Arg::new("days")
                        .long("days")
                        .value_name("N")
                        .value_parser(value_parser!(u32).range(1..=3650))
                        .default_value(DAYS)
                        .help("Days until the invitation expires"),
                ),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let (name, words) = matches.subcommand().expect("a command is required");
    // This memory will hold a password. Another process of the same user could read it.
    if let Err(error) = process::hide_memory() {
        error!("cannot hide the memory of this process: {error}");
        return ExitCode::FAILURE;
    }
    let accounts = match open(words) {
        Ok(accounts) => accounts,
        Err(code) => return code,
    };
    output::end(obey(&accounts, name, words))
}

/// The accounts named by flags, variables or the file.
fn open(words: &ArgMatches) -> Result<Accounts, ExitCode> {
    let mut given = GivenSettings { config: words.get_one("config").cloned(), ..GivenSettings::default() };
    given.flags.extend(words.get_one::<String>("accounts").map(|value| ("accounts", vec![value.clone()])));
    given.take_variables();
    warn_of_slips();
    let settings = given.resolve().map_err(|problems| {
        complain(&problems);
        ExitCode::from(WRONG_USAGE)
    })?;
    let Some(at) = &settings.members.accounts else {
        error!("no members' database is configured; name it with --accounts URL or --config FILE");
        return Err(ExitCode::from(WRONG_USAGE));
    };
    open_as_keeper(at, &settings).map_err(|why| {
        error!("{why}");
        ExitCode::FAILURE
    })
}

/// Opens the accounts. Root opens a database file as its present or future owner. In a folder of another user, a path
/// can lead to any file, and SQLite changes the owner of files that it creates as root.
fn open_as_keeper(at: &AccountsLocation, settings: &Settings) -> Result<Accounts, String> {
    let url = at.url()?;
    let keeper = match user::is_root() && url.file().is_some() {
        true => Some(keeper(&url, settings)?),
        false => None,
    };
    database::prepare(at, keeper.as_ref().map(|keeper| Users { accounts: keeper, workers: keeper }))?;
    if let Some(keeper) = &keeper {
        let switch_to = || keeper.switch_to().and_then(|()| user::drop_capabilities());
        // A change of the user can make the memory readable again (fs.suid_dumpable).
        let switch_to = || switch_to().and_then(|()| process::hide_memory());
        switch_to().map_err(|error| format!("cannot become user {}: {error}", keeper.name))?;
    }
    if url.file().is_none() {
        // The database server could send an endless reply.
        limits::limit_memory(most_memory(&settings.members))
            .map_err(|error| format!("cannot limit memory: {error}"))?;
    }
    database::open_accounts((&url, 1), true, keeper.as_ref(), &settings.members)
}

/// The owner of the database. If the database is missing or belongs to root: the user of the accounts process.
fn keeper(url: &DatabaseUrl, settings: &Settings) -> Result<SystemUser, String> {
    match database::owner(url)?.filter(|owner| *owner != 0) {
        Some(id) => {
            let found =
                SystemUser::with_id(id).map_err(|error| format!("cannot look up user {id}: {error}"))?;
            found.ok_or_else(|| format!("cannot use {url}: it belongs to user {id}, which does not exist"))
        }
        None => {
            let workers = privileges::worker_user(settings)?.ok_or("this process does not run as root")?;
            privileges::accounts_user(settings, &workers)
        }
    }
}

fn obey(accounts: &Accounts, command: &str, words: &ArgMatches) -> Result<(), String> {
    let name = || words.get_one::<String>("NAME").expect("it is required").as_str();
    match command {
        "list" => return list(accounts, words.get_flag("json")),
        "invite" => return say(&accounts.invite(*words.get_one("days").expect("it has a default"))?),
        "add" => accounts.add_member(name(), &password()?)?,
        "disable" => accounts.set_disabled(name(), true)?,
        "enable" => accounts.set_disabled(name(), false)?,
        "passwd" => accounts.set_password(name(), &password()?)?,
        "remove" => accounts.remove_member(name())?,
        _ => unreachable!("a command is required, and these are all"),
    }
    say(&match command {
        "disable" => format!("{} cannot log in any more", name()),
        "passwd" => format!("the password of {} is changed, and all sessions have ended", name()),
        "remove" => format!("{} is removed", name()),
        _ => format!("{} can log in", name()),
    })
}

fn list(accounts: &Accounts, as_json: bool) -> Result<(), String> {
    let members = accounts.members()?;
    if as_json {
        let all: Vec<_> = members
            .iter()
            .map(|user| json!({ "name": user.name, "created": user.created, "disabled": user.disabled }))
            .collect();
        return say(&escape_json(&serde_json::Value::Array(all).to_string()));
    }
    let width = members.iter().map(|user| user.name.chars().count()).max().unwrap_or(0);
    for user in members {
        let date = tenfold_http::clock::format_date(user.created.unsigned_abs());
        let since = String::from_utf8_lossy(&date[5..16]);
        let state = if user.disabled { "disabled" } else { "" };
        // A name in the database could contain control characters of terminals.
        let name = user.name.escape_debug().to_string();
        say(format!("{name:<width$}  {since}  {state}").trim_end())?;
    }
    Ok(())
}

fn say(line: &str) -> Result<(), String> {
    print(format!("{line}\n").as_bytes())
}

/// Reads a password: typed twice without echo on a terminal, otherwise the first line of standard input.
fn password() -> Result<String, String> {
    if !io::stdin().is_terminal() {
        return line();
    }
    let first = hidden("Password: ")?;
    if first != hidden("Once more: ")? {
        return Err("the two passwords differ".into());
    }
    Ok(first)
}

fn hidden(prompt: &str) -> Result<String, String> {
    diagnostics::raw(prompt);
    let _hidden = Hidden::begin().map_err(|error| format!("cannot ask for a password: {error}"))?;
    line()
}

fn line() -> Result<String, String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| format!("cannot read a password: {error}"))?;
    let text = line.strip_suffix('\n').unwrap_or(&line);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}
