#!/usr/bin/env python3
"""Measures HTTP/2: a floor, Tenfold with HTTP/2 and with HTTP/1.1, nginx and h2o, with the same files and certificate.

usage: http2.py [options] WORKLOAD ...

Workloads:
  1k        1 KiB, 16 connections with 32 streams each, TLS
  1k-plain  the same in plaintext
  single    1 KiB, 16 connections with a stream at a time, TLS
  large     66 MiB in a stream, TLS
  16x128k   128 KiB, 16 streams of a connection (HTTP/1.1: 16 connections), TLS
  connect   a connection with a full handshake for each request, 1 KiB
  idle      memory of an idle connection after a request of h2load, TLS
  urgent    bytes in front of an urgent stream that begins behind ten of 66 MiB, TLS, at 2 Mbit/s
or all.

Each round drives every server once with h2load, in random order, and reads the CPU time of all its processes. Prints CPU
microseconds per request and the ratio to the floor null_h2, with a 95 % bootstrap interval over rounds. The interval of
the second floor shows the noise. The lines below a table are ratios of Tenfold to other rows, from the same rounds.
In place of 32 streams, HTTP/1.1 has 32 pipelined requests. The floor of `connect` has the handshake of OpenSSL.

`idle` opens 2 N connections to a fresh server in two steps, each with a request. It prints the private memory of the
second step per connection, which excludes one-time allocations. The floor is left out.

`urgent` counts the bytes of frames that arrive after its request with urgency 0 and before its first frame. The client
has a receive buffer of 16 KiB and reads 250 kB/s. The floor and HTTP/1.1 are left out.

Needs: the release binary, null_h2 and www/ (`cargo xtask bench` makes both), h2load (package nghttp2-client), openssl,
ss, taskset, and the peers (--peers none leaves them out). Traffic goes only to 127.0.0.1.
"""
import argparse, pathlib, re, resource, socket, ssl, statistics, subprocess, sys, tempfile, time
from typing import NamedTuple

import compare
from environment import describe, version
from fleet import Fleet
from idle import private_kib
from measure import cpu_seconds, measure, ratio, table
from processes import Place, with_descendants
from tls import PEERS as TLS_PEERS, make_certificate

HERE = pathlib.Path(__file__).resolve().parent
WWW = HERE / "www"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS, WINDOW_UPDATE = 1, 4, 8  # types of frames (RFC 9113 §6)
END_STREAM_AND_HEADERS = 0x5


class Workload(NamedTuple):
    """Requests of h2load."""
    title: str
    path: str = "/1k.html"
    tls: bool = True
    connections: int = 16
    streams: int = 1
    http1: tuple | None = None  # connections and pipelined requests of HTTP/1.1, if they differ
    per_second: int = 0  # requests per second of a run; 0: as many as the server answers
    close: bool = False  # a connection for each request


WORKLOADS = {
    "1k": Workload("1 KiB, 16 connections x 32 streams, TLS", streams=32),
    "1k-plain": Workload("1 KiB, 16 connections x 32 streams, plaintext", tls=False, streams=32),
    "single": Workload("1 KiB, 16 connections x 1 stream, TLS"),
    "large": Workload("66 MiB in a stream, TLS", "/video.mp4", connections=1, per_second=8),
    "16x128k": Workload("128 KiB, 16 streams of a connection, TLS", "/128k.bin", connections=1, streams=16, http1=(16, 1)),
    "connect": Workload("a connection with a full handshake for each request, 1 KiB", per_second=300, close=True),
}
IDLE_RUNS, IDLE_SECONDS = 3, 14
URGENT_RATE, URGENT_SECONDS = 250_000, 4


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*WORKLOADS, "idle", "urgent"]
    parser.add_argument("workloads", nargs="+", metavar="WORKLOAD", help=f"of {', '.join(names)}, or all")
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"), help="the release binary")
    parser.add_argument("--engines", default="epoll", help="engines of Tenfold, or none; default: epoll")
    parser.add_argument("--option", action="append", default=[], metavar="'--NAME VALUE'", help="a further option for tenfold serve; repeatable")
    parser.add_argument("--peers", default="nginx,h2o", help="of nginx,h2o, or none")
    parser.add_argument("-s", "--seconds", type=int, default=2, help="seconds of each run")
    parser.add_argument("-r", "--rounds", type=int, default=20)
    parser.add_argument("-n", type=int, default=2000, help="connections of each of the two steps of idle")
    parser.add_argument("--first-port", type=int, default=8500)
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--client-cpu", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.tenfold = str(pathlib.Path(args.tenfold).resolve())  # servers start in another folder
    args.workloads = names if args.workloads == ["all"] else args.workloads
    args.engines = [] if args.engines == "none" else args.engines.split(",")
    args.peers = [] if args.peers == "none" else args.peers.split(",")
    for given, legal in ((args.workloads, names), (args.peers, TLS_PEERS)):
        if unknown := [name for name in given if name not in legal]:
            parser.error(f"{', '.join(unknown)}: not one of {', '.join(legal)}")
    compare.check_programs(args)
    return args


