//! The client's side, for tests: bytes in and out, and no socket.

use super::record::{self, Alert, CONTENT_BYTES, NOTE_ASKS, RecordKey, RecordKind};

/// A client's state of a connection.
#[derive(Clone, Debug)]
pub struct FramedClient {
    random: u64,
    /// Whether the hello was asked for, and whether the first note was.
    begun: bool,
    asked: bool,
    sending: RecordKey,
    /// Known with the server's hello.
    receiving: Option<RecordKey>,
    /// Bytes of an incomplete record.
    input: Vec<u8>,
    /// Records other than plaintext.
    pub received: ReceivedRecords,
}

/// Records other than plaintext that the server has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedRecords {
    /// Its hello.
    pub hello: bool,
    /// Records without plaintext, its hello and its end not counted.
    pub notes: usize,
    /// The number of its alert.
    pub alert: Option<u8>,
    /// Its closing record.
    pub close: bool,
}

impl FramedClient {
    /// A client whose hello has this number.
    pub fn new(random: u64) -> FramedClient {
        let sending = RecordKey::of_client(random);
        let (begun, asked, receiving, input, received) =
            (false, false, None, Vec::new(), ReceivedRecords::default());
        FramedClient { random, begun, asked, sending, receiving, input, received }
    }

    /// The hello, if it was not asked for before.
    pub fn hello(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            RecordKey::PUBLIC.clone().seal(RecordKind::Hello, &record::hello(self.random), &mut wire);
        }
        wire
    }

    /// Seals `plaintext`. The first bytes are behind the hello, if that was not asked for before, and a note.
    pub fn seal(&mut self, plaintext: &[u8]) -> Vec<u8> {
        let mut wire = self.hello();
        if !std::mem::replace(&mut self.asked, true) {
            wire.extend(self.ask());
        }
        for content in plaintext.chunks(CONTENT_BYTES) {
            self.sending.seal(RecordKind::Data, content, &mut wire);
        }
        wire
    }

    /// A record without plaintext, which the server answers.
    pub fn ask(&mut self) -> Vec<u8> {
        self.record(RecordKind::Note, NOTE_ASKS)
    }

    /// The closing record.
    pub fn close(&mut self) -> Vec<u8> {
        self.record(RecordKind::Close, &[])
    }

    /// One record, behind the hello if that was not asked for before.
    pub fn record(&mut self, kind: RecordKind, content: &[u8]) -> Vec<u8> {
        let mut wire = self.hello();
        self.sending.seal(kind, content, &mut wire);
        wire
    }

    /// Opens received bytes and appends the plaintext to `to`.
    ///
    /// # Errors
    /// The server broke the rules.
    pub fn open(&mut self, wire: &[u8], to: &mut Vec<u8>) -> Result<(), Alert> {
        self.input.extend_from_slice(wire);
        let mut at = 0;
        while let Some(length) = record::length(&self.input[at..])? {
            let whole = &mut self.input[at..at + length];
            let (kind, content) = match &mut self.receiving {
                Some(key) => key.open(whole)?,
                None => RecordKey::PUBLIC.clone().open(whole)?,
            };
            let content = &whole[content];
            match kind {
                _ if self.received.close || self.received.alert.is_some() => return Err(Alert::Unexpected),
                RecordKind::Alert => self.received.alert = content.first().copied(),
                RecordKind::Hello if self.receiving.is_none() => {
                    let server = record::random_of(content).ok_or(Alert::BadHello)?;
                    self.receiving = Some(RecordKey::of_server(self.random, server));
                    self.received.hello = true;
                }
                RecordKind::Hello => return Err(Alert::Unexpected),
                _ if self.receiving.is_none() => return Err(Alert::Unexpected),
                RecordKind::Data => to.extend_from_slice(content),
                RecordKind::Note => self.received.notes += 1,
                RecordKind::Close => self.received.close = true,
            }
            at += length;
        }
        self.input.drain(..at);
        Ok(())
    }
}
