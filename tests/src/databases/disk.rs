//! A small disk in memory, visible only to processes started on it, which can be filled.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::tools;

/// The script that makes the disk and keeps it. Only processes in its mount namespace see the mount (`man 7
/// mount_namespaces`), so the disk ends with these processes.
const KEEP: &str = "mount -t tmpfs -o size=$2k,mode=0777 tenfold \"$1\" && echo mounted && exec cat";

/// A separate file system on a folder, until this value is dropped. Only root can make it.
#[derive(Debug)]
pub struct Disk {
    keeper: Child,
    folder: PathBuf,
}

impl Disk {
    /// Mounts a disk of `kilobytes` on this folder, writable for all users.
    #[track_caller]
    pub fn new(folder: &Path, kilobytes: u32) -> Disk {
        let mut command = Command::new(tools::program("unshare"));
        command.args(["--mount", "--propagation", "private", "sh", "-c", KEEP, "sh"]);
        command.arg(folder).arg(kilobytes.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        let mut said = String::new();
        let output = keeper.stdout.as_mut().expect("its standard output is a pipe");
        BufReader::new(output).read_line(&mut said).expect("it says so");
        assert_eq!(said.trim(), "mounted", "{command:?}");
        Disk { keeper, folder: folder.to_owned() }
    }

    /// Arguments that start a program in the mount namespace of the disk.
    pub fn words(&self) -> Vec<String> {
        vec![format!("--mount=/proc/{}/ns/mnt", self.keeper.id()), "--".into()]
    }

    /// A command in the mount namespace of the disk, which keeps its process. Its variables and streams are not
    /// inherited.
    #[track_caller]
    pub fn joined_by(&self, command: &Command) -> Command {
        let mut joined = Command::new(tools::program("nsenter"));
        joined.args(self.words()).arg(command.get_program()).args(command.get_args()).current_dir("/");
        joined
    }

    /// A path on the disk, as seen from other namespaces.
    pub fn at(&self, name: &str) -> PathBuf {
        let folder = self.folder.strip_prefix("/").expect("folders of tests have whole names");
        Path::new("/proc").join(self.keeper.id().to_string()).join("root").join(folder).join(name)
    }

    /// Fills the disk.
    #[track_caller]
    pub fn fill(&self) {
        let mut file = File::create(self.at("filler")).expect("the disk is writable");
        // Also fills the rest of the last page.
        for chunk in [1 << 20, 1 << 12, 1] {
            let zeros = vec![0; chunk];
            loop {
                match file.write_all(&zeros) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("fill the disk: {error}"),
                }
            }
        }
    }

    /// Frees the space again.
    #[track_caller]
    pub fn make_room(&self) {
        fs::remove_file(self.at("filler")).expect("it was filled");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The program ends at the end of its input.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