class Servers:
    """Starts the servers of a workload. `http1` has the names of rows that are measured with HTTP/1.1."""

    def __init__(self, fleet, args, tls):
        self.fleet, self.args, self.tls, self.http1 = fleet, args, tls, set()

    def floors(self, size):
        certificate = ["@RUN@/cert.pem", "@RUN@/key.pem"] if self.tls else []
        return {name: self.fleet.start(name, [str(HERE / "null_h2"), "@PORT@", str(size), *certificate]) for name in ("floor", "floor'")}

    def pid(self, row):
        """The first process of a row. Rows of one server begin with the same word."""
        server, _ = self.fleet.servers[row.partition(" ")[0]]
        return server.pid

    def tenfold(self, engine):
        command = [self.args.tenfold, "serve", str(WWW), "--listen", "127.0.0.1:@PORT@", "--engine", engine,
                   "--access-log", "off", "--control", "off"]
        if engine not in ("naive", "fork", "thread", "pool"):
            command += ["--workers", "1"]
        if self.tls:
            command += ["--tls-certificate", "@RUN@/cert.pem", "--tls-key", "@RUN@/key.pem"]
        port = self.fleet.start(engine, [*command, *(word for option in self.args.option for word in option.split())])
        self.http1.add(f"{engine} http/1.1")
        if speaks_http2(port, self.tls):
            return {engine: port, f"{engine} http/1.1": port}
        print(f"{engine} does not speak HTTP/2: only its HTTP/1.1 is measured", file=sys.stderr)
        return {f"{engine} http/1.1": port}

    def peer(self, name):
        command = (TLS_PEERS if self.tls else compare.PEERS)[name]
        file = HERE / "peers" / f"{name}{'-tls' if self.tls else ''}.conf"
        text = file.read_text()
        if name == "nginx" and not self.tls:
            text = text.replace(" reuseport", " http2 reuseport")  # a listener with http2 has no HTTP/1.1
        port = self.fleet.start(name, command, config=(file.name, text))
        if not speaks_http2(port, self.tls):
            raise SystemExit(f"{name} does not speak HTTP/2")
        return {name: port}


