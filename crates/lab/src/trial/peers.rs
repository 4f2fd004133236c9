//! The commands and configurations of peers.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::experiment::subject::Subject;
use crate::machine::environment;
use crate::record;
use crate::trial::bench::Workbench;
use crate::trial::site::TrialSite;

/// Writes the configuration of a peer into the folder of the run, and returns its command.
pub(crate) fn words(
    bench: &Workbench,
    peer: Subject,
    name: &str,
    address: SocketAddr,
) -> Result<Vec<String>, String> {
    let program = environment::program(peer).ok_or_else(|| format!("{} is not installed", peer.name()))?;
    // Other characters may end the path in a configuration file.
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+@~,=".contains(character);
    if let Some(other) = bench.kept.display().to_string().chars().find(|character| !is_plain(*character)) {
        let (peer, folder) = (peer.name(), bench.kept.display());
        return Err(format!("{peer} cannot be configured: {folder} contains {other:?}; name another folder"));
    }
    let file = bench.kept.join(format!("{name}.conf"));
    let mut text = configuration(peer, &bench.site, address, name);
    if peer == Subject::Nginx {
        text = text.replace("http {\n", &format!("http {{\n{}", temporary_folders(&program, &bench.site)));
    }
    record::write(&file, text)?;
    let (program, file) = (program.display().to_string(), file.display().to_string());
    let folder = bench.site.scratch().display().to_string();
    let words: Vec<&str> = match peer {
        Subject::Nginx => vec![&program, "-p", &folder, "-c", &file],
        Subject::Apache => vec![&program, "-D", "FOREGROUND", "-f", &file],
        Subject::Lighttpd => vec![&program, "-D", "-f", &file],
        _ => vec![&program, "-c", &file],
    };
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// The configuration of a peer: one worker, no access log, and room for the connections of a trial.
fn configuration(peer: Subject, site: &TrialSite, address: SocketAddr, name: &str) -> String {
    let (site, scratch) = (site.folder().display(), site.scratch().display());
    let (ip, port) = (address.ip(), address.port());
    match peer {
        Subject::Nginx => format!(
            "worker_processes 1;\ndaemon off;\npid {scratch}/{name}.pid;\nerror_log stderr crit;\n\
             worker_rlimit_nofile 20000;\nevents {{ worker_connections 10000; multi_accept on; }}\n\
             http {{\n    types {{ application/octet-stream bin; }}\n    access_log off;\n    sendfile on;\n    \
             tcp_nopush on;\n    keepalive_requests 1000000000;\n    open_file_cache max=10000 inactive=60s;\n    \
             server {{ listen {address} reuseport backlog=4096; root {site}; }}\n}}\n"
        ),
        Subject::Apache => format!(
            "ServerRoot {scratch}\nServerName localhost\nListen {address}\nPidFile {scratch}/{name}.pid\n\
             LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
             LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
             ServerLimit 1\nStartServers 1\nThreadLimit 200\nThreadsPerChild 200\nMaxRequestWorkers 200\n\
             MinSpareThreads 1\nMaxSpareThreads 200\nAsyncRequestWorkerFactor 50\nListenBacklog 4096\n\
             ErrorLog /dev/stderr\nLogLevel crit\nDocumentRoot {site}\nKeepAlive On\nMaxKeepAliveRequests 0\n\
             KeepAliveTimeout 60\n\
             User nobody\nGroup nogroup\nDefaultRuntimeDir {scratch}\n<Directory {site}>\n    Require all granted\n</Directory>\n"
        ),
        Subject::Lighttpd => format!(
            "server.document-root = \"{site}\"\nserver.bind = \"{ip}\"\nserver.port = {port}\n\
             server.max-keep-alive-requests = 100000000\nserver.max-fds = 20000\nserver.max-connections = 8000\n\
             mimetype.assign = (\".bin\" => \"application/octet-stream\")\n"
        ),
        _ => format!(
            "num-threads: 1\nmax-connections: 10000\nhosts:\n  \"default\":\n    \
             listen: {{host: {ip}, port: {port}}}\n    paths:\n      \"/\":\n        file.dir: {site}\n"
        ),
    }
}

/// Settings for the temporary folders that the package of nginx has set. nginx does not start if it cannot create them,
/// and their default is a folder of root.
fn temporary_folders(nginx: &Path, site: &TrialSite) -> String {
    let output = Command::new(nginx).arg("-V").stdin(Stdio::null()).output();
    let options =
        output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    let names = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let is_set = |name: &&str| options.contains(&format!("--http-{}-temp-path=", name.replace('_', "-")));
    let line = |name: &str| format!("    {name}_temp_path {}/{name};\n", site.scratch().display());
    names.into_iter().filter(is_set).map(line).collect()
}
