//! The source lines that make the system calls of a request, found in the source text at run time.

use std::fmt::Write as _;

use tenfold_engine::{Driver, Engine};

/// The purpose of a call without a source line of ours.
pub(super) const OTHER: &str = "prepares the file, a thread or a library";

/// A source file, as it was when this program was built.
#[derive(Debug)]
struct Source {
    path: &'static str,
    text: &'static str,
}

macro_rules! source {
    ($path:literal) => {
        &Source { path: concat!("crates/", $path), text: include_str!(concat!("../../../", $path)) }
    };
}

/// A line of source that makes a system call.
#[derive(Debug)]
pub(super) struct CallSite {
    /// The kernel's names of the call.
    calls: &'static [&'static str],
    /// A part of the arguments that distinguishes the call from others of the same name.
    arguments: &'static str,
    /// Its purpose in this model.
    pub(super) purpose: &'static str,
    source: &'static Source,
    /// The line contains the last of these parts, and follows lines with the other parts in this order.
    marker: &'static [&'static str],
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub(super) path: &'static str,
    pub(super) number: usize,
    /// The function that contains it.
    pub(super) function: &'static str,
    pub(super) text: &'static str,
}

/// Call sites as rows: the names of the call, a part of its arguments, its purpose, its file, and its marker.
macro_rules! sites {
    ($($calls:expr, $arguments:literal, $purpose:expr, $source:expr, $($marker:literal),+;)+) => {
        &[$(CallSite {
            calls: $calls,
            arguments: $arguments,
            purpose: $purpose,
            source: $source,
            marker: &[$($marker),+],
        }),+]
    };
}

const FILES: &Source = source!("sys/src/files/file.rs");
const BLOCKING_IO: &Source = source!("engine/src/drivers/blocking/io.rs");
const READINESS_IO: &Source = source!("engine/src/drivers/readiness/io.rs");
const NAIVE: &Source = source!("engine/src/models/naive.rs");
const FORK: &Source = source!("engine/src/models/fork.rs");
const THREAD: &Source = source!("engine/src/models/thread.rs");
const POOL: &Source = source!("engine/src/models/pool.rs");
const BUSY: &Source = source!("engine/src/models/busy.rs");
const SELECT: &Source = source!("engine/src/models/select.rs");
const POLL: &Source = source!("engine/src/models/poll.rs");
const EPOLL: &Source = source!("engine/src/models/epoll.rs");
const LIBEVENT: &Source = source!("engine/src/models/libevent.rs");
const ASIO: &Source = source!("engine/src/models/asio.rs");
const PROACTOR: &Source = source!("engine/src/models/asio_proactor.rs");
const URING: &Source = source!("engine/src/models/uring.rs");

const WAITS: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2"];
const WAIT: &str = "waits until a descriptor is ready, and returns all that are";
const CLOSE: &str = "closes the connection";
const END: &[&str] = &["close"];

/// Calls for the file.
const OF_FILES: &[CallSite] = sites! {
    &["openat2"], "", "opens the file beneath the root", FILES, "rustix::fs::openat2(";
};
const OF_BLOCKING: &[CallSite] = sites! {
    &["accept4"], "", "takes the next connection; sleeps until there is one",
        source!("engine/src/drivers/blocking/accept.rs"), "listeners[place].accept(nonblocking)";
    &["recvfrom"], "", "receives; sleeps until bytes arrive", BLOCKING_IO, "socket.receive(into)";
    &["write", "sendfile"], "", "sends; sleeps until there is room", BLOCKING_IO, "core.send(PART)";
};
const OF_READINESS: &[CallSite] = sites! {
    &["accept4"], "", "takes the next connection; EAGAIN if the queue is empty",
        source!("engine/src/drivers/readiness/accept.rs"), "listener.accept(true)";
    &["recvfrom"], "", "tries to receive; EAGAIN without bytes", READINESS_IO, "socket.receive(into)";
    &["write", "sendfile"], "", "tries to send; EAGAIN without room", READINESS_IO, "core.send(most?)";
    END, "", CLOSE, source!("engine/src/drivers/readiness/closing.rs"), "fn close(", "self.connections.remove(key)";
};
const OF_COMPLETION: &[CallSite] = sites! {
    &["getpeername"], "", "asks for the address of the client",
        source!("engine/src/drivers/completion/event_loop.rs"), "socket.peer()";
    END, "", CLOSE, source!("engine/src/drivers/completion/closing.rs"), "self.connections.remove(key)";
};

