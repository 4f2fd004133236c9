//! The flags that name other machines, and their agents.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use clap::ArgMatches;
use tenfold_agents::fleet::command::{AgentPlace, StartCommand};
use tenfold_lab::plan::{Machines, RunPlan};
use tenfold_lab::trial::bench::interrupted;
use tenfold_lab::trial::far::FarMachines;

use super::failure::{INTERRUPTED, LabFailure, usage};

/// The time of a transfer over each link.
pub(super) const TRANSFER: Duration = Duration::from_secs(2);

/// The machines of the command line, if it names any.
pub(super) fn machines(typed: &ArgMatches) -> Result<Option<Machines>, LabFailure> {
    let Some(server) = typed.get_one::<String>("server") else { return Ok(None) };
    let Some((name, text)) = server.rsplit_once('=') else {
        return Err(usage(format!(
            "--server: {server:?} has no address; use NAME=ADDRESS, such as a=10.0.0.1"
        )));
    };
    let address = address(text).map_err(|why| usage(format!("--server: {why}")))?;
    name.parse::<AgentPlace>().map_err(|why| usage(format!("--server: {why}")))?;
    Ok(Some(Machines { server: Some(name.to_owned()), address, clients: clients(typed)? }))
}

/// The names of clients on the command line.
pub(super) fn clients(typed: &ArgMatches) -> Result<Vec<String>, LabFailure> {
    let name = |name: &String| match name.parse::<AgentPlace>() {
        Ok(_) => Ok(name.clone()),
        Err(why) => Err(usage(format!("--client: {why}"))),
    };
    typed.get_many::<String>("client").into_iter().flatten().map(name).collect()
}

/// An address on which servers can listen.
pub(super) fn address(text: &str) -> Result<Ipv4Addr, String> {
    match text.parse() {
        Ok(IpAddr::V4(address)) if address.is_unspecified() || address.is_multicast() => {
            Err(format!("{address} is no address of one host; name the address that clients reach"))
        }
        Ok(IpAddr::V4(address)) => Ok(address),
        Ok(IpAddr::V6(address)) => {
            Err(format!("{address} is an IPv6 address, which some servers of the laboratory lack; use IPv4"))
        }
        Err(_) => Err(format!("{text:?} is no IPv4 address, such as 10.0.0.1")),
    }
}

/// Starts the agents, and measures links by transfers of this time.
pub(super) fn start(
    typed: &ArgMatches,
    machines: &Machines,
    transfer: Duration,
) -> Result<FarMachines, LabFailure> {
    let command = typed.get_one::<String>("on-command").map(|text| text.parse::<StartCommand>());
    let command = command.transpose().map_err(|why| usage(format!("--on-command: {why}")))?;
    let (command, copy) = (command.unwrap_or_default(), typed.get_flag("on-copy"));
    FarMachines::start(machines, command, copy, transfer).map_err(|why| match interrupted() {
        true => LabFailure(INTERRUPTED, "interrupted before the first trial".to_owned()),
        false => why.into(),
    })
}

/// Starts the agents of a run that is continued. Only the command line names machines and commands, because the folder
/// may come from another person.
pub(super) fn continued(
    typed: &ArgMatches,
    plan: &RunPlan,
    folder: &Path,
) -> Result<Option<FarMachines>, LabFailure> {
    let named = machines(typed)?;
    match (&named, &plan.machines) {
        (None, None) => Ok(None),
        (Some(named), Some(planned)) if named == planned => Ok(Some(start(typed, named, TRANSFER)?)),
        (_, None) => Err(usage("this run is on one machine; remove --server and --client")),
        (_, Some(_)) => {
            Err(usage(format!("this run has other machines; continue with: {}", again(plan, folder))))
        }
    }
}

/// The command that continues a run. A folder of another person may have names that a shell would execute; they are left
/// out.
pub(super) fn again(plan: &RunPlan, folder: &Path) -> String {
    let mut words = format!("tenfold lab run --resume {}", folder.display());
    let is_plain = |name: &String| {
        !name.starts_with('-')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._@:/-*".contains(&byte))
    };
    let names = plan.machines.iter().flat_map(|machines| machines.server.iter().chain(&machines.clients));
    if !names.clone().all(is_plain) {
        return format!("{words}, and --server and --client as in plan.json");
    }
    if let Some(Machines { server: Some(server), address, clients }) = &plan.machines {
        words.push_str(&format!(" --server {server}={address}"));
        clients.iter().for_each(|client| words.push_str(&format!(" --client {client}")));
        words.push_str(", and --on-command or --on-copy as before");
    }
    words
}

#[cfg(test)]
mod tests {
    use tenfold_lab::machine::environment::LabEnvironment;
    use tenfold_lab::plan::Wishes;

    use super::*;

    #[test]
    fn names_of_a_folder_are_no_command() {
        let plan = |client: &str| RunPlan {
            machines: Some(Machines {
                server: Some("a".to_owned()),
                address: Ipv4Addr::LOCALHOST,
                clients: vec![client.to_owned()],
            }),
            ..RunPlan::new(Vec::new(), &Wishes::default(), &LabEnvironment::default())
        };
        let again = |client: &str| again(&plan(client), Path::new("run"));
        assert!(again("b*2").contains(" --client b*2, and"), "{}", again("b*2"));
        for name in ["$(reboot)", "b;reboot", "-oProxyCommand=x"] {
            assert!(!again(name).contains(name), "{}", again(name));
        }
    }

    #[test]
    fn servers_need_the_ipv4_address_of_a_host() {
        assert_eq!(address("10.0.0.1"), Ok(Ipv4Addr::new(10, 0, 0, 1)));
        for (text, word) in [("fe80::1", "IPv6"), ("0.0.0.0", "no address of one host"), ("host", "no IPv4")]
        {
            let said = address(text).expect_err(text);
            assert!(said.contains(word), "{said}");
        }
    }
}
