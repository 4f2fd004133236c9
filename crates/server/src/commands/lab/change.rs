//! The change of a configuration by `tenfold tune`, as a unified diff that `patch` applies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use tenfold_lab::studies::tune::candidates::{CandidateSettings, TRIED};
use tenfold_lab::studies::tune::configuration;
use toml::de::{DeTable, DeValue};

use crate::config::parse::file::EXPERIMENT;
use crate::config::parse::row::SettingRow;
use crate::config::parse::rows::row;

/// Unchanged lines before and after a change.
const CONTEXT: usize = 3;

/// A line of the old file, the new file or both, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ChangedLine {
    Kept(String),
    Removed(String),
    Added(String),
}

/// A changed or new file.
#[derive(Debug)]
pub(super) struct FileChange {
    lines: Vec<ChangedLine>,
    /// Whether the last line of the old file has an end.
    is_ended: bool,
}

impl FileChange {
    /// A new file.
    pub(super) fn of_new(text: &str) -> FileChange {
        let lines = text.lines().map(|line| ChangedLine::Added(line.to_owned())).collect();
        FileChange { lines, is_ended: true }
    }

    /// Sets `settings` in a configuration, and removes the other settings that a search tries. Fails if a change of
    /// whole lines is not enough.
    pub(super) fn edit(text: &str, settings: &CandidateSettings) -> Result<FileChange, String> {
        let mut edit = LineEdit::of(text, settings)?;
        edit.place_missing(settings);
        let change = edit.finish();
        let is_same = |a: &toml::Table, b: &toml::Table| others(a) == others(b);
        let (old, new) = (table(text)?, table(&change.text())?);
        match is_same(&old, &new) && tried(&new) == *settings {
            true => Ok(change),
            false => Err("the file has these settings in a form that lines cannot change".to_owned()),
        }
    }

    /// Whether the file stays as it is.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| matches!(line, ChangedLine::Kept(_)))
    }

    /// The new file.
    pub(super) fn text(&self) -> String {
        let new = |line: &ChangedLine| match line {
            ChangedLine::Kept(text) | ChangedLine::Added(text) => Some(format!("{text}\n")),
            ChangedLine::Removed(_) => None,
        };
        self.lines.iter().filter_map(new).collect()
    }

    /// The unified diff. Without `old`, it makes the file `new`.
    pub(super) fn unified(&self, old: Option<&Path>, new: &Path) -> String {
        let shown = |path: &Path| path.display().to_string().escape_debug().to_string();
        let mut text = format!("--- {}\n+++ {}\n", old.map_or("/dev/null".to_owned(), shown), shown(new));
        let last = self.lines.iter().rposition(|line| !matches!(line, ChangedLine::Added(_)));
        for hunk in self.hunks() {
            let count = |lines: &[ChangedLine]| {
                let old = lines.iter().filter(|line| !matches!(line, ChangedLine::Added(_))).count();
                let new = lines.iter().filter(|line| !matches!(line, ChangedLine::Removed(_))).count();
                (old, new)
            };
            let (before, within) = (count(&self.lines[..hunk.start]), count(&self.lines[hunk.clone()]));
            // The number of an empty range is that of the line before it.
            let begin = |before: usize, within: usize| before + usize::from(within > 0);
            let _ = writeln!(
                text,
                "@@ -{},{} +{},{} @@",
                begin(before.0, within.0),
                within.0,
                begin(before.1, within.1),
                within.1
            );
            for at in hunk {
                let (sign, line) = match &self.lines[at] {
                    ChangedLine::Kept(line) => (' ', line),
                    ChangedLine::Removed(line) => ('-', line),
                    ChangedLine::Added(line) => ('+', line),
                };
                let _ = writeln!(text, "{sign}{line}");
                if !self.is_ended && Some(at) == last {
                    text.push_str("\\ No newline at end of file\n");
                }
            }
        }
        text
    }

    /// The ranges of changed lines with their context.
    fn hunks(&self) -> Vec<std::ops::Range<usize>> {
        let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            if matches!(line, ChangedLine::Kept(_)) {
                continue;
            }
            let (begin, end) = (at.saturating_sub(CONTEXT), (at + 1 + CONTEXT).min(self.lines.len()));
            match hunks.last_mut() {
                Some(last) if begin <= last.end => last.end = end,
                _ => hunks.push(begin..end),
            }
        }
        hunks
    }
}

