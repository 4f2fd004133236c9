#!/usr/bin/env python3
"""Tests whether reloads lose requests under keep-alive, per-connection and large-download load, without retries.

usage: reload_soak.py [options]

Starts a server for each engine, and clients on loopback. Keep-alive clients make the next request after a response,
some of them after a pause, so that requests meet idle connections. Other clients open a connection for each request,
or download a large file and compare its hash. The supervisor gets HUP at a steady rate. With --upgrades it also gets
USR2 this number of times in each run, each time with another copy of the program at its path. A request has failed if
its connection ends before the response is complete, unless the response before it had `Connection: close`.

Prints for each engine: requests, connections, reloads, new generations, and failures by reason.

Exit code 1 if a request failed. The default is ten minutes; `--seconds 7 --engines epoll,uring` is a short run.
"""
import argparse, hashlib, json, os, pathlib, random, selectors, shutil, signal, socket, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = "naive fork thread pool busy select poll epoll libevent asio uring asio-proactor".split()
LARGE = 8 << 20
SMALL = b"a small file\n" * 20
PATIENCE = 20


class Client:
    """A client: a connection, the request in flight, and the rest of its response."""

    def __init__(self, load, kind):
        self.load, self.kind, self.socket, self.told, self.due = load, kind, None, False, 0.0

    def ask(self):
        if self.socket is None:
            self.socket, self.told = socket.socket(), False
            self.load.connections += 1
            try:
                self.socket.connect(self.load.address)
            except OSError as error:
                return self.fail(f"connect: {error.strerror}")
            self.socket.setblocking(False)
        path, close = ("/large.bin" if self.kind == "large" else "/small.txt"), self.kind == "close"
        self.head, self.left, self.body = b"", None, hashlib.sha256()
        self.asked = time.monotonic()
        try:
            self.socket.send(f"GET {path} HTTP/1.1\r\nHost: soak\r\n{'Connection: close' + chr(13) + chr(10) if close else ''}\r\n".encode())
        except OSError as error:
            return self.fail(f"send: {error.strerror}")
        self.load.selector.register(self.socket, selectors.EVENT_READ, self)
        self.load.active.add(self)

    def receive(self):
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError as error:
            return self.fail(f"receive: {error.strerror}")
        if not data:
            return self.fail("receive: the end of the stream" if self.left is None else "receive: a cut body")
        if self.left is None:
            self.head += data
            if b"\r\n\r\n" not in self.head:
                return
            self.head, data = self.head.split(b"\r\n\r\n", 1)
            fields = dict(line.lower().split(b": ", 1) for line in self.head.split(b"\r\n")[1:])
            if not self.head.startswith(b"HTTP/1.1 200"):
                return self.fail(f"status {self.head[9:12].decode()}")
            self.left, self.told = int(fields[b"content-length"]), fields.get(b"connection") == b"close"
        self.left -= len(data)
        self.body.update(data)
        if self.left == 0:
            self.answered()

    def answered(self):
        if self.body.digest() != self.load.hashes[self.kind == "large"]:
            return self.fail("another body")
        self.load.requests += 1
        self.load.longest = max(self.load.longest, time.monotonic() - self.asked)
        self.rest()
        if self.told:
            self.load.told += self.kind != "close"
            self.drop()
        pauses = self.kind == "pause"
        self.due = time.monotonic() + random.random() * 0.3 if pauses else 0.0

    def fail(self, why):
        why = f"{self.kind}: {why}"
        self.load.failures[why] = self.load.failures.get(why, 0) + 1
        self.rest()
        self.drop()
        self.due = time.monotonic() + 0.01

    def rest(self):
        if self in self.load.active:
            self.load.active.discard(self)
            self.load.selector.unregister(self.socket)
        self.load.waiting.add(self)

    def drop(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = None


class Load:
    """All clients of a run."""

    def __init__(self, address, hashes, kinds):
        self.address, self.hashes, self.selector = address, hashes, selectors.DefaultSelector()
        self.active, self.waiting = set(), set()
        self.requests = self.connections = self.told = 0
        self.longest, self.failures = 0.0, {}
        for kind, count in kinds.items():
            self.waiting.update(Client(self, kind) for _ in range(count))

    def step(self):
        now = time.monotonic()
        for client in [client for client in self.waiting if client.due <= now]:
            self.waiting.discard(client)
            client.ask()
        for key, _ in self.selector.select(0.005):
            key.data.receive()

    def overdue(self):
        """Fails requests that are too old."""
        now = time.monotonic()
        for client in [client for client in self.active if now - client.asked > PATIENCE]:
            client.fail("no answer")


def clients_of(engine, args):
    # One process serves one connection at a time.
    if engine == "naive":
        return {"pause": 1}
    return {"keep": args.connections // 2, "pause": args.connections - args.connections // 2, "close": 2, "large": 1}


def run(engine, args, folder):
    port = free_port()
    control = folder / f"{engine}.control"
    program = folder / "tenfold"
    replace(args.tenfold, program)
    server = subprocess.Popen(
        [str(program), "serve", str(folder / "site"), "--listen", f"127.0.0.1:{port}", "--engine", engine, "--access-log",
         "off", "--control", str(control), *args.option], stderr=subprocess.PIPE if args.quiet else None)
    try:
        wait_for(port, server)
        hashes = [hashlib.sha256(SMALL).digest(), hashlib.sha256((folder / "site/large.bin").read_bytes()).digest()]
        load = Load(("127.0.0.1", port), hashes, clients_of(engine, args))
        end, reload, reloads, look = time.monotonic() + args.seconds, time.monotonic() + args.every, 0, 0.0
        pause = args.seconds / (args.upgrades + 1)
        upgrade = time.monotonic() + pause if args.upgrades else end
        while (now := time.monotonic()) < end:
            load.step()
            if now >= upgrade:
                replace(args.tenfold, program)
                server.send_signal(signal.SIGUSR2)
                upgrade = now + pause
            if now >= reload:
                server.send_signal(signal.SIGHUP)
                reload, reloads = now + args.every, reloads + 1
            if now >= look:
                load.overdue()
                look = now + 1
        report = status(args, control)
        begun, upgrades = report.get("generation", 1) - 1, report.get("upgrades", {})
        for _ in range(200):
            if not load.active:
                break
            load.waiting.clear()
            load.step()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
    failed = sum(load.failures.values())
    print(f"{engine:<14} {load.requests:>8} requests, {load.connections:>7} connections ({load.told} told to close), "
          f"{reloads} reloads, "
          f"{upgrades.get('succeeded')} upgrades ({upgrades.get('failed')} failed), {begun} generations, longest {load.longest:.2f} s, {failed} failed {load.failures or ''}", flush=True)
    return failed + upgrades.get("failed", 1)


def replace(source, program):
    """Replaces a program by a rename, because the file of a running program cannot be written."""
    new = program.with_suffix(".new")
    shutil.copy(source, new)
    new.replace(program)


def status(args, control):
    out = subprocess.run([args.tenfold, "status", "--json", "--control", str(control)], capture_output=True, text=True).stdout
    try:
        return json.loads(out)
    except ValueError:
        return {}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def wait_for(port, server):
    for _ in range(500):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if server.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.02)
    raise SystemExit("the server does not listen")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"), help="the server's binary")
    parser.add_argument("--engines", default=",".join(ENGINES), help="the engines, separated by commas")
    parser.add_argument("--seconds", type=float, default=600, help="seconds of all engines together")
    parser.add_argument("--every", type=float, default=0.25, help="seconds between reloads")
    parser.add_argument("--upgrades", type=int, default=0, help="upgrades of each engine")
    parser.add_argument("--connections", type=int, default=32, help="keep-alive connections")
    parser.add_argument("--option", nargs="*", default=[], help="more options of `tenfold serve`")
    parser.add_argument("--quiet", action="store_true", help="hide the output of the server")
    args = parser.parse_args()
    engines = args.engines.split(",")
    args.seconds /= len(engines)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "site").mkdir()
        os.chmod(folder, 0o755)
        (folder / "site/small.txt").write_bytes(SMALL)
        (folder / "site/large.bin").write_bytes(os.urandom(LARGE))
        failed = sum(run(engine, args, folder) for engine in engines)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
