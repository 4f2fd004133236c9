//! The machines of a run as a picture, and as text.

use std::fmt::Write;

use tenfold_chart::{Machine, escape, figure, topology};

use crate::machine::hosts::{HostFacts, Hosts, LinkFacts};
use crate::measure::show_count;
use crate::plan::RunPlan;

/// The picture, and a row for each machine.
pub(super) fn section(plan: &RunPlan, hosts: &Hosts) -> String {
    let machine = |host: &HostFacts| Machine {
        name: host.name.clone(),
        about: show_count(host.environment.processors.len(), "processor"),
    };
    let clients: Vec<(Machine, String)> = hosts
        .clients
        .iter()
        .map(|client| (machine(client), client.link.as_ref().map(speed).unwrap_or_default()))
        .collect();
    let title = "The server, and the clients that make its load";
    let mut page = format!(
        "<section id=\"machines\"><h2>Machines</h2>{}<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>machine</th>\
         <th>part</th><th>processor</th><th>kernel</th><th>link</th></tr></thead><tbody>",
        figure(title, &topology(title, &machine(&hosts.server), &clients))
    );
    for (place, host) in hosts.list().into_iter().enumerate() {
        let part = match (place, &plan.machines) {
            (0, Some(machines)) => format!("server at {}", machines.address),
            (0, None) => "server".to_owned(),
            _ => "client".to_owned(),
        };
        let link = match (&host.link, place) {
            (Some(link), 0) => format!("loopback: {}", speed(link)),
            (Some(link), _) => format!("{}, {}", speed(link), link.interface),
            (None, _) => String::new(),
        };
        let environment = &host.environment;
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{part}</td><td>{} × {}</td><td>{}</td><td>{}</td></tr>",
            escape(&host.name),
            environment.processors.len(),
            escape(&environment.processor),
            escape(&environment.kernel),
            escape(&link),
        );
    }
    page.push_str("</tbody></table></div></section>");
    page
}

/// A line for each machine.
pub(super) fn summary(plan: &RunPlan, hosts: &Hosts) -> String {
    let address = plan.machines.as_ref().map(|machines| format!(" at {}", machines.address));
    let mut text = format!("Server: {}{}.", hosts.server.name, address.unwrap_or_default());
    for client in &hosts.clients {
        let link = client.link.as_ref().map(speed).unwrap_or_default();
        let _ = write!(text, " Client: {}, {link}.", client.name);
    }
    text.push_str("\n\n");
    text
}

fn speed(link: &LinkFacts) -> String {
    format!("{:.0} µs, {:.0} MB/s", link.round_trip_us, link.megabytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::environment::LabEnvironment;
    use crate::plan::{Machines, Wishes};

    #[test]
    fn a_report_draws_each_machine() {
        let host = |name: &str| HostFacts {
            name: name.to_owned(),
            link: Some(LinkFacts { round_trip_us: 45.0, megabytes: 118.0, ..LinkFacts::default() }),
            ..HostFacts::default()
        };
        let hosts = Hosts { server: host("<a>"), clients: vec![host("b"), host("c")] };
        let mut plan = RunPlan::new(Vec::new(), &Wishes::default(), &LabEnvironment::default());
        let clients = vec!["b".to_owned(), "c".to_owned()];
        plan.machines = Some(Machines { server: None, address: [10, 0, 0, 1].into(), clients });
        let page = section(&plan, &hosts);
        assert_eq!(page.matches("<tr><td>").count(), 3, "{page}");
        assert!(page.contains("&lt;a&gt;") && page.contains("server at 10.0.0.1"), "{page}");
        assert!(summary(&plan, &hosts).contains("Client: c, 45 µs, 118 MB/s."));
    }
}