def speaks_http2(port, tls):
    """Whether the server chooses h2 by ALPN, and answers the preface of HTTP/2 with SETTINGS."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    if tls:
        context = ssl._create_unverified_context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        sock = context.wrap_socket(sock, server_hostname="localhost")
    with sock:
        if tls and sock.selected_alpn_protocol() != "h2":
            return False
        sock.sendall(PREFACE + bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]))
        return sock.recv(9)[3:4] == bytes([SETTINGS])


def h2load(args, tls, place, http1, options):
    """The command of h2load."""
    return ["taskset", "-c", str(args.client_cpu), "h2load", "-t1", *(["--h1"] if http1 else []), *options,
            f"{'https' if tls else 'http'}://127.0.0.1:{place.port}{place.path}"]


def driver(args, work, http1):
    """Returns the function that drives a server of this workload, for `measure`."""
    def drive(seconds, place):
        is_http1 = place.name in http1
        connections, streams = work.http1 if is_http1 and work.http1 else (work.connections, work.streams)
        total = work.per_second * seconds
        if work.close:
            # Ten times a second, because h2load opens the connections of a period at the same moment.
            options = [f"-n{total}", f"-c{total}", f"-r{work.per_second // 10}", "--rate-period=100ms"]
        else:
            options = [f"-c{connections}", f"-m{streams}", f"-n{total}" if total else f"-D{seconds}"]
        run = subprocess.run(h2load(args, work.tls, place, is_http1, options), capture_output=True, text=True)
        counts = {name: int(count) for count, name in re.findall(r"(\d+) (done|succeeded|failed|errored|timeout)\b", run.stdout)}
        rate = re.search(r"finished in \S+, ([\d.]+) req/s", run.stdout)
        if not rate or not counts.get("succeeded"):
            raise SystemExit(f"{place.name}, port {place.port}: h2load completed no request:\n{run.stdout}{run.stderr}")
        trouble = [f"{counts[name]} {name}" for name in ("failed", "errored", "timeout") if counts[name]]
        protocol = re.search(r"Application protocol: (\S+)", run.stdout)
        if protocol and protocol.group(1).startswith("http/1.1") != is_http1:
            trouble.append(protocol.group(1))
        return counts["succeeded"], float(rate.group(1)), "-", trouble
    return drive


def check_length(args, work, place, http1, length):
    """Exits if the response has another length than the file."""
    run = subprocess.run(h2load(args, work.tls, place, http1, ["-n1"]), capture_output=True, text=True)
    found = re.search(r"\((\d+)\) data", run.stdout)
    if not found or int(found.group(1)) != length or "1 2xx" not in run.stdout:
        raise SystemExit(f"{place.name}: not 200 with {length} bytes:\n{run.stdout}{run.stderr}")


def run(work, run_folder, args):
    """Measures a workload and returns its text."""
    length = (WWW / work.path.lstrip("/")).stat().st_size
    with Fleet(run_folder, WWW, args.server_cpu, args.first_port) as fleet:
        servers = Servers(fleet, args, work.tls)
        ports = servers.floors(length)
        for engine in args.engines:
            ports |= servers.tenfold(engine)
        for peer in args.peers:
            ports |= servers.peer(peer)
        places = [Place(name, port, work.path) for name, port in ports.items()]
        for place in places:
            check_length(args, work, place, place.name in servers.http1, length)
        pids = {name: [servers.pid(name)] for name in ports}
        results = measure(places, args.seconds, args.rounds, args.seed, driver(args, work, servers.http1), pids)
    lines = [f"== {work.title}", table(results, dict.fromkeys(ports, "floor"))]
    own = [name for name in ports if name.partition(" ")[0] in args.engines]
    others = args.peers + [name for name in own if name in servers.http1]
    for name, other in ((name, other) for name in own for other in others):
        if name != other and not (name in servers.http1 and other in servers.http1):
            mean, low, high = ratio(results, name, other, args.seed)
            lines.append(f"{name} / {other}: {mean:.2f}  {low:.2f} .. {high:.2f}")
    return "\n".join(lines)


def rest(pids):
    """Waits until the processes have used no CPU time for a second."""
    used, since = cpu_seconds(with_descendants(pids)), time.monotonic()
    while time.monotonic() < since + 1:
        time.sleep(0.1)
        now = cpu_seconds(with_descendants(pids))
        if now > used + 0.002:
            used, since = now, time.monotonic()


def idle_bytes(args, place, http1, pids):
    """Bytes of private memory per connection in the second step."""
    clients, sizes = [], []
    # Each client makes its second request after 100 s.
    options = [f"-n{2 * args.n}", f"-c{args.n}", f"-r{max(args.n // 40, 1)}", "--rate-period=100ms", "--rps=0.01"]
    try:
        for _ in range(2):
            clients.append(subprocess.Popen(h2load(args, True, place, http1, options), stdout=subprocess.DEVNULL))
            time.sleep(4.5)  # the connections of a step are opened in four seconds
            rest(pids)
            sizes.append(private_kib(pids))
        held = subprocess.run(["ss", "-tnH", "state", "established", f"sport = :{place.port}"], capture_output=True, text=True, check=True)
        if (count := len(held.stdout.splitlines())) < 2 * args.n:
            raise SystemExit(f"{place.name} holds {count} of {2 * args.n} connections")
    finally:
        for client in clients:
            client.kill()
            client.wait()
    return (sizes[1] - sizes[0]) * 1024 / args.n


def idle(run_folder, args):
    """Measures memory and returns its text."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sizes = {}
    for _ in range(min(args.rounds, IDLE_RUNS)):
        todo = [(Servers.tenfold, engine) for engine in args.engines] + [(Servers.peer, peer) for peer in args.peers]
        for start, name in todo:
            with Fleet(run_folder, WWW, args.server_cpu, args.first_port) as fleet:
                servers = Servers(fleet, args, tls=True)
                ports = start(servers, name)
                for row in list(ports):
                    if name not in fleet.servers:  # each row has a fresh server
                        ports = start(servers, name)
                    place = Place(row, ports[row], "/1k.html")
                    sizes.setdefault(row, []).append(idle_bytes(args, place, row in servers.http1, [servers.pid(row)]))
                    fleet.stop(name)
    lines = [f"== memory of an idle connection after a request, TLS, {args.n} connections", f"{'server':<18}{'bytes':>8}{'min':>8}{'max':>8}"]
    lines += [f"{row:<18}{statistics.median(all):>8.0f}{min(all):>8.0f}{max(all):>8.0f}" for row, all in sizes.items()]
    return "\n".join(lines)


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def get(stream, path, priority):
    """A request whose fields are literals without Huffman code (RFC 7541 §6.2.2)."""
    literal = lambda text: bytes([len(text)]) + text.encode()
    block = b"\x82\x87" + b"\x04" + literal(path) + b"\x01" + literal("localhost") + b"\x00" + literal("priority") + literal(priority)
    return frame(HEADERS, END_STREAM_AND_HEADERS, stream, block)


