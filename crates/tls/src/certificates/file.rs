//! Bounded reading of PEM files.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{MemfdFlags, OFlags, memfd_create, sendfile};
use rustix::io::Errno;

/// The most bytes of a PEM file: a chain of ten certificates with RSA keys has about 20 KB.
const MAX_FILE: u64 = 1 << 20;

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_to_end(open(path)?)
}

/// Opens a regular file without waiting: a pipe without a writer would block reloads and signals.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Copies an open file to an unlinked file, independent of later changes. The kernel copies, so the bytes are
/// never in this process's memory.
pub(crate) fn copy(file: &File) -> io::Result<File> {
    let closed = MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL;
    let copy = match memfd_create("tenfold-key", closed) {
        // Linux before 6.3 does not support the second flag.
        Err(Errno::INVAL) => memfd_create("tenfold-key", MemfdFlags::CLOEXEC),
        made => made,
    }?;
    let mut left = MAX_FILE as usize + 1;
    while left > 0 {
        match sendfile(&copy, file, None, left) {
            Ok(0) => break,
            Ok(sent) => left -= sent,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(copy.into())
}

/// Reads an open file to its end. The buffer does not grow meanwhile, so no copy of a key is left in freed
/// memory.
pub(crate) fn read_to_end(file: File) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len().min(MAX_FILE) as usize;
    // A few spare bytes detect the end without another allocation.
    let mut bytes = Vec::with_capacity(size + 64);
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let path = std::env::temp_dir().join(format!("tenfold-pem-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a temporary folder");
        let (send, receive) = mpsc::channel();
        let own = path.clone();
        std::thread::spawn(move || send.send(read(&own).map_err(|error| error.to_string())));
        let result = receive.recv_timeout(Duration::from_secs(10));
        std::fs::remove_file(&path).expect("our own file");
        assert_eq!(result.expect("it does not wait"), Err("it is not a regular file".to_owned()));
        assert_eq!(
            read(Path::new("/dev/null")).expect_err("a device").to_string(),
            "it is not a regular file"
        );
    }
}
