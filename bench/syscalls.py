#!/usr/bin/env python3
"""System calls per request of a running server, by name, as strace counts them.

usage: syscalls.py [-n REQUESTS] [-c CONNECTIONS] [--pipeline N] [--close | --wrk SECONDS] PORT[/PATH] ...

Attaches strace -c -f to the processes that listen on PORT and to their descendants, makes the requests
with a small client of its own (closed loop: the next request of a connection leaves when its answer is
complete), and prints every call's count and its share per request. Connections are opened, and each
makes one request, before strace is attached, so that what is counted is the steady state; with --close
every request has its own connection and everything is counted. --wrk drives with wrk instead, which
keeps all its connections busy; opening them is then counted too.

Counts are exact and do not depend on the machine's speed, except where calls serve several connections
at once (a wait at -c above 1): there the batches do, so compare within one run, beside the floor, with
the same client.
Needs: strace, ss (iproute2), and the right to trace (root, or your own processes where ptrace_scope is 0).
"""
import argparse, os, re, selectors, signal, socket, subprocess, sys, tempfile, time

from measure import Load, drive
from processes import listeners, place, with_descendants

ATTACH_SECONDS = 10


class Tracer:
    """strace counting the calls of some processes, from `with` to its end; then `counts` is filled."""

    def __init__(self, pids):
        self.pids, self.counts = pids, {}

    def __enter__(self):
        self.summary = tempfile.NamedTemporaryFile("r", prefix="syscalls-", suffix=".txt")
        attach = [option for pid in self.pids for option in ("-p", str(pid))]
        self.strace = subprocess.Popen(["strace", "-c", "-f", "-o", self.summary.name, *attach], stderr=subprocess.PIPE)
        self._wait_until_attached()
        return self

    def _wait_until_attached(self):
        """Every task's TracerPid says whether it is traced; strace's own messages come too early."""
        deadline = time.monotonic() + ATTACH_SECONDS
        while not all(self._traced(pid) for pid in self.pids):
            if self.strace.poll() is not None:
                raise SystemExit(f"strace could not attach: {self.strace.stderr.read().decode().strip()}")
            if time.monotonic() > deadline:
                self.strace.terminate()
                raise SystemExit(f"strace did not attach to {sorted(self.pids)} within {ATTACH_SECONDS} s")
            time.sleep(0.02)

    def _traced(self, pid):
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
            states = [open(f"/proc/{pid}/task/{task}/status").read() for task in tasks]
        except OSError:
            return True  # it ended: nothing to trace
        return all(f"TracerPid:\t{self.strace.pid}\n" in state for state in states)

    def __exit__(self, *_):
        self.strace.send_signal(signal.SIGINT)
        self.strace.communicate(timeout=30)
        # % time, seconds, usecs/call, calls, errors (may be empty), name
        for line in self.summary:
            found = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", line)
            if found and found.group(2) != "total":
                self.counts[found.group(2)] = int(found.group(1))
        self.summary.close()


def response_length(data):
    """Bytes of the complete response at the start of `data`, or None while some are missing."""
    head, separator, body = bytes(data).partition(b"\r\n\r\n")
    if not separator:
        return None
    found = re.search(rb"\r\ncontent-length:[ \t]*(\d+)", head, re.IGNORECASE)
    length = int(found.group(1)) if found else 0
    return len(head) + 4 + length if len(body) >= length else None


class Connection:
    """One keep-alive connection with a batch of requests in flight."""

    def __init__(self, server, batch):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = f"GET {server.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self.batch, self.received, self.missing = batch, bytearray(), 0

    def ask(self, count):
        self.socket.sendall(self.request * count)
        self.missing = count

    def read(self):
        """Takes what has come; True when the batch is answered."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise SystemExit("the server closed a keep-alive connection")
        self.received += data
        while self.missing and (length := response_length(self.received)):
            del self.received[:length]
            self.missing -= 1
        return self.missing == 0


def keep_alive(connections, requests):
    """Makes `requests` requests in batches, as evenly over the connections as they answer."""
    selector = selectors.DefaultSelector()
    left = requests

    def ask(connection):
        nonlocal left
        count = min(connection.batch, left)
        left -= count
        connection.ask(count)

    busy = 0
    for connection in connections:
        if left:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            ask(connection)
            busy += 1
    while busy:
        for key, _ in selector.select():
            if key.data.read():
                if left:
                    ask(key.data)
                else:
                    selector.unregister(key.fileobj)
                    busy -= 1


def one_each(server, requests):
    """A connection for each request, one after the other."""
    request = f"GET {server.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    for _ in range(requests):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
            sock.sendall(request)
            while sock.recv(1 << 20):
                pass


def count_calls(server, args):
    """Requests made, and {name: calls} that the server needed for them."""
    pids = with_descendants(listeners(server.port))
    own_connections = 0 if args.close or args.wrk else args.connections
    opened = [Connection(server, args.pipeline) for _ in range(own_connections)]
    for connection in opened:
        keep_alive([connection], 1)
    requests = args.requests
    with Tracer(pids) as tracer:
        if args.wrk:
            requests, *_ = drive(Load(connections=args.connections, seconds=args.wrk), server)
        elif args.close:
            one_each(server, requests)
        else:
            keep_alive(opened, requests)
    for connection in opened:
        connection.socket.close()
    return requests, tracer.counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", metavar="[NAME=]PORT[/PATH]")
    parser.add_argument("-n", "--requests", type=int, default=10000)
    parser.add_argument("-c", "--connections", type=int, default=1)
    parser.add_argument("--pipeline", type=int, default=1, help="requests sent at once on a connection")
    client = parser.add_mutually_exclusive_group()
    client.add_argument("--close", action="store_true", help="a connection for each request, one after the other")
    client.add_argument("--wrk", type=int, metavar="SECONDS", help="drive with wrk for so long, not with -n requests")
    args = parser.parse_args()
    for server in map(place, args.servers):
        requests, counts = count_calls(server, args)
        total = sum(counts.values())
        print(f"{server.name}: {requests} requests, {total} calls, {total / requests:.3f} per request")
        for name, calls in sorted(counts.items(), key=lambda item: -item[1]):
            print(f"  {name:<20}{calls:>9}{calls / requests:>10.4f}")


if __name__ == "__main__":
    sys.exit(main())
