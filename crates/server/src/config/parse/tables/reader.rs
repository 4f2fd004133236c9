//! Reads tables key by key, by the definitions of the keys. Each problem has its place in the file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use tenfold_site::Policy;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::parse::counterparts::{Counterpart, counterpart};
use crate::config::parse::units::meant;

/// One key of a table that is read into a `T`.
pub(crate) struct TableKey<T: 'static> {
    /// The name, as the file has it.
    pub(crate) name: &'static str,
    /// The shape of the values, for editors.
    pub(crate) shape: Shape,
    /// The meaning, in one line.
    pub(crate) about: &'static str,
    /// Reads the value.
    pub(crate) set: fn(&mut T, &GivenValue<'_>, &mut TableReader<'_>) -> ReadResult,
}

/// The keys of a table: each with its name and shape, its meaning, and its field.
macro_rules! keys {
    ($($name:literal $shape:expr; $about:literal; |$into:ident, $given:ident, $reader:pat_param| $set:expr;)*) => {
        &[$($crate::config::parse::tables::reader::TableKey {
            name: $name,
            shape: $shape,
            about: $about,
            set: |$into, $given, $reader| {
                $set;
                Ok(())
            },
        }),*]
    };
}
pub(super) use keys;

/// All keys of a table.
pub(crate) struct TableKeys<T: 'static> {
    /// The subject of the table in messages, such as `a host`.
    pub(crate) of: &'static str,
    pub(crate) own: &'static [TableKey<T>],
    /// The policy in the table, and the keys of the policy, if the table has a policy.
    pub(crate) policy: Option<(PolicyOf<T>, &'static [TableKey<Policy>])>,
}

/// The place of a policy.
type PolicyOf<T> = fn(&mut T) -> &mut Policy;

/// The shape of a key's values.
pub(crate) enum Shape {
    /// A text, with an example.
    Text(&'static str),
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Switch,
    /// Only `false`.
    Off,
    /// A number within these bounds.
    Number(u64, u64),
    /// A value of this shape, or a list of such values.
    Many(&'static Shape),
    /// Values of this shape by names that the user chooses, with an example of a name.
    Map(&'static str, &'static Shape),
    /// One of several shapes.
    Either(&'static [Shape]),
    /// A table.
    Table(&'static dyn Keyed),
    /// An array of tables, each after `[[...]]`.
    Tables(&'static dyn Keyed),
}

/// A table with keys, independent of its target type.
pub(crate) trait Keyed: Sync {
    /// Name, shape and meaning of each key.
    fn keys(&self) -> Vec<(&'static str, &'static Shape, &'static str)>;
}

impl<T> Keyed for TableKeys<T> {
    fn keys(&self) -> Vec<(&'static str, &'static Shape, &'static str)> {
        let own = self.own.iter().map(|key| (key.name, &key.shape, key.about));
        let shared =
            self.policy.iter().flat_map(|(_, keys)| keys.iter().map(|key| (key.name, &key.shape, key.about)));
        own.chain(shared).collect()
    }
}

/// The reason why a value is not legal.
#[derive(Debug)]
pub(crate) enum BadValue {
    /// The place of the value, and the remedy.
    Wrong { place: Range<usize>, mend: String },
    /// The value is a table, whose reader reported the problems.
    Reported,
}

/// The result of reading a value into a table.
pub(crate) type ReadResult = Result<(), BadValue>;

/// The context in which tables are read.
pub(crate) struct TableReader<'a> {
    /// The base folder of relative paths.
    pub(crate) base: &'a Path,
    /// Takes a problem: its message, its bytes in the file, and the remedy.
    pub(crate) complain: &'a mut dyn FnMut(String, Range<usize>, String),
    /// Whether a name is that of a setting, which the file has above all tables.
    pub(crate) is_setting: fn(&str) -> bool,
}

impl<T> TableKeys<T> {
    /// Reads a table into `into`. Returns whether it is legal.
    pub(crate) fn read(&self, table: &DeTable<'_>, into: &mut T, reader: &mut TableReader<'_>) -> bool {
        let mut legal = true;
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            let known = self.read_entry(name, value, into, reader);
            if known.is_none() {
                let what = format!("there is no key {name:?} in {}", self.of);
                (reader.complain)(what, key.span(), self.mend(name, reader.is_setting));
            }
            legal &= known == Some(true);
        }
        legal
    }

    /// Reads the entry called `name`. Returns whether its value is legal; `None` if the table has no such key.
    pub(crate) fn read_entry(
        &self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        into: &mut T,
        reader: &mut TableReader<'_>,
    ) -> Option<bool> {
        let result = self.set(name, into, &GivenValue { value }, reader)?;
        let legal = result.is_ok();
        if let Err(BadValue::Wrong { place, mend }) = result {
            (reader.complain)(format!("invalid value of {name}"), place, mend);
        }
        Some(legal)
    }

    fn set(
        &self,
        name: &str,
        into: &mut T,
        given: &GivenValue<'_>,
        reader: &mut TableReader<'_>,
    ) -> Option<ReadResult> {
        if let Some(key) = self.own.iter().find(|key| key.name == name) {
            return Some((key.set)(into, given, reader));
        }
        let (policy, keys) = self.policy?;
        let key = keys.iter().find(|key| key.name == name)?;
        Some((key.set)(policy(into), given, reader))
    }

    fn mend(&self, name: &str, is_setting: fn(&str) -> bool) -> String {
        let all: Vec<_> = self.keys().into_iter().map(|(name, ..)| name).collect();
        match (meant(name, all.iter().copied()), counterpart(name)) {
            // A setting in the wrong place resembles other keys, such as `listen` and `listing`.
            _ if is_setting(name) => {
                format!(
                    "{name} is a setting of the whole server, not of a host or a path: write it above all tables"
                )
            }
            (Some(near), _) => format!("did you mean {near}?"),
            (None, Some(Counterpart::Setting(key) | Counterpart::Key(key))) if all.contains(&key) => {
                format!("did you mean {key}?")
            }
            (None, Some(Counterpart::Setting(setting))) => {
                format!("the setting {setting} does this; write it above all tables")
            }
            (None, Some(Counterpart::Advice(advice))) => advice.to_owned(),
            (None, _) => format!("the keys of {} are {}{}", self.of, all.join(", "), self.example()),
        }
    }

    /// An example of the first key, if the user chooses the names.
    fn example(&self) -> String {
        match self.own {
            [TableKey { name, shape: Shape::Map(example, _), .. }, ..] => format!(", as in {name}.{example}"),
            _ => String::new(),
        }
    }
}

/// A value of the file.
#[derive(Clone, Copy)]
pub(crate) struct GivenValue<'a> {
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> GivenValue<'a> {
    /// Reports a problem with this value.
    pub(crate) fn wrong(&self, mend: impl Into<String>) -> BadValue {
        BadValue::Wrong { place: self.value.span(), mend: mend.into() }
    }

    pub(crate) fn value(&self) -> &'a DeValue<'a> {
        self.value.get_ref()
    }

    /// Reads a text.
    pub(crate) fn text(&self) -> Result<&'a str, BadValue> {
        match self.value() {
            DeValue::String(text) => Ok(text),
            other => Err(self.wrong(format!("a text in quotes is needed, not a TOML {}", other.type_str()))),
        }
    }

    /// Reads a text with `read`.
    pub(crate) fn parse<R>(&self, read: impl FnOnce(&str) -> Result<R, String>) -> Result<R, BadValue> {
        read(self.text()?).map_err(|mend| self.wrong(mend))
    }

    /// Reads a path; a relative path starts at the folder of the configuration file.
    pub(crate) fn path(&self, reader: &TableReader<'_>) -> Result<PathBuf, BadValue> {
        match self.text()? {
            "" => Err(self.wrong("a path is missing")),
            path => Ok(reader.base.join(path)),
        }
    }

    /// Whether the value is `false`.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.value(), DeValue::Boolean(false))
    }

    /// Reads `true` or `false`.
    pub(crate) fn switch(&self) -> Result<bool, BadValue> {
        match self.value() {
            DeValue::Boolean(value) => Ok(*value),
            other => Err(self.wrong(format!("true or false is needed, not a TOML {}", other.type_str()))),
        }
    }

    /// Reads a whole number within these bounds.
    pub(crate) fn number(&self, least: u64, most: u64) -> Result<u64, BadValue> {
        let number = match self.value() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.wrong(format!("a number from {least} to {most} is needed")))
    }