/// The calls that a model's own file makes.
fn of_model(engine: Engine) -> &'static [CallSite] {
    match engine {
        Engine::Naive => sites! {
            END, "", CLOSE, NAIVE, "drop(socket)";
        },
        Engine::Fork => sites! {
            &["clone", "clone3", "fork"], "", "starts a process", FORK, "process::fork()";
            &["prctl", "getppid"], "", "ends with its parent", FORK, "process::end_with(";
            &["dup3"], "", "gives up its listening socket", FORK, "listener.abandon()";
            &["exit_group"], "", "ends the process, and closes", FORK, "std::process::exit(0)";
            &["wait4"], "", "reaps processes that ended", FORK, "process::reap()";
            END, "", "closes the parent's copy", FORK, "children.each.insert(";
        },
        Engine::Thread => sites! {
            &["clone", "clone3"], "", "starts a thread", THREAD, "scope.spawn(";
            &["exit"], "", "ends the thread", THREAD, "lock(threads_too).remove(";
            END, "", CLOSE, THREAD, "drop(served)";
        },
        Engine::Pool => sites! {
            &["futex"], "FUTEX_WAKE", "wakes a sleeping thread: the queue has a connection, or its lock is free",
                POOL, "sender.try_send(";
            &["futex"], "FUTEX_WAIT", "sleeps until the queue has a connection, or its lock is free",
                POOL, "lock(queue).recv()";
            END, "", CLOSE, POOL, "drop(served)";
        },
        Engine::Busy => sites! {
            &["clock_nanosleep"], "", "sleeps after an iteration without work", BUSY, "thread::sleep(";
        },
        Engine::Select => sites! {
            &["select", "pselect6"], "", WAIT, SELECT, "self.0.wait(milliseconds";
        },
        Engine::Poll => sites! {
            &["poll", "ppoll"], "", WAIT, POLL, "self.0.wait(milliseconds";
        },
        Engine::Epoll => sites! {
            WAITS, "", WAIT, EPOLL, "self.epoll.wait(milliseconds)";
            &["epoll_ctl"], "EPOLL_CTL_ADD", "registers the connection, once", EPOLL, "fn watch(", "self.epoll.add(";
        },
        Engine::Libevent => sites! {
            &["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "pselect6"], "", WAIT, LIBEVENT, "self.base.wait(";
            &["epoll_ctl"], "EPOLL_CTL_DEL", "ends the registration", LIBEVENT, "self.base.remove(";
            &["epoll_ctl"], "", "registers the connection", LIBEVENT, "fn watch(", "self.base.set(";
        },
        Engine::Asio => sites! {
            WAITS, "", WAIT, ASIO, "self.context.run(";
            &["epoll_ctl"], "EPOLL_CTL_ADD", "registers the connection", ASIO, "fn watch(", "self.context.watch(";
            &["epoll_ctl"], "EPOLL_CTL_DEL", "ends the registration", ASIO, "fn closing(", "*place = None";
            &["epoll_ctl"], "->", "begins a wait for the connection", ASIO, "fn rearm(", "watched.wait(";
            &["epoll_ctl"], "", "begins a wait for the listener", ASIO, "source.watched.wait(";
        },
        Engine::AsioProactor => sites! {
            WAITS, "", WAIT, PROACTOR, "CompletionContext::wait(";
            &["accept"], "", "takes a connection for async_accept", PROACTOR, "accept(listener: RawFd, tag: u64);";
            &["recvfrom"], "", "receives for async_read_some; EAGAIN without bytes",
                PROACTOR, "receive(number: RawFd, tag: u64);";
            &["sendto"], "", "sends for async_write_some", PROACTOR, "CompletionContext::send(";
            &["epoll_ctl"], "EPOLL_CTL_DEL", "ends the registration", PROACTOR, "close(socket: Socket, tag: u64);";
            &["epoll_ctl"], "", "registers the accepted connection", PROACTOR, "accept(listener: RawFd, tag: u64);";
            END, "", CLOSE, PROACTOR, "close(socket: Socket, tag: u64);";
        },
        Engine::Uring => sites! {
            &["io_uring_enter"], "", "submits new operations, and waits for a completion", URING, "Ring::wait(self";
        },
    }
}

/// All call sites of a model: of its own file, of its driver, and for the file.
pub(super) fn all(engine: Engine) -> impl Iterator<Item = &'static CallSite> {
    let of_driver = match engine.model().driver {
        Driver::Blocking => OF_BLOCKING,
        Driver::Readiness => OF_READINESS,
        Driver::Completion => OF_COMPLETION,
    };
    of_model(engine).iter().chain(of_driver).chain(OF_FILES)
}

