//! The paths beneath which a worker writes its log, for the rules of the sandbox.

use std::path::Path;

use super::open::Log;

/// The log, and its folder if rotation creates new files there. The folder of a stream, such as `/dev`, is not
/// included.
pub(crate) fn paths_of(log: &Log) -> impl Iterator<Item = &Path> {
    log.path().into_iter().chain(folder_of_log(log))
}

fn folder_of_log(log: &Log) -> Option<&Path> {
    log.regular().map(|(path, _)| folder_of(path))
}

/// Returns how the location of the log weakens the sandbox, if the kernel restricts files.
pub(crate) fn weakness(log: &Log) -> Option<&'static str> {
    is_whole_system(folder_of_log(log)?).then_some(
        "the access log is in /, so the sandbox lets workers write to every file that their user may write to; put \
         the log into a folder of its own",
    )
}

fn is_whole_system(folder: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| folder.parent().is_none())
}

/// The folder of a file; the working folder for a bare name.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::parse::given::GivenSettings;

    fn log_at(path: &Path) -> Log {
        let flags = [("access-log", vec![path.display().to_string()])].into();
        let settings = GivenSettings { flags, ..GivenSettings::default() }.resolve().expect("legal");
        Log::open(&settings, None).expect("it can be written")
    }

    #[test]
    fn h79_only_a_log_that_is_a_file_opens_its_folder_to_workers() {
        assert_eq!(paths_of(&log_at(Path::new("/dev/null"))).collect::<Vec<_>>(), [Path::new("/dev/null")]);
        let folder = std::env::temp_dir().join(format!("tenfold-log-folder-{}", std::process::id()));
        fs::create_dir(&folder).expect("a temporary folder can be made");
        let file = folder.join("access.log");
        let log = log_at(&file);
        assert_eq!(paths_of(&log).collect::<Vec<_>>(), [&file, &folder]);
        assert_eq!(weakness(&log), None);
        assert!(is_whole_system(
            &folder.ancestors().map(|_| "..").fold(folder.clone(), |path, up| path.join(up))
        ));
        fs::remove_dir_all(&folder).expect("it is ours");
        assert_eq!(paths_of(&Log::default()).count(), 0);
    }
}
