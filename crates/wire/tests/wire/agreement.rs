//! Agreement with libnghttp2 and python-hpack on pseudo-random lists, in both directions: their encoders with our
//! decoder, and our encoder with their decoders. `TENFOLD_TEST_LISTS=1000000` compares a million lists.

use std::env;
use std::fs::create_dir_all;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use tenfold_wire::hpack::{Block, Constants, Decoder, Encoder};

use crate::random::Random;
use crate::{Field, decode};

/// Lists without the variable.
const LISTS: usize = 3000;

/// Lists on one connection.
const PER_CONNECTION: usize = 40;

/// A list of fields on a connection, and the changes before it.
struct Step {
    is_new: bool,
    limit: Option<u16>,
    fields: Vec<Field>,
    block: Vec<u8>,
}

/// The lists of one seed, encoded by our encoder.
struct Steps {
    random: Random,
    encoder: Encoder,
    constants: Constants,
    common: Vec<Field>,
    number: usize,
}

impl Steps {
    fn new() -> Steps {
        let encoder = Encoder::new();
        Steps { random: Random::new(39), encoder, constants: Constants::default(), common: vec![], number: 0 }
    }

    fn next(&mut self) -> Step {
        let is_new = self.number.is_multiple_of(PER_CONNECTION);
        self.number += 1;
        if is_new {
            self.encoder = Encoder::new();
            self.common = self.random.fields();
            self.constants = Constants::new(self.common.iter().map(|(name, value)| (&name[..], &value[..])));
        }
        let limit = (self.random.below(20) == 0).then(|| self.random.below(5000) as u16);
        if let Some(limit) = limit {
            self.encoder.set_limit(limit.into());
        }
        let mut fields = self.random.fields();
        if self.random.below(2) == 0 {
            fields.extend(self.common.iter().cloned());
            fields.sort_by_key(|(name, _)| !name.starts_with(b":"));
        }
        let mut block = Block::new();
        fields.iter().for_each(|(name, value)| block.field(&self.constants, name, value));
        let mut bytes = Vec::new();
        self.encoder.write(&self.constants, &block, &mut bytes);
        Step { is_new, limit, fields, block: bytes }
    }
}

fn send_bytes(to: &mut impl Write, bytes: &[u8]) {
    to.write_all(&(bytes.len() as u32).to_le_bytes()).expect("the helper reads");
    to.write_all(bytes).expect("the helper reads");
}

fn receive_number(from: &mut impl Read) -> usize {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes).expect("the helper answers");
    u32::from_le_bytes(bytes) as usize
}

fn receive_bytes(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = vec![0; receive_number(from)];
    from.read_exact(&mut bytes).expect("the helper answers");
    bytes
}

/// Sends the step to the helper: N, S and a size, D and a block, E and fields.
fn send(to: &mut impl Write, step: &Step) {
    if step.is_new {
        to.write_all(b"N").expect("the helper reads");
    }
    if let Some(limit) = step.limit {
        to.write_all(b"S").expect("the helper reads");
        to.write_all(&u32::from(limit).to_le_bytes()).expect("the helper reads");
    }
    to.write_all(b"D").expect("the helper reads");
    send_bytes(to, &step.block);
    to.write_all(b"E").expect("the helper reads");
    to.write_all(&(step.fields.len() as u32).to_le_bytes()).expect("the helper reads");
    for (name, value) in &step.fields {
        send_bytes(to, name);
        send_bytes(to, value);
    }
}

/// Compares the answers of the helper: the fields of our block, and its block for our decoder.
fn compare(mut helper: Child) {
    let lists = env::var("TENFOLD_TEST_LISTS").ok().map_or(LISTS, |count| count.parse().expect("a count"));
    let mut to = BufWriter::new(helper.stdin.take().expect("its input is a pipe"));
    let mut from = BufReader::new(helper.stdout.take().expect("its output is a pipe"));
    // Both sides would wait for each other if one thread wrote and read.
    let writer = thread::spawn(move || {
        let mut steps = Steps::new();
        (0..lists).for_each(|_| send(&mut to, &steps.next()));
    });
    let mut steps = Steps::new();
    let mut decoder = Decoder::new();
    for number in 0..lists {
        let step = steps.next();
        if step.is_new {
            decoder = Decoder::new();
        }
        if let Some(limit) = step.limit {
            decoder.set_limit(limit);
        }
        let count = receive_number(&mut from);
        let mut theirs: Vec<Field> =
            (0..count).map(|_| (receive_bytes(&mut from), receive_bytes(&mut from))).collect();
        let block = receive_bytes(&mut from);
        assert_eq!(decode(&mut decoder, &block).as_ref(), Ok(&step.fields), "list {number}");
        let mut ours = step.fields;
        // Constants change the order.
        ours.sort();
        theirs.sort();
        assert_eq!(theirs, ours, "list {number}");
    }
    writer.join().expect("the writer does not fail");
    assert!(helper.wait().expect("the helper ends").success());
    println!("{lists} lists");
}

fn start(command: &mut Command) -> Child {
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    started.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

fn source(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/wire/agreement", name].iter().collect()
}

#[test]
#[ignore = "needs gcc and libnghttp2-dev: cargo xtask test --only unit"]
fn libnghttp2_agrees() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    create_dir_all(&folder).expect("the folder of tests can be made");
    let program = folder.join("nghttp2");
    let built = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, &source("nghttp2.c")])
        .arg("-lnghttp2")
        .status();
    assert!(built.expect("gcc is installed").success());
    compare(start(&mut Command::new(program)));
}

#[test]
#[ignore = "needs python3-hpack: cargo xtask test --only unit"]
fn python_hpack_agrees() {
    // The interpreter of the distribution has its packages.
    compare(start(Command::new("/usr/bin/python3").arg(source("reply.py"))));
}