def bytes_in_front(port):
    """The bytes of frames between the request of an urgent stream and its first frame."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    sock.settimeout(30)
    sock.connect(("127.0.0.1", port))
    context = ssl._create_unverified_context()
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(sock, server_hostname="localhost") as sock:
        window = (2**31 - 1).to_bytes(4, "big")
        begin = PREFACE + frame(SETTINGS, 0, 0, b"\x00\x04" + window) + frame(WINDOW_UPDATE, 0, 0, (2**30).to_bytes(4, "big"))
        sock.sendall(begin + b"".join(get(1 + 2 * index, "/video.mp4", "u=4,i") for index in range(10)))
        received, start, asked, pending = 0, time.monotonic(), None, b""
        while True:
            if asked is None and time.monotonic() - start > URGENT_SECONDS / 2:
                sock.sendall(get(21, "/1k.html", "u=0"))
                asked = received
            data = sock.recv(4096)
            if not data:
                raise SystemExit(f"port {port}: the connection ended before the urgent stream")
            pending += data
            while len(pending) >= 9 and len(pending) >= (size := 9 + int.from_bytes(pending[:3], "big")):
                if int.from_bytes(pending[5:9], "big") == 21:
                    return received - asked
                received, pending = received + size, pending[size:]
            time.sleep(max(0, start + received / URGENT_RATE - time.monotonic()))


def urgent(run_folder, args):
    """Counts the bytes in front of an urgent stream and returns the text."""
    counts = {}
    with Fleet(run_folder, WWW, args.server_cpu, args.first_port) as fleet:
        servers = Servers(fleet, args, tls=True)
        ports = {engine: servers.tenfold(engine)[engine] for engine in args.engines}
        for peer in args.peers:
            ports |= servers.peer(peer)
        for _ in range(args.rounds):
            for name, port in ports.items():
                counts.setdefault(name, []).append(bytes_in_front(port))
    lines = ["== bytes in front of an urgent stream, ten streams of 66 MiB, TLS, 2 Mbit/s", f"{'server':<18}{'bytes':>8}{'min':>8}{'max':>8}"]
    lines += [f"{name:<18}{statistics.median(all):>8.0f}{min(all):>8}{max(all):>8}" for name, all in counts.items()]
    return "\n".join(lines)


def main():
    args = parse()
    rows = 2 + 2 * len(args.engines) + len(args.peers)
    measured = len([name for name in args.workloads if name in WORKLOADS]) * (rows * args.rounds * (args.seconds + 0.5) + 5)
    resting = IDLE_SECONDS * min(args.rounds, IDLE_RUNS) * (rows - 2) if "idle" in args.workloads else 0
    resting += URGENT_SECONDS * args.rounds * rows if "urgent" in args.workloads else 0
    print(f"at most about {(measured + resting) / 60:.0f} minutes ...", file=sys.stderr, flush=True)
    print(describe(args, TLS_PEERS), f"h2load   {version(['h2load', '--version'])}", sep="\n", end="\n\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-") as run_folder:
        make_certificate(run_folder)
        for name in args.workloads:
            other = {"idle": idle, "urgent": urgent}.get(name)
            text = other(run_folder, args) if other else run(WORKLOADS[name], run_folder, args)
            print(text + "\n", flush=True)


if __name__ == "__main__":
    main()