/// The line that makes a call with these arguments.
pub(super) fn find(engine: Engine, call: &str, arguments: &str) -> Option<&'static CallSite> {
    // strace shows that this descriptor is a file of the site, not a connection.
    if call == "close" && arguments.contains("/tenfold-lab-") {
        return None;
    }
    all(engine).find(|site| site.calls.contains(&call) && arguments.contains(site.arguments))
}

impl CallSite {
    /// Its line in the source. A test ensures that the line exists.
    pub(super) fn line(&self) -> Option<SourceLine> {
        let (last, before) = self.marker.split_last()?;
        let mut lines = self.source.text.lines().enumerate();
        for part in before {
            lines.find(|(_, line)| line.contains(part))?;
        }
        let (at, text) = lines.find(|(_, line)| line.contains(last))?;
        let name = |line: &'static str| {
            let rest = line.trim_start().trim_start_matches("pub").trim_start_matches("(crate)");
            let name = rest.trim_start_matches("(super)").trim_start().strip_prefix("fn ")?;
            name.split(['(', '<']).next()
        };
        let around = || self.source.text.lines().take(at + 1).filter_map(name).last();
        // A line of the macro that forwards operations defines a function.
        let forwarded = text.trim().strip_suffix(": u64);").and_then(|line| line.split('(').next());
        let function = forwarded.or_else(around).unwrap_or("");
        Some(SourceLine { path: self.source.path, number: at + 1, function, text: text.trim() })
    }
}

/// A row of the table in the book, without line numbers, because edits change these.
pub(super) fn row(call: &str, site: Option<&CallSite>) -> String {
    let mut row = format!("`{call}`");
    match site.and_then(|site| Some((site.purpose, site.line()?))) {
        Some((purpose, SourceLine { path, function, .. })) => {
            let _ = write!(row, " | {purpose} | [`{function}`](../../../{path})");
        }
        None => row += &format!(" | {} | ", OTHER),
    }
    row
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use tenfold_engine::MODELS;

    use super::*;

    /// The text of a file of the project.
    fn project_file(path: &str) -> String {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn every_cited_line_exists() {
        for model in MODELS {
            for site in all(model.engine) {
                let line = site.line().unwrap_or_else(|| panic!("{site:?}"));
                let text = project_file(line.path);
                assert_eq!(text.lines().nth(line.number - 1).map(str::trim), Some(line.text));
                assert!(!line.function.is_empty(), "{line:?}");
            }
        }
    }

    #[test]
    fn every_row_of_the_book_is_that_of_a_call_site() {
        for model in MODELS {
            let page = project_file(&format!("docs/explanation/models/{}.md", model.name));
            let part = page.split("## One request\n").nth(1).unwrap_or_else(|| panic!("{}", model.name));
            let part = part.split("\n## ").next().expect("a part");
            let rows: Vec<&str> = part.lines().filter(|line| line.contains("](../../../crates")).collect();
            assert!(rows.len() > 3, "{}: {rows:?}", model.name);
            for line in rows {
                let known = all(model.engine).any(|site| {
                    site.calls.iter().any(|call| line.ends_with(&format!("| {} |", row(call, Some(site)))))
                });
                assert!(known, "{}: {line}; write the table with tenfold lab explain --table", model.name);
            }
        }
    }
}
