//! Another program in this process (`man 2 execve`), and the descriptors that pass through.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};

/// The path by which this program was executed, as its caller wrote it (`AT_EXECFN`, `man 3 getauxval`).
pub fn name() -> OsString {
    OsString::from_vec(rustix::param::linux_execfn().to_bytes().to_vec())
}

/// Replaces the program of this process. The process id, the children, blocked and pending signals, and the `passed`
/// descriptors stay. All other descriptors of this program are closed. Returns only after a failure, which changes nothing.
pub fn execute(
    program: &Path,
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    passed: &[BorrowedFd<'_>],
) -> io::Error {
    let variables = environment.into_iter().map(|(name, value)| {
        let mut entry = name;
        entry.push("=");
        entry.push(value);
        entry
    });
    let program = text(program.as_os_str().to_owned());
    let arguments: io::Result<Vec<_>> = arguments.into_iter().map(text).collect();
    let variables: io::Result<Vec<_>> = variables.map(text).collect();
    let (program, arguments, variables) = match (program, arguments, variables) {
        (Ok(program), Ok(arguments), Ok(variables)) => (program, arguments, variables),
        _ => return io::ErrorKind::InvalidInput.into(),
    };
    for descriptor in passed {
        if let Err(error) = fcntl_setfd(descriptor, FdFlags::empty()) {
            keep(passed);
            return error.into();
        }
    }
    let (arguments, variables) = (pointers(&arguments), pointers(&variables));
    // SAFETY: the path is a string with an end, and both arrays hold such strings, which live on, and end with a null.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), variables.as_ptr()) };
    let error = io::Error::last_os_error();
    keep(passed);
    error
}

/// Closes these descriptors on exec again.
fn keep(passed: &[BorrowedFd<'_>]) {
    for descriptor in passed {
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

fn text(word: OsString) -> io::Result<CString> {
    Ok(CString::new(word.into_vec())?)
}

fn pointers(words: &[CString]) -> Vec<*const libc::c_char> {
    words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Takes a descriptor that the former program of this process or a service manager passed. It is closed on exec from now
/// on.
///
/// # Errors
/// No descriptor was passed with this number, or it was taken before.
pub fn inherit(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call reads a flag and touches no memory, whatever the number is.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    if number <= libc::STDERR_FILENO || flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::other("it was not passed to this program"));
    }
    // SAFETY: every descriptor that this program opens is closed on exec, and this one is not. So it was inherited and
    // has no owner. It gets the flag below, so that no second call can take it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
    Ok(descriptor)
}

/// Returns a file in memory with the content that `write` writes, to be passed through [`execute`].
pub fn message(write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("tenfold-handover", MemfdFlags::CLOEXEC)?);
    write(&mut file)?;
    Ok(file.into())
}

/// Reads a file that [`message`] made.
pub fn read_message(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut file = File::from(file);
    file.rewind()?;
    // A vector that grows would leave copies of secrets in free memory.
    let mut content = Vec::with_capacity(file.metadata()?.len() as usize + 1);
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// The number of a descriptor, for the program that gets it.
pub fn number(descriptor: &impl AsFd) -> RawFd {
    descriptor.as_fd().as_raw_fd()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_program_that_cannot_run_changes_nothing() {
        let file = message(|file| file.write_all(b"state")).expect("memory");
        let error = execute(Path::new("/nonexistent/program"), [], [], &[file.as_fd()]);
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = inherit(number(&file)).expect_err("it is closed on exec, so this program opened it");
        assert_eq!(error.to_string(), "it was not passed to this program");
        assert_eq!(read_message(file).expect("a file"), b"state");
        assert!(inherit(-1).is_err());
    }
}