    /// Reads a table.
    pub(crate) fn table(&self) -> Result<&'a DeTable<'a>, BadValue> {
        match self.value() {
            DeValue::Table(table) => Ok(table),
            other => Err(self.wrong(format!("a table is needed, not a TOML {}", other.type_str()))),
        }
    }

    /// The value of the key `name`, if this value is a table with that key; otherwise this value.
    pub(crate) fn at(&self, name: &str) -> GivenValue<'a> {
        let of_key = self.value().as_table().and_then(|table| table.get(name));
        of_key.map_or(*self, |value| GivenValue { value })
    }

    /// Each value of a list, or a single value.
    pub(crate) fn each(&self) -> Vec<GivenValue<'a>> {
        match self.value() {
            DeValue::Array(values) => values.iter().map(|value| GivenValue { value }).collect(),
            _ => vec![*self],
        }
    }

    /// Reads each text of a list, or one text, with `read`.
    pub(crate) fn parse_each<R>(
        &self,
        mut read: impl FnMut(&str) -> Result<R, String>,
    ) -> Result<Vec<R>, BadValue> {
        self.each().into_iter().map(|one| one.parse(&mut read)).collect()
    }

    /// Name and value of each entry of a table, in the order of the file.
    pub(crate) fn entries(&self) -> Result<Vec<(EntryName<'a>, GivenValue<'a>)>, BadValue> {
        let mut entries: Vec<_> = self.table()?.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        Ok(entries.into_iter().map(|(key, value)| (EntryName(key), GivenValue { value })).collect())
    }

    /// Reads each table of a list, or a single table, by `keys`. Returns the tables without a problem.
    pub(crate) fn read_each<T: Default>(
        &self,
        keys: &TableKeys<T>,
        reader: &mut TableReader<'_>,
        mut take: impl FnMut(T, &GivenValue<'a>, &mut TableReader<'_>) -> ReadResult,
    ) -> ReadResult {
        for one in self.each() {
            let mut into = T::default();
            if keys.read(one.table()?, &mut into, reader) {
                take(into, &one, reader)?;
            }
        }
        Ok(())
    }
}

pub(crate) struct EntryName<'a>(&'a Spanned<std::borrow::Cow<'a, str>>);

impl EntryName<'_> {
    pub(crate) fn text(&self) -> &str {
        self.0.get_ref()
    }

    /// Reports a problem with this name.
    pub(crate) fn wrong(&self, mend: impl Into<String>) -> BadValue {
        BadValue::Wrong { place: self.0.span(), mend: mend.into() }
    }
}
