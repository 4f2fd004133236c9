"""Servers for a measurement, pinned to one core, each on a free port. They are stopped by process id."""
import pathlib, shutil, signal, socket, subprocess, time

START_SECONDS = 10
STOP_SECONDS = 5


class Fleet:
    """Stops all servers of `start` at the end of `with`, also after an error."""

    def __init__(self, run_folder, www, cpu, first_port):
        self.run, self.www, self.cpu, self.next_port = pathlib.Path(run_folder), pathlib.Path(www), cpu, first_port
        self.servers = {}
        self.run.chmod(0o755)  # a peer started as root serves as another user

    def __enter__(self):
        # Without a handler, TERM would end the program inside its `with` blocks.
        signal.signal(signal.SIGTERM, stopped)
        return self

    def __exit__(self, *_):
        for name in list(self.servers):
            self.stop(name)

    def start(self, name, command, config=None):
        """Starts a server and waits until it listens; returns its port. @PORT@, @WWW@ and @RUN@ are filled in."""
        port = self._free_port()
        if config:
            file, template = config
            (self.run / file).write_text(self._fill(template, port))
        program, *arguments = [self._fill(word, port) for word in command]
        path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
        if not path:
            raise SystemExit(f"{program} is missing; run `cargo xtask setup`, or choose others with --peers")
        log = (self.run / f"{name.replace('/', '-')}.log").open("w+")
        server = subprocess.Popen(["taskset", "-c", str(self.cpu), path, *arguments], stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=log, cwd=self.run)
        self.servers[name] = (server, log)
        deadline = time.monotonic() + START_SECONDS
        while not listens(port):
            if server.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                state = "ended" if server.poll() is not None else f"does not listen on port {port}"
                raise SystemExit(f"{name} {state}: {' '.join([path, *arguments])}\n{log.read()[-2000:]}")
            time.sleep(0.05)
        return port

    def stop(self, name):
        """Sends TERM, and KILL if the server does not end."""
        server, log = self.servers.pop(name)
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()

    def _fill(self, text, port):
        return text.replace("@PORT@", str(port)).replace("@WWW@", str(self.www)).replace("@RUN@", str(self.run))

    def _free_port(self):
        while listens(self.next_port):
            self.next_port += 1
        self.next_port += 1
        return self.next_port - 1


def stopped(*_):
    raise SystemExit("stopped by SIGTERM")


def listens(port):
    """Whether a connection to 127.0.0.1:port is accepted."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
