//! Prefetching: a loop sends file bytes that are in memory. A thread first reads other bytes, so that the loop does not
//! wait for a disk.
//!
//! Before each piece, the loop checks its last page, and at the start of a range its first page as well. If the file
//! system cannot answer, a thread reads the first piece of each open file. A page in the middle may be missing. Then
//! the send is slow and marks the file as cold: a thread reads each piece of a cold file, until it finds the pieces in
//! memory again.
//!
//! A file of one piece counts as in memory for a second after a check: for a response of 64 KB, two checks took a sixth
//! of its time.
//!
//! System calls of a piece: preadv2 of one byte. If it is not in memory: futex, and on the thread pread and the write
//! to an eventfd that wakes the loop.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use tenfold_http::{IoError, OpenFile, clock};
use tenfold_sys::clock::monotonic;
use tenfold_sys::file::is_cached;

use crate::dispatch::offload::{OffloadPool, OffloadResult};
use crate::plan::Plan;

/// Threads of a loop that read.
const READERS: usize = 2;
/// The pieces that may wait for a thread, one for each connection. Beyond this bound, the loop reads [`BYTES`]
/// itself.
const READS: usize = 1024;
/// The bytes of one read of a thread.
const BYTES: usize = 64 * 1024;
/// The time in nanoseconds after which a thread stops reading a piece, and after which a send counts as slow. A piece
/// in memory takes a tenth.
const SLOW: u64 = 5_000_000;
/// The smallest page of a machine. With larger pages, one page may be checked twice.
const PAGE: u64 = 4096;

/// Milliseconds for which a file of one piece counts as in memory after it was found there.
const RESIDENT_FOR: u64 = 1000;

/// The threads of a loop. They start with the first piece that is not in memory.
pub(crate) fn readers(plan: &Plan) -> OffloadPool {
    OffloadPool::new(plan, READERS, READS)
}

/// The pieces of files that one connection sends.
pub(crate) struct Prefetch {
    readers: OffloadPool,
    /// A read on a thread; it gives the number of bytes.
    reading: Option<OffloadResult<io::Result<usize>>>,
    /// The last piece that was found in memory.
    found: Range<u64>,
    /// Whether [`Prefetch::clear`] has anything to do.
    pub(super) is_used: bool,
}

impl Prefetch {
    pub(crate) fn new(readers: OffloadPool) -> Prefetch {
        Prefetch { readers, reading: None, found: 0..0, is_used: false }
    }

    /// Drops the state of the connection, and its read if that has not begun.
    pub(super) fn clear(&mut self) {
        (self.reading, self.found, self.is_used) = (None, 0..0, false);
    }

    /// Waits until the first bytes of `piece` are in memory. Returns their number.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        file: &Arc<OpenFile>,
        piece: Range<u64>,
    ) -> Poll<Result<usize, IoError>> {
        let count = (piece.end - piece.start) as usize;
        self.is_used = true;
        let reading = match &mut self.reading {
            Some(reading) => reading,
            None => {
                if !file.cold.load(Relaxed) && self.finds(file, &piece) {
                    self.found = piece;
                    return Poll::Ready(Ok(count));
                }
                let cold = file.clone();
                match self.readers.run_awaited(move || read(&cold, &piece)) {
                    Ok(reading) => self.reading.insert(reading),
                    // As in a layer, a bounded read on the loop is better than a closed connection.
                    Err(_) => return Poll::Ready(Ok(count.min(BYTES))),
                }
            }
        };
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        Poll::Ready(match read {
            Some(Ok(read @ 1..)) => Ok(count.min(read)),
            Some(Err(error)) => Err(IoError::System(error.raw_os_error().unwrap_or(0))),
            // The file has become shorter, which the sender notices, or the thread panicked.
            Some(Ok(0)) | None => Ok(count.min(BYTES)),
        })
    }

    /// Whether the first and last pages of `piece` are in memory.
    fn finds(&self, file: &OpenFile, piece: &Range<u64>) -> bool {
        let now = clock::now().0;
        if now < file.resident_until.load(Relaxed) {
            return true;
        }
        let last = piece.end.saturating_sub(1);
        let continues = self.found.start < piece.start && piece.start <= self.found.end;
        let is_one_page = piece.start / PAGE == last / PAGE;
        // A check starts a read of the page, so the first page comes first.
        let asked = [Some(piece.start).filter(|_| !continues && !is_one_page), Some(last)];
        let found = asked
            .into_iter()
            .flatten()
            .all(|offset| is_cached(&file.file, offset).unwrap_or_else(|| file.quick.load(Relaxed)));
        if found && *piece == (0..file.size) {
            file.resident_until.store(now + RESIDENT_FOR, Relaxed);
        }
        found
    }
}

