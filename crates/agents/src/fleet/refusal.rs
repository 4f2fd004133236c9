//! The reasons why an agent did not start, each with a remedy.

use super::command::StartCommand;

/// Known messages of programs that start agents, and the remedy for each.
const REMEDIES: [(&str, &str); 10] = [
    ("Host key verification failed", "check the key of the host, then accept it once with `ssh {}`"),
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "the key of the host is not the known key: find out why before you connect",
    ),
    (
        "Permission denied (",
        "log in without a password: add a key with `ssh-copy-id {}`, and load it into ssh-agent",
    ),
    (
        "Too many authentication failures",
        "offer one key: set IdentityFile and IdentitiesOnly for the host in ~/.ssh/config",
    ),
    ("Could not resolve hostname", "check the name, or add it to ~/.ssh/config"),
    ("Connection refused", "start sshd there, or set its port in ~/.ssh/config"),
    ("xec format error", "the program there is for another architecture: install tenfold for it"),
    ("command not found", "install this tenfold there, name its path in --on-command, or add --on-copy"),
    (
        "No such file or directory",
        "install this tenfold there, name its path in --on-command, or add --on-copy",
    ),
    ("not found", "install this tenfold there, name its path in --on-command, or add --on-copy"),
];

/// Returns the remedy for the lines of a program, if it is known.
pub(super) fn remedy(name: &str, written: &[String]) -> Option<String> {
    let is_known = |known: &str| written.iter().any(|line| line.contains(known));
    let (_, remedy) = REMEDIES.into_iter().find(|(known, _)| is_known(known))?;
    Some(remedy.replace("{}", name))
}

/// Returns one line about an agent that did not start.
pub(super) fn refusal(
    label: &str,
    name: &str,
    why: &str,
    written: &[String],
    command: &StartCommand,
) -> String {
    let mut text = format!("the agent on {label} {why}");
    if let Some(line) = written.last() {
        text += &format!("; it wrote: {line}");
    }
    match remedy(name, written) {
        Some(remedy) => text += &format!("; {remedy}"),
        None => text += &format!("; try the command by hand: {}", command.words(name).join(" ")),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_failure_has_one_line_with_a_remedy() {
        let command = StartCommand::default();
        for (written, remedy) in [
            ("Host key verification failed.", "accept it once with `ssh a`"),
            ("a: Permission denied (publickey).", "ssh-copy-id a"),
            ("bash: line 1: tenfold: command not found", "--on-copy"),
            ("sh: 1: tenfold: Exec format error", "another architecture"),
        ] {
            let text = refusal("a*1", "a", "ended", &["Welcome".to_owned(), written.to_owned()], &command);
            assert!(
                text.starts_with("the agent on a*1 ended; it wrote: ") && text.contains(remedy),
                "{text}"
            );
            assert_eq!(text.lines().count(), 1);
        }
        let unknown = refusal("a", "a", "ended", &[], &command);
        assert!(
            unknown.ends_with("try the command by hand: ssh -o BatchMode=yes -- a tenfold agent"),
            "{unknown}"
        );
    }
}