/// The lines of a configuration, and their changes.
struct LineEdit<'a> {
    lines: Vec<&'a str>,
    is_ended: bool,
    removed: BTreeSet<usize>,
    /// New lines before the line of this number.
    added: BTreeMap<usize, Vec<String>>,
    /// The settings that the file has.
    found: BTreeSet<String>,
    /// The line after the last setting outside of tables.
    after_top: usize,
    /// The line after the last experiment, if there is their table.
    after_experiments: Option<usize>,
}

impl<'a> LineEdit<'a> {
    /// Finds the settings of a configuration, and replaces or removes those that a search tries.
    fn of(text: &'a str, settings: &CandidateSettings) -> Result<LineEdit<'a>, String> {
        let document = DeTable::parse(text).map_err(|error| format!("the file is not TOML: {error}"))?;
        let mut lines: Vec<&str> = text.split('\n').collect();
        let is_ended = lines.pop_if(|last| last.is_empty()).is_some();
        let mut edit = LineEdit {
            lines,
            is_ended,
            removed: BTreeSet::new(),
            added: BTreeMap::new(),
            found: BTreeSet::new(),
            after_top: 0,
            after_experiments: None,
        };
        let line = |byte: usize| text[..byte].matches('\n').count();
        for (key, value) in document.get_ref() {
            let entries = match value.get_ref() {
                DeValue::Table(table) if key.get_ref() == EXPERIMENT => {
                    edit.after_experiments = Some(line(key.span().start) + 1);
                    table.iter().collect()
                }
                DeValue::Table(_) => Vec::new(),
                _ if row(key.get_ref()).is_some() => vec![(key, value)],
                _ => Vec::new(),
            };
            let in_table = matches!(value.get_ref(), DeValue::Table(_));
            for (key, value) in entries {
                let (first, last) = (line(key.span().start), line(value.span().end));
                edit.change(key.get_ref(), first..=last, &text[value.span()], settings);
                let after = match in_table {
                    true => edit.after_experiments.get_or_insert_default(),
                    false => &mut edit.after_top,
                };
                *after = (*after).max(last + 1);
            }
        }
        Ok(edit)
    }

    /// Replaces or removes a setting at these lines.
    fn change(
        &mut self,
        name: &str,
        lines: std::ops::RangeInclusive<usize>,
        value: &str,
        settings: &CandidateSettings,
    ) {
        if !TRIED.contains(&name) {
            return;
        }
        self.found.insert(name.to_owned());
        match settings.get(name) {
            Some(new) if configuration::value(new) == value => return,
            Some(new) => self.added.entry(*lines.end() + 1).or_default().push(configuration::line(name, new)),
            None => {}
        }
        self.removed.extend(lines);
    }

    /// Adds the settings that the file does not have.
    fn place_missing(&mut self, settings: &CandidateSettings) {
        let missing = settings.iter().filter(|(name, _)| !self.found.contains(*name));
        let (experiments, others): (Vec<_>, Vec<_>) = missing.partition(|(name, _)| is_experiment(name));
        let line = |(name, value): (&String, &String)| configuration::line(name, value);
        let others = others.into_iter().map(line);
        self.added.entry(self.after_top).or_default().extend(others);
        let experiments: Vec<String> = experiments.into_iter().map(line).collect();
        match self.after_experiments {
            _ if experiments.is_empty() => {}
            Some(after) => self.added.entry(after).or_default().extend(experiments),
            None => {
                let table = [String::new(), format!("[{EXPERIMENT}]")];
                self.added.entry(self.lines.len()).or_default().extend(table.into_iter().chain(experiments));
            }
        }
    }

    fn finish(mut self) -> FileChange {
        let mut lines = Vec::new();
        let is_changed = !self.removed.is_empty() || self.added.values().any(|all| !all.is_empty());
        for at in 0..=self.lines.len() {
            let added = self.added.remove(&at).unwrap_or_default();
            lines.extend(added.into_iter().map(ChangedLine::Added));
            let Some(line) = self.lines.get(at).map(|line| (*line).to_owned()) else { continue };
            // The new file ends its last line, because others may follow.
            let ends = is_changed && !self.is_ended && at + 1 == self.lines.len();
            match self.removed.contains(&at) {
                true => lines.push(ChangedLine::Removed(line)),
                false if ends => lines.extend([ChangedLine::Removed(line.clone()), ChangedLine::Added(line)]),
                false => lines.push(ChangedLine::Kept(line)),
            }
        }
        FileChange { lines, is_ended: self.is_ended }
    }
}

/// Whether a file has the setting in the table of experiments.
fn is_experiment(name: &str) -> bool {
    row(name).is_some_and(SettingRow::is_experiment)
}

fn table(text: &str) -> Result<toml::Table, String> {
    text.parse().map_err(|error| format!("the file is not TOML: {error}"))
}

/// The settings of a configuration that a search tries, each in its table.
fn tried(table: &toml::Table) -> CandidateSettings {
    let experiments = table.get(EXPERIMENT).and_then(toml::Value::as_table);
    let experiments = experiments.into_iter().flatten().filter(|(name, _)| is_experiment(name));
    let all = table.iter().filter(|(name, _)| !is_experiment(name)).chain(experiments);
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        // No setting of a search has another form.
        other => format!("{other:?}"),
    };
    let tried = all.filter(|(name, _)| TRIED.contains(&name.as_str()));
    tried.map(|(name, value)| (name.clone(), text(value))).collect()
}

