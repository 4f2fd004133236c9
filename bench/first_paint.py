#!/usr/bin/env python3
"""Measures the first paint of a page in Chromium over a slow line, with and without the priorities of its requests.

usage: first_paint.py [options]

The page has a style sheet that imports another, 60 images below the window, and a script that adds a third style sheet
with a high priority half a second later, when the browser has requested the images. Chromium reaches Tenfold through a
relay with 1.6 Mbit/s and a small receive buffer. Three cases:

  by priority   the relay passes all frames on
  all equal     the relay adds a PRIORITY_UPDATE with urgency 3 to each request and drops PRIORITY frames, so responses
                are served in the order of their requests
  HTTP/1.1      the relay offers only HTTP/1.1

Rounds run the cases in random order, each with a new browser. The page reports its times in the paths of requests, and
the program reads them from the access log: first paint, the third style sheet, and all files. It prints means in
seconds with 95 % bootstrap intervals, as a table for the book.

Needs: the release binary, chromium, openssl. Traffic goes only to 127.0.0.1.
"""
import argparse, pathlib, random, re, select, socket, ssl, statistics, subprocess, sys, tempfile, threading, time

from environment import version

HERE = pathlib.Path(__file__).resolve().parent
IMAGES, IMAGE_BYTES, STYLE_BYTES = 60, 20_000, 40_000
TIMES = {"paint": "first paint", "late": "late style sheet", "load": "all files"}
RATE = 200_000  # bytes per second: 1.6 Mbit/s
PIECE = 4096
CASES = ("by priority", "all equal", "HTTP/1.1")
# Bytes of the preface, and types of frames (RFC 9113 §6, RFC 9218 §7.1).
PREFACE, HEADERS, PRIORITY, PRIORITY_UPDATE = 24, 1, 2, 16
REPORT = """<script>
const report = (name, time) => fetch("/" + name + "/" + Math.round(time));
new PerformanceObserver(list => list.getEntriesByName("first-contentful-paint")
    .forEach(entry => report("paint", entry.startTime))).observe({ type: "paint", buffered: true });
addEventListener("load", () => report("load", performance.now()));
</script>"""
LATE = """<script>
const sheet = document.createElement("link");
[sheet.rel, sheet.fetchPriority, sheet.onload] = ["stylesheet", "high", () => report("late", performance.now())];
sheet.href = "late.css";
setTimeout(() => document.head.append(sheet), 500);
</script>
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"), help="the release binary")
    parser.add_argument("-r", "--rounds", type=int, default=10)
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.tenfold = str(pathlib.Path(args.tenfold).resolve())
    return args


def make_site(folder):
    folder.mkdir()
    draw = random.Random(1)
    for number in range(IMAGES):
        # A PNG of a pixel, followed by bytes that do not compress.
        pixel = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fc"
                              "cfc0f01f000505028003c0a3c10000000049454e44ae426082")
        (folder / f"{number}.png").write_bytes(pixel + draw.randbytes(IMAGE_BYTES - len(pixel)))
    (folder / "main.css").write_text('@import "theme.css";\nbody { margin: 2em }\n')
    for name in ("theme.css", "late.css"):
        rules = (f".c{draw.randrange(10**9)} {{ color: #{draw.randrange(16**6):06x} }}\n" for _ in range(STYLE_BYTES // 30))
        (folder / name).write_text("".join(rules))
    images = "".join(f'<img src="{number}.png" width="40" height="40" alt="">\n' for number in range(IMAGES))
    page = f'<!doctype html><title>A page</title><link rel="stylesheet" href="main.css">{REPORT}<h1 style="height: 200vh">A page</h1>\n{images}{LATE}'
    (folder / "index.html").write_text(page)


def equal(buffer, begun):
    """The frames of a client with equal priorities, the incomplete rest, and whether the preface has passed."""
    out = b""
    if not begun:
        if len(buffer) < PREFACE:
            return out, buffer, False
        out, buffer = buffer[:PREFACE], buffer[PREFACE:]
    while len(buffer) >= 9:
        length, kind, stream = int.from_bytes(buffer[:3], "big"), buffer[3], buffer[5:9]
        if len(buffer) < 9 + length:
            break
        frame, buffer = buffer[:9 + length], buffer[9 + length:]
        if kind == HEADERS:
            out += bytes([0, 0, 7, PRIORITY_UPDATE, 0, 0, 0, 0, 0]) + stream + b"u=3"
        if kind not in (PRIORITY, PRIORITY_UPDATE):
            out += frame
    return out, buffer, True


class Side:
    """A TLS connection over a blocking socket, without buffers of its own."""

    def __init__(self, sock, context, **options):
        self.sock, self.incoming, self.outgoing = sock, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, **options)
        while True:
            try:
                self.tls.do_handshake()
                self.flush()
                return
            except ssl.SSLWantReadError:
                self.flush()
                if not (data := sock.recv(PIECE)):
                    raise ConnectionError("the handshake ended")
                self.incoming.write(data)

    def flush(self):
        if data := self.outgoing.read():
            self.sock.sendall(data)
        return len(data)

    def receive(self):
        """The plaintext of the next bytes; None at the end."""
        if not (data := self.sock.recv(PIECE)):
            return None
        self.incoming.write(data)
        return self.opened()

    def opened(self):
        """The plaintext of received bytes; None at the end."""
        plain = b""
        try:
            while part := self.tls.read(1 << 16):
                plain += part
            return None
        except ssl.SSLWantReadError:
            return plain

    def send(self, plain):
        if plain:
            self.tls.write(plain)
        return self.flush()


class Relay:
    """A relay to a port of Tenfold. Its connections share the rate."""

    def __init__(self, case, port, folder):
        self.case, self.port, self.free = case, port, time.monotonic()
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.client = ssl._create_unverified_context()
        for context in (self.server, self.client):
            context.set_alpn_protocols(["http/1.1"] if case == "HTTP/1.1" else ["h2"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            sock, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def wait(self, count):
        """Waits for the time of `count` bytes on the line."""
        with self.lock:
            self.free = max(self.free, time.monotonic()) + count / RATE
            until = self.free
        time.sleep(max(until - time.monotonic(), 0))

    def serve(self, sock):
        up = socket.socket()
        up.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            near = Side(sock, self.server, server_side=True)
            up.connect(("127.0.0.1", self.port))
            far = Side(up, self.client, server_hostname="localhost")
            rest, begun = b"", False
            # Requests may arrive with the last message of a handshake.
            asked, answered = near.opened(), far.opened()
            while asked is not None and answered is not None:
                if self.case == "all equal":
                    asked, rest, begun = equal(rest + asked, begun)
                far.send(asked)
                self.wait(near.send(answered))
                ready, _, _ = select.select([sock, up], [], [])
                asked = near.receive() if sock in ready else b""
                answered = far.receive() if up in ready else b""
        except (OSError, ConnectionError):
            pass
        finally:
            sock.close()
            up.close()


def load(case, port, folder, log):
    """Loads the page in a new browser. Returns the times of first paint and load in milliseconds."""
    relay, before = Relay(case, port, folder), len(log.read_text())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--ignore-certificate-errors",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
                   "--disable-dev-shm-usage", "--remote-debugging-port=0",
                   f"--user-data-dir={profile}", f"https://localhost:{relay.listener.getsockname()[1]}/"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            by = time.monotonic() + 60
            while time.monotonic() < by:
                text = log.read_text()[before:]
                times = {name: int(found.group(1)) for name in TIMES if (found := re.search(rf"/{name}/(\d+) HTTP", text))}
                if len(times) == len(TIMES):
                    wanted = "HTTP/1.1" if case == "HTTP/1.1" else "HTTP/2.0"
                    if wanted not in text:
                        raise SystemExit(f"{case}: the page was not loaded over {wanted}")
                    return times
                time.sleep(0.05)
            raise SystemExit(f"{case}: no report of the page within 60 s:\n{text}")
        finally:
            browser.terminate()
            browser.wait()
            relay.listener.close()


def interval(values, seed):
    """The mean and its bootstrap interval in seconds, in the form that charts of the book read."""
    draw = random.Random(seed)
    means = sorted(statistics.mean(draw.choices(values, k=len(values))) for _ in range(2000))
    return f"{statistics.mean(values) / 1000:.2f} [{means[50] / 1000:.2f}–{means[1949] / 1000:.2f}]"


def main():
    args = parse()
    with tempfile.TemporaryDirectory() as run:
        folder = pathlib.Path(run)
        make_site(folder / "site")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-keyout", folder / "key.pem",
                        "-out", folder / "cert.pem"], check=True, capture_output=True)
        log, errors = folder / "access.log", folder / "errors"
        command = [args.tenfold, "serve", str(folder / "site"), "--listen", "127.0.0.1:0", "--engine", args.engine, "--workers",
                   "1", "--control", "off", "--access-log", str(log), "--log-mode", "sync", "--tls-certificate",
                   str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")]
        server = subprocess.Popen(command, stderr=errors.open("w"))
        try:
            by = time.monotonic() + 10
            while not (found := re.search(r"127\.0\.0\.1:(\d+)", errors.read_text())) or not log.exists():
                if time.monotonic() > by:
                    raise SystemExit(f"the server did not start:\n{errors.read_text()}")
                time.sleep(0.05)
            order, results = random.Random(args.seed), {case: [] for case in CASES}
            for number in range(args.rounds):
                for case in order.sample(CASES, len(CASES)):
                    results[case].append(load(case, int(found.group(1)), folder, log))
                    print(number, case, results[case][-1], file=sys.stderr, flush=True)
        finally:
            server.terminate()
            server.wait()
    print(f"<!-- {version(['chromium', '--version'])}, {args.rounds} rounds, seed {args.seed}; bench/first_paint.py -->")
    print("| responses |", " | ".join(f"{shown}, s" for shown in TIMES.values()), "|\n|", " | ".join(["---"] * 4), "|")
    for case, times in results.items():
        cells = [interval([one[name] for one in times], args.seed) for name in TIMES]
        print(f"| {case} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
