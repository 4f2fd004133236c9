//! The output of a connection, compared with a model: a queue of single bytes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::IoSlice;
use std::sync::{Arc, Mutex};

use tenfold_http::{Memory, OpenFile, Out, Part};

/// An operation on an [`Out`].
#[derive(Debug, bolero::TypeGenerator)]
enum Operation {
    Stage(u8),
    Shared(u8, u8),
    File(u8, u8),
    Observe,
    Advance(u16),
    Pop,
    PopFile(u8),
    Clear,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ModelItem {
    Memory(u8),
    File(u8),
    Observer(usize),
}

/// An [`Out`] and its model.
struct Pair {
    out: Out,
    model: VecDeque<ModelItem>,
    /// The reports that each observer got, and those that it should have got.
    reports: Arc<Mutex<Vec<Option<u64>>>>,
    expected: Vec<Option<u64>>,
    next: u8,
    file: Arc<OpenFile>,
}

impl Pair {
    fn new(file: Arc<OpenFile>) -> Pair {
        Pair {
            out: Out::new(),
            model: VecDeque::new(),
            reports: Arc::default(),
            expected: Vec::new(),
            next: 0,
            file,
        }
    }

    fn fresh(&mut self, count: u8) -> Vec<u8> {
        (0..count)
            .map(|_| {
                self.next = self.next.wrapping_add(1);
                self.next
            })
            .collect()
    }

    fn unsent(&self) -> u64 {
        self.model.iter().filter(|item| !matches!(item, ModelItem::Observer(_))).count() as u64
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Stage(count) => {
                let bytes = self.fresh(count);
                self.out.stage(&bytes);
                self.model.extend(bytes.into_iter().map(ModelItem::Memory));
            }
            Operation::Shared(skip, count) => {
                let bytes = self.fresh(skip.saturating_add(count));
                let range = skip as usize..bytes.len();
                self.model.extend(bytes[range.clone()].iter().copied().map(ModelItem::Memory));
                self.out.push(Part::Shared(bytes.into(), range));
            }
            Operation::File(begin, count) => {
                let range = u64::from(begin)..u64::from(begin) + u64::from(count);
                self.model.extend(range.clone().map(|offset| ModelItem::File((offset % 251) as u8)));
                self.out.push(Part::File(Arc::clone(&self.file), range));
            }
            Operation::Observe => self.observe(),
            Operation::Advance(count) => {
                let count = self.unsent().min(u64::from(count));
                self.out.advance(count);
                self.leave(count);
            }
            Operation::Pop => match self.out.pop_memory(Vec::new()) {
                Some(Memory::Staged(bytes, from)) => self.popped(&bytes[from..]),
                Some(Memory::Shared(bytes, range)) => self.popped(&bytes[range]),
                None => assert!(!matches!(self.model.front(), Some(ModelItem::Memory(_)))),
            },
            Operation::PopFile(most) => {
                let there = self.out.file().map_or(0, |(_, range, _)| range.end - range.start);
                let count = there.min(u64::from(most));
                if count > 0 {
                    self.out.pop_bytes(count);
                    // Observers after this file are not called yet.
                    let front = self.model.drain(..count as usize);
                    assert!(front.into_iter().all(|item| matches!(item, ModelItem::File(_))));
                }
            }
            Operation::Clear => {
                self.out.clear(0);
                let mut unsent = 0;
                for item in self.model.drain(..) {
                    unsent += 1;
                    if let ModelItem::Observer(number) = item {
                        self.expected[number] = Some(unsent - 1);
                        unsent = 0;
                    }
                }
            }
        }
    }

    /// Compares memory that was taken from the output with the front of the model.
    fn popped(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty());
        let front: Vec<ModelItem> = self.model.drain(..bytes.len()).collect();
        assert!(front.into_iter().eq(bytes.iter().copied().map(ModelItem::Memory)));
    }

    fn observe(&mut self) {
        let number = self.expected.len();
        // An observer after another that still waits also waits.
        self.expected.push(if self.model.is_empty() { Some(0) } else { None });
        if !self.model.is_empty() {
            self.model.push_back(ModelItem::Observer(number));
        }
        self.reports.lock().expect("no panic").push(None);
        let reports = Arc::clone(&self.reports);
        self.out.observe(Box::new(move |report| {
            let before = reports.lock().expect("no panic")[number].replace(report.unsent);
            assert_eq!(before, None, "an observer was called twice");
        }));
    }

    /// Removes `count` bytes from the model, and the observers after each of them.
    fn leave(&mut self, mut count: u64) {
        while let Some(&item) = self.model.front() {
            match item {
                ModelItem::Observer(number) => self.expected[number] = Some(0),
                _ if count == 0 => return,
                _ => count -= 1,
            }
            self.model.pop_front();
        }
    }

    /// Compares the results of all queries.
    fn compare(&self) {
        assert_eq!(*self.reports.lock().expect("no panic"), self.expected);
        assert_eq!(self.out.len(), self.unsent());
        assert_eq!(self.out.is_empty(), self.model.is_empty());
        let bytes: Vec<ModelItem> =
            self.model.iter().copied().filter(|item| !matches!(item, ModelItem::Observer(_))).collect();
        for room in [1, 3, 64] {
            let mut slices = vec![IoSlice::new(&[]); room];
            let (filled, more) = self.out.memory(&mut slices);
            let memory: Vec<ModelItem> = slices[..filled]
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .map(ModelItem::Memory)
                .collect();
            assert!(bytes.starts_with(&memory));
            assert_eq!(more, memory.len() < bytes.len());
            let file_follows = matches!(bytes.get(memory.len()), Some(ModelItem::File(_)));
            assert!(!more || file_follows || filled == room, "memory stops before it has to");
        }
        match self.out.file() {
            Some((_, range, more)) => {
                let length = (range.end - range.start) as usize;
                assert!(
                    bytes[..length]
                        .iter()
                        .copied()
                        .eq(range.map(|offset| ModelItem::File((offset % 251) as u8)))
                );
                assert_eq!(more, length < bytes.len());
            }
            None => assert!(!matches!(self.model.front(), Some(ModelItem::File(_)))),
        }
        if let Some(staged) = self.out.staged_alone() {
            assert!(staged.iter().copied().map(ModelItem::Memory).eq(bytes));
        }
    }
}

#[test]
fn output_leaves_in_the_order_in_which_it_came() {
    let file = Arc::new(OpenFile::new(File::open("/dev/null").expect("/dev/null opens"), 1000));
    bolero::check!().with_iterations(3000).with_max_len(256).with_type::<Vec<Operation>>().for_each(
        |operations| {
            let mut pair = Pair::new(Arc::clone(&file));
            for operation in operations {
                pair.apply(operation);
                pair.compare();
            }
            let (reports, count) = (Arc::clone(&pair.reports), pair.expected.len());
            drop(pair);
            let reports = reports.lock().expect("no panic");
            assert!(
                reports.len() == count && reports.iter().all(Option::is_some),
                "an observer was not called"
            );
        },
    );
}
