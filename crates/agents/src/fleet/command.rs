//! The names of agents, and the command that starts an agent.

use std::fmt;
use std::str::FromStr;

/// The most agents of a fleet.
pub const MOST_AGENTS: usize = 1000;
/// The longest name in bytes: the longest name of DNS, a user, and room for a namespace.
const LONGEST: usize = 400;

/// The name of a machine, a pod or a container, as its program understands it, and the number of agents there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlace {
    /// The name.
    pub name: String,
    /// The number of agents.
    pub count: usize,
}

impl AgentPlace {
    /// The labels of its agents: the name, and a number if there are several.
    pub(crate) fn labels(&self) -> impl Iterator<Item = String> {
        (1..=self.count).map(|number| match self.count {
            1 => self.name.clone(),
            _ => format!("{}*{number}", self.name),
        })
    }
}

impl FromStr for AgentPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<AgentPlace, String> {
        let (name, count) = match text.rsplit_once('*') {
            Some((name, digits)) => (name, digits.parse().unwrap_or_default()),
            None => (text, 1),
        };
        let why = if !(1..=MOST_AGENTS).contains(&count) {
            format!("a number of agents is 1 to {MOST_AGENTS}, as in host*2")
        } else if name.starts_with('-') {
            "a name cannot begin with '-', which programs read as an option".to_owned()
        } else if name.is_empty() || name.len() > LONGEST {
            format!("a name has 1 to {LONGEST} bytes")
        } else if name.chars().any(|one| one.is_control() || one.is_whitespace()) {
            "a name has neither spaces nor control characters".to_owned()
        } else {
            return Ok(AgentPlace { name: name.to_owned(), count });
        };
        Err(format!("{text:?}: {why}"))
    }
}

/// The words of a command. The name of an agent replaces `{}`. No shell reads them on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartCommand(Vec<String>);

impl StartCommand {
    /// The words that start a program on a host, without the program.
    const SSH: [&str; 5] = ["ssh", "-o", "BatchMode=yes", "--", "{}"];

    /// Whether this is the default: OpenSSH.
    pub fn is_default(&self) -> bool {
        *self == StartCommand::default()
    }

    /// Returns the words for the agent `name`.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        self.0.iter().map(|word| word.replace("{}", name)).collect()
    }

    /// Returns the words that run `program` with `arguments` on the host `name` by OpenSSH. The shell of the remote user
    /// reads them.
    pub(crate) fn by_ssh(name: &str, words: &[&str]) -> Vec<String> {
        StartCommand::SSH
            .iter()
            .map(|word| word.replace("{}", name))
            .chain(words.iter().map(|word| (*word).to_owned()))
            .collect()
    }
}

impl Default for StartCommand {
    fn default() -> StartCommand {
        StartCommand(
            StartCommand::SSH.iter().chain(&["tenfold", "agent"]).map(|word| (*word).to_owned()).collect(),
        )
    }
}

impl FromStr for StartCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<StartCommand, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            Err("a command has at least one word".to_owned())
        } else {
            Ok(StartCommand(words))
        }
    }
}

impl fmt::Display for StartCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_parsed_or_refused() {
        let place = |text: &str| text.parse::<AgentPlace>();
        assert_eq!(place("user@host"), Ok(AgentPlace { name: "user@host".to_owned(), count: 1 }));
        let two = place("pod-1*2").expect("a name and a number");
        assert_eq!(two.labels().collect::<Vec<_>>(), ["pod-1*1", "pod-1*2"]);
        for wrong in
            ["", "-oProxyCommand=x", "-a*2", "a*0", "a*1001", "a*x", "a b", "a\x1b", "*3", &"a".repeat(401)]
        {
            assert!(place(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_is_one_word_of_a_command() {
        let command: StartCommand = "kubectl exec -i {} -- tenfold agent".parse().expect("words");
        assert_eq!(command.words("a;b"), ["kubectl", "exec", "-i", "a;b", "--", "tenfold", "agent"]);
        assert!(!command.is_default() && StartCommand::default().is_default());
        assert_eq!(StartCommand::default().to_string(), "ssh -o BatchMode=yes -- {} tenfold agent");
        assert!(" ".parse::<StartCommand>().is_err());
    }
}
