//! Arbitrary text as a configuration: the parser accepts it or reports problems. This is also a fuzz target:
//! `cargo xtask fuzz --minutes 10 configuration`.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Text around values, and values that are valid for some setting.
const PIECES: [&str; 40] = [
    "\n",
    "\n",
    "\n",
    " = ",
    " = ",
    " = ",
    "=",
    "\"",
    "\"off\"",
    "\"10s\"",
    "\"64 KiB\"",
    "\"/a\"",
    "\"/a/*\"",
    "100",
    "0",
    "-1",
    "9223372036854775807",
    "1.5",
    "true",
    "false",
    "[",
    "]",
    "[[host]]\n",
    "[[path]]\n",
    "[host]\n",
    "{",
    "}",
    ",",
    ".",
    "#",
    "[]",
    "[\"a\", \"b\"]",
    "{ a = 1 }",
    "\u{e9}",
    "\u{1f600}",
    "'''",
    "\"\"\"",
    "\\u0000",
    "\r\n",
    "\t",
];

/// Makes a text of pieces that is often nearly a configuration, and sometimes a legal one.
fn assemble(choices: &[u8]) -> String {
    let names: Vec<&str> =
        rows().map(|row| row.name).chain(["names", "name", "match", "root", "rules"]).collect();
    let piece = |&choice: &u8| match choice {
        0..128 => PIECES[usize::from(choice) % PIECES.len()],
        128.. => names[usize::from(choice - 128) % names.len()],
    };
    choices.iter().map(piece).collect()
}

/// Makes a line for each pair of bytes: a setting with a value that is usually legal.
fn line(choices: &[u8]) -> String {
    const VALUES: [&str; 12] = [
        "1",
        "100",
        "\"off\"",
        "\"on\"",
        "true",
        "\"10s\"",
        "\"64 KiB\"",
        "\"a\"",
        "\"auto\"",
        "\"\"",
        "[]",
        "\"/x\"",
    ];
    let rows: Vec<_> = rows().collect();
    let one = |pair: &[u8]| {
        let (row, value) =
            (rows[usize::from(pair[0]) % rows.len()], VALUES[usize::from(pair[1]) % VALUES.len()]);
        format!("{} = {value}\n", row.name)
    };
    choices.chunks_exact(2).map(one).collect()
}

#[test]
fn any_text_is_read_or_refused_in_words() {
    let accepted = AtomicUsize::new(0);
    let check = |text: &str| match from_file(text) {
        Ok(_) => {
            accepted.fetch_add(1, Ordering::Relaxed);
        }
        Err(problems) => {
            let said: Vec<String> = problems.iter().map(Problem::to_string).collect();
            assert!(said.iter().all(|words| !words.is_empty()), "{text:?}");
        }
    };
    bolero::check!().with_iterations(2000).with_max_len(48).with_type::<(u8, Vec<u8>)>().for_each(
        |(form, choices)| match form % 4 {
            0 => check(&String::from_utf8_lossy(choices)),
            1 => check(&assemble(choices)),
            _ => check(&line(choices)),
        },
    );
    // Without accepted texts, the test would prove nothing.
    assert!(accepted.into_inner() > 20, "hardly any configuration was accepted");
}