/// The rest of a configuration.
fn others(table: &toml::Table) -> toml::Table {
    let mut rest = table.clone();
    rest.retain(|name, _| !TRIED.contains(&name));
    if let Some(toml::Value::Table(experiments)) = rest.get_mut(EXPERIMENT) {
        experiments.retain(|name, _| !TRIED.contains(&name));
        if experiments.is_empty() {
            rest.remove(EXPERIMENT);
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use tenfold_lab::studies::tune::candidates;
    use tenfold_testkit::folder::TempFolder;
    use tenfold_testkit::tools;

    use super::*;
    use crate::config::parse::given::GivenSettings;

    /// Configurations of users: short, without an end of the last line, and with every kind of table.
    const CONFIGURATIONS: [&str; 5] = [
        "",
        "root = \"site\"",
        "# Two settings.\nengine = \"uring\" # fast\nworkers = 3\n\n[experiment]\npool-threads = 9",
        "[experiment]\ntrigger = \"lt+lt\"\n",
        "root = \"site\"\nindex = [\n  \"a.html\",\n  \"b.html\",\n]\nsend = \"copy\"\n\n# Paths.\n[[site.redirect]]\nfrom = \"/a\"\n\
         to = \"/b\"\n\n[experiment]\nnotsent-lowat = \"1 MiB\"\ntcp-cork = true\n",
    ];

    fn settings(pairs: &[(&str, &str)]) -> CandidateSettings {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn all_candidates() -> Vec<CandidateSettings> {
        let able = tenfold_engine::MODELS.iter().collect::<Vec<_>>();
        candidates::candidates(&able, 4, 60, 1)
    }

    #[test]
    fn a_diff_replaces_removes_and_adds_settings() {
        let old = "# A site.\nroot = \"site\"\nengine = \"uring\"\nsend = \"copy\"\n\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/b\"\n";
        let best = settings(&[("engine", "poll"), ("workers", "4"), ("notsent-lowat", "64 KiB")]);
        let change = FileChange::edit(old, &best).expect("it can be edited");
        let expected = "\
--- a/tenfold.toml
+++ a/tenfold.toml
@@ -1,8 +1,11 @@
 # A site.
 root = \"site\"
-engine = \"uring\"
+engine = \"poll\"
-send = \"copy\"
+workers = 4
 
 [[site.redirect]]
 from = \"/a\"
 to = \"/b\"
+
+[experiment]
+notsent-lowat = \"64 KiB\"
";
        let file = Path::new("a/tenfold.toml");
        let text = change.unified(Some(file), file);
        assert_eq!(text, expected);
        let again = FileChange::edit(&change.text(), &best).expect("it can be edited");
        assert!(again.is_empty(), "{again:?}");
    }

    #[test]
    fn distant_changes_are_hunks_of_their_own_and_a_last_line_gets_its_end() {
        let root: String = (1..=9).map(|number| format!("# {number}\n")).collect();
        let old = format!("engine = \"uring\"\n{root}workers = 2");
        let change = FileChange::edit(&old, &settings(&[("engine", "epoll")])).expect("it can be edited");
        let file = Path::new("tenfold.toml");
        assert_eq!(
            change.unified(Some(file), file),
            "--- tenfold.toml\n+++ tenfold.toml\n@@ -1,4 +1,4 @@\n-engine = \"uring\"\n+engine = \"epoll\"\n # 1\n # 2\n # 3\n\
             @@ -8,4 +8,3 @@\n # 7\n # 8\n # 9\n-workers = 2\n\\ No newline at end of file\n"
        );
        let new = FileChange::of_new("a = 1\nb = 2\n").unified(None, file);
        assert_eq!(new, "--- /dev/null\n+++ tenfold.toml\n@@ -0,0 +1,2 @@\n+a = 1\n+b = 2\n");
    }

    #[test]
    fn settings_in_another_form_are_refused() {
        for old in [
            "experiment.trigger = \"lt+lt\"\n",
            "experiment = { notsent-lowat = \"1 MiB\", trigger = \"lt+lt\" }\n",
        ] {
            let why = FileChange::edit(old, &settings(&[("notsent-lowat", "64 KiB")]));
            assert!(why.is_err_and(|why| why.contains("lines cannot change")), "{old}");
        }
    }

    #[test]
    fn the_server_reads_every_change() {
        let folder = TempFolder::new("tune-change");
        folder.make("site");
        for old in CONFIGURATIONS {
            for best in all_candidates() {
                let text = FileChange::edit(old, &best).expect("it can be edited").text();
                let given =
                    GivenSettings { config: Some(folder.at("tenfold.toml")), ..GivenSettings::default() };
                let read = given.resolve_content(&text);
                assert!(read.is_ok(), "{best:?}: {text}: {read:?}");
                assert_eq!(tried(&table(&text).expect("it is TOML")), best, "{text}");
            }
        }
    }

    #[test]
    #[ignore = "needs patch: cargo xtask test --only unit"]
    fn patch_applies_every_change() {
        let folder = TempFolder::new("tune-patch");
        let apply = |change: &FileChange, old: Option<&str>| {
            let file = folder.at("tenfold.toml");
            let _ = std::fs::remove_file(&file);
            if let Some(old) = old {
                folder.write("tenfold.toml", old);
            }
            let diff = folder.write("tenfold.diff", change.unified(old.map(|_| file.as_path()), &file));
            let mut patch = Command::new(tools::program("patch"));
            let output = patch.args(["--batch", "--fuzz=0"]).arg(&file).arg(&diff).output().expect("it runs");
            assert!(output.status.success(), "{change:?}: {}", String::from_utf8_lossy(&output.stdout));
            assert_eq!(std::fs::read_to_string(&file).expect("it is there"), change.text());
        };
        apply(&FileChange::of_new("root = \"site\"\nengine = \"uring\"\n"), None);
        for old in CONFIGURATIONS {
            for best in all_candidates() {
                let change = FileChange::edit(old, &best).expect("it can be edited");
                if !change.is_empty() {
                    apply(&change, Some(old));
                }
            }
        }
    }
}