/// Reads `piece` of `file` until it is late, and notes whether the file is cold. Returns the number of bytes; 0 if the
/// file ends before.
fn read(file: &OpenFile, piece: &Range<u64>) -> io::Result<usize> {
    let (begun, mut buffer) = (monotonic(), vec![0; BYTES]);
    let (mut at, mut is_quick) = (piece.start, true);
    while is_quick && at < piece.end {
        let wanted = (piece.end - at).min(BYTES as u64) as usize;
        match file.file.read_at(&mut buffer[..wanted], at) {
            Ok(0) => break,
            Ok(count) => at += count as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        is_quick = monotonic() - begun < SLOW;
    }
    file.cold.store(!is_quick, Relaxed);
    file.quick.fetch_or(is_quick, Relaxed);
    Ok((at - piece.start) as usize)
}

/// Makes a call that sends from `file`. A slow call marks the file as cold.
#[inline]
pub(super) fn watch<T>(file: &OpenFile, send: impl FnOnce() -> T) -> T {
    let begun = monotonic();
    let sent = send();
    if monotonic() - begun >= SLOW {
        file.cold.store(true, Relaxed);
    }
    sent
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::mpsc::channel;
    use std::task::Waker;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use tenfold_http::Instant;

    use crate::plan::Bounds;
    use crate::plan::choice::{Engine, Sender};

    const SIZE: u64 = 300_000;

    /// A file that is in memory, or that a thread has to read because it is marked as cold.
    fn file(cold: bool) -> Arc<OpenFile> {
        let path = std::env::temp_dir().join(format!("tenfold-prefetch-{}", std::process::id()));
        let path = path.with_extension(format!("{:?}", thread::current().id()));
        std::fs::write(&path, vec![b'a'; SIZE as usize]).expect("a folder for temporary files");
        let file = Arc::new(OpenFile::new(File::open(&path).expect("it was just written"), SIZE));
        std::fs::remove_file(&path).expect("it is ours");
        file.cold.store(cold, Relaxed);
        file.quick.store(!cold, Relaxed);
        file
    }

    fn pool() -> OffloadPool {
        let plan = Plan::new(Engine::Epoll, None, Some(1), Sender::Auto, None, Bounds::default());
        OffloadPool::new(&plan.expect("the plan is legal"), 1, 1)
    }

    fn poll(prefetch: &mut Prefetch, file: &Arc<OpenFile>, most: usize) -> Poll<Result<usize, IoError>> {
        prefetch.poll(&mut Context::from_waker(Waker::noop()), file, 0..SIZE.min(most as u64))
    }

    fn wait(prefetch: &mut Prefetch, file: &Arc<OpenFile>, most: usize) -> Result<usize, IoError> {
        for _ in 0..20_000 {
            match poll(prefetch, file, most) {
                Poll::Ready(found) => return found,
                // The test has no waker.
                Poll::Pending => thread::sleep(Duration::from_millis(1)),
            }
        }
        panic!("no thread reads");
    }

    #[test]
    fn a_cold_file_waits_for_its_thread_and_a_file_in_memory_for_nothing() {
        let (pool, (open, gate)) = (pool(), channel::<()>());
        let disk = pool.run(move || gate.recv().expect("it is opened")).expect("there is room");
        let (mut slow, mut quick) = (Prefetch::new(pool.clone()), Prefetch::new(pool.clone()));
        let (cold, warm) = (file(true), file(false));
        while poll(&mut slow, &cold, 200_000) != Poll::Pending {
            // The thread had not begun its first job.
            slow.clear();
        }
        for most in [1, 200_000, usize::MAX] {
            assert_eq!(poll(&mut quick, &warm, most), Poll::Ready(Ok(most.min(SIZE as usize))));
        }
        assert_eq!(poll(&mut slow, &cold, 200_000), Poll::Pending);
        open.send(()).expect("the thread waits for it");
        let found = wait(&mut slow, &cold, 200_000).expect("the file can be read");
        // A machine with other load may be slow.
        assert!((BYTES..=200_000).contains(&found), "{found}");
        assert!(found == 200_000 || cold.cold.load(Relaxed), "{found} bytes, and the rest was not read");
        drop(disk);
    }

    #[test]
    fn a_connection_that_ends_leaves_no_read_and_no_file_behind() {
        let (pool, (open, gate)) = (pool(), channel::<()>());
        let (begun, begins) = channel();
        let first = pool.run(move || {
            begun.send(()).expect("it is waited for");
            gate.recv().expect("it is opened");
        });
        begins.recv().expect("the first job begins");
        let (mut ended, mut crowded) = (Prefetch::new(pool.clone()), Prefetch::new(pool.clone()));
        let cold = file(true);
        assert_eq!(poll(&mut ended, &cold, SIZE as usize), Poll::Pending);
        assert_eq!(poll(&mut crowded, &cold, SIZE as usize), Poll::Ready(Ok(BYTES)), "a read waits already");
        ended.clear();
        open.send(()).expect("the first job waits for it");
        drop((first, ended, crowded, pool));
        for _ in 0..20_000 {
            if Arc::strong_count(&cold) == 1 {
                assert!(cold.cold.load(Relaxed), "it was read");
                return;
            }
            // Nothing reports the end of the last job.
            thread::sleep(Duration::from_millis(1));
        }
        panic!("the file is kept");
    }

    #[test]
    fn a_file_that_has_become_shorter_is_left_to_its_sender() {
        let (mut prefetch, cold) = (Prefetch::new(pool()), file(true));
        let beyond = Arc::new(OpenFile::new(File::open("/dev/null").expect("Linux has it"), SIZE));
        beyond.cold.store(true, Relaxed);
        assert_eq!(wait(&mut prefetch, &beyond, 100_000), Ok(BYTES));
        assert!(wait(&mut prefetch, &cold, 1).is_ok_and(|found| found == 1));
    }

    #[test]
    fn a_file_system_that_cannot_tell_has_the_first_piece_read() {
        let file = Arc::new(OpenFile::new(File::open("/proc/version").expect("Linux has it"), SIZE));
        assert_eq!(is_cached(&file.file, 0), None);
        let mut prefetch = Prefetch::new(pool());
        let was_quick = (0..100).any(|_| {
            assert_eq!(poll(&mut prefetch, &file, 10), Poll::Pending);
            assert_eq!(wait(&mut prefetch, &file, 10), Ok(10));
            file.quick.load(Relaxed)
        });
        file.cold.store(false, Relaxed);
        assert!(was_quick);
        assert_eq!(poll(&mut prefetch, &file, 10), Poll::Ready(Ok(10)));
    }

    #[test]
    fn a_file_of_one_piece_is_asked_for_once_a_second() {
        let file = file(false);
        let mut prefetch = Prefetch::new(pool());
        clock::set(Instant(5_000), 0);
        assert_eq!(poll(&mut prefetch, &file, 1_000), Poll::Ready(Ok(1_000)));
        assert_eq!(file.resident_until.load(Relaxed), 0, "a part tells nothing of the rest");
        assert_eq!(poll(&mut prefetch, &file, usize::MAX), Poll::Ready(Ok(SIZE as usize)));
        assert_eq!(file.resident_until.load(Relaxed), 6_000);
        clock::set(Instant(5_999), 0);
        assert_eq!(poll(&mut prefetch, &file, usize::MAX), Poll::Ready(Ok(SIZE as usize)));
        assert_eq!(file.resident_until.load(Relaxed), 6_000, "it was not asked for");
        file.cold.store(true, Relaxed);
        assert_eq!(poll(&mut prefetch, &file, usize::MAX), Poll::Pending, "a slow send overrides it");
    }

    #[test]
    fn a_slow_send_marks_its_file() {
        let file = file(false);
        // A machine with other load may take the processor away.
        let is_left_alone = (0..100).any(|_| {
            file.cold.store(false, Relaxed);
            watch(&file, || ());
            !file.cold.load(Relaxed)
        });
        // A send is slow by the clock of the machine.
        watch(&file, || thread::sleep(Duration::from_nanos(2 * SLOW)));
        assert!(is_left_alone && file.cold.load(Relaxed));
    }
}
