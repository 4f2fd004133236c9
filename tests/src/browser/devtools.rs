//! Chromium as a process, and its DevTools protocol: commands with replies, and stored events.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::process::Process;
use crate::site::TempFolder;
use crate::tools;

/// The longest wait for the browser to start, and for each reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser that runs until this value is dropped.
#[derive(Debug)]
pub struct DevTools {
    child: Child,
    socket: WebSocket<TcpStream>,
    commands: u64,
    events: Vec<Value>,
    /// Its profile, always new, so that its cache is empty.
    _profile: TempFolder,
}

impl DevTools {
    /// Starts Chromium.
    #[track_caller]
    pub fn start() -> DevTools {
        let profile = TempFolder::new("browser");
        let mut command = Command::new(tools::program("chromium"));
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args(["--disable-dev-shm-usage", "--disable-extensions", "--mute-audio"]);
        command.args(["--autoplay-policy=no-user-gesture-required", "--remote-debugging-port=0"]);
        // Pages need no window and no process for graphics, which take a fifth of the time of the start.
        command.args(["--no-startup-window", "--in-process-gpu"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        // A killed browser does not remove its folders.
        command.env("HOME", profile.path()).env("TMPDIR", profile.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("run chromium: {error}"));
        let url = announced(child.stderr.take().expect("its standard error is a pipe"));
        let Some(url) = url else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("chromium does not say where its DevTools listen");
        };
        let place = url.strip_prefix("ws://").and_then(|rest| rest.split('/').next());
        let place = place.unwrap_or_else(|| panic!("DevTools listen at {url}?"));
        let stream = TcpStream::connect(place).unwrap_or_else(|error| panic!("connect to {place}: {error}"));
        let (socket, _) =
            tungstenite::client(&url, stream).unwrap_or_else(|error| panic!("open {url}: {error}"));
        DevTools { child, socket, commands: 0, events: Vec::new(), _profile: profile }
    }

    /// Runs a command, in a session if one is given, and returns its result.
    #[track_caller]
    pub fn call(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        let shown = format!("{method} {parameters}");
        self.try_call(session, method, parameters).unwrap_or_else(|error| panic!("{shown}: {error}"))
    }

    /// Runs a command, and returns an error if the browser replies with one.
    #[track_caller]
    pub fn try_call(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
    ) -> Result<Value, Value> {
        self.commands += 1;
        let id = self.commands;
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        self.socket
            .send(Message::text(command.to_string()))
            .unwrap_or_else(|error| panic!("{method}: {error}"));
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let Some(mut message) = self.read(Duration::from_secs(1)) else { continue };
            if message["id"] == id {
                let error = message["error"].take();
                return if error.is_null() { Ok(message["result"].take()) } else { Err(error) };
            }
            self.events.push(message);
        }
        panic!("{method}: no answer within {PATIENCE:?}");
    }

    /// Receives events until none has come for `quiet`.
    pub fn listen(&mut self, quiet: Duration) {
        while let Some(message) = self.read(quiet) {
            self.events.push(message);
        }
    }

    /// The parameters of all stored events of this name.
    pub fn events(&self, name: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == name).map(|event| &event["params"]).collect()
    }

    /// Discards the stored events.
    pub fn forget(&mut self) {
        self.events.clear();
    }

    fn read(&mut self, patience: Duration) -> Option<Value> {
        self.socket.get_ref().set_read_timeout(Some(patience)).expect("a time above zero");
        match self.socket.read() {
            Ok(Message::Text(text)) => Some(serde_json::from_str(&text).expect("DevTools speak JSON")),
            Ok(_) => None,
            // The continuation of a stopped process interrupts a read with a timeout (`man 7 signal`).
            Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::Interrupted => {
                self.read(patience)
            }
            Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("the browser is gone: {error}"),
        }
    }
}

impl Drop for DevTools {
    fn drop(&mut self) {
        for process in Process(self.child.id()).with_descendants() {
            process.signal(Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Reads up to the line with the address of DevTools, and continues reading so that the pipe never fills.
fn announced(from: impl std::io::Read + Send + 'static) -> Option<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if let Some(url) = line.strip_prefix("DevTools listening on ") {
                let _ = tell.send(url.to_owned());
            }
        }
    });
    told.recv_timeout(PATIENCE).ok()
}
