//! `tenfold man` and `tenfold completions`: manual pages and shell completions, generated from the same definitions as
//! `--help`.

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use super::output::{end, print};

/// The shells with a completion script.
pub(crate) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Prints the page of `tenfold` or of a command, or writes all pages to a folder.
pub(crate) fn man(program: Command, command: Option<&str>, folder: Option<&Path>) -> ExitCode {
    let pages = pages(program);
    let written = match (command, folder) {
        (_, Some(folder)) => write_all(&pages, folder),
        (command, None) => {
            let name = command.map_or("tenfold".to_owned(), |command| format!("tenfold-{command}"));
            match pages.iter().find(|page| page.name == name) {
                Some(page) => print(&page.text),
                None => Err(format!(
                    "there is no command {}; `tenfold --help` lists all",
                    command.unwrap_or_default()
                )),
            }
        }
    };
    end(written)
}

/// Prints the completion script for `shell`.
pub(crate) fn completions(mut program: Command, shell: &str) -> ExitCode {
    let shell = match shell {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        _ => Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut program, "tenfold", &mut text);
    end(print(&text))
}

/// A manual page. The name has no section.
struct ManualPage {
    name: String,
    text: Vec<u8>,
}

/// Makes the pages of the program, of its commands and of their subcommands.
fn pages(program: Command) -> Vec<ManualPage> {
    let mut pages = Vec::new();
    let mut left = vec![program.disable_help_subcommand(true)];
    left[0].build();
    while let Some(command) = left.pop() {
        // The name has a hyphen for each space: `man tenfold-serve`.
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let is_own = |inner: &&Command| inner.get_name() != "help" || command.get_name() == "tenfold";
        left.extend(command.get_subcommands().filter(is_own).cloned());
        let mut text = Vec::new();
        let man = Man::new(command).manual("Tenfold");
        man.render(&mut text).expect("a write to memory succeeds");
        pages.push(ManualPage { name, text });
    }
    pages
}

fn write_all(pages: &[ManualPage], folder: &Path) -> Result<(), String> {
    let failed = |what: &Path, error: io::Error| format!("cannot write {}: {error}", what.display());
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for page in pages {
        let path = folder.join(format!("{}.1", page.name));
        fs::write(&path, &page.text).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cli;
    use crate::config::parse::rows::rows;

    fn page(name: &str) -> String {
        let pages = pages(cli::program());
        let page = pages.into_iter().find(|page| page.name == name).unwrap_or_else(|| panic!("no {name}"));
        String::from_utf8(page.text).expect("text")
    }

    #[test]
    fn every_command_has_a_page_and_the_first_names_them_all() {
        let names: Vec<_> = pages(cli::program()).into_iter().map(|page| page.name).collect();
        for command in cli::program().get_subcommands() {
            let name = format!("tenfold-{}", command.get_name());
            assert!(names.contains(&name), "{names:?}");
            assert!(page("tenfold").contains(&name.replace('-', "\\-")), "{name}");
        }
    }

    #[test]
    fn every_setting_stands_in_the_page_and_in_each_completion() {
        let text = page("tenfold-serve");
        for row in rows() {
            assert!(text.contains(&format!("\\-\\-{}", row.name.replace('-', "\\-"))), "{}", row.name);
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut cli::program(), "tenfold", &mut text);
            let text = String::from_utf8(text).expect("text");
            assert!(rows().all(|row| text.contains(row.name)), "{shell}");
        }
    }
}
