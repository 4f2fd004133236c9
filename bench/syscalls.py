#!/usr/bin/env python3
"""Counts the system calls per request of a running server, by name, with strace.

usage: syscalls.py [-n REQUESTS] [-c CONNECTIONS] [--pipeline N] [--close | --wrk SECONDS] PORT[/PATH] ...

Attaches strace -c -f to the processes that listen on PORT and to their descendants, makes requests with its own client
(closed loop: the next request of a connection follows its response), and prints the count of each call, and its share
per request. Each connection makes one request before strace is attached, so the counts are those of the steady state.
With --close, every request has its own connection and everything counts. --wrk uses wrk instead, which keeps all its
connections busy; then the connects count, too.

Counts are exact and do not depend on the speed of the machine, unless a call serves several connections (a wait with
-c above 1). Then compare only within one run, with the floor and the same client.
Needs: strace, ss (iproute2), and the right to trace (root, or your own processes if ptrace_scope is 0).
"""
import argparse, os, re, selectors, signal, socket, subprocess, sys, tempfile, time

from measure import Load, drive
from processes import listeners, place, with_descendants

ATTACH_SECONDS = 10


class Tracer:
    """Counts the calls of processes with strace during `with`. The result is in `counts`."""

    def __init__(self, pids):
        self.pids, self.counts = pids, {}

    def __enter__(self):
        self.summary = tempfile.NamedTemporaryFile("r", prefix="syscalls-", suffix=".txt")
        attach = [option for pid in self.pids for option in ("-p", str(pid))]
        self.strace = subprocess.Popen(["strace", "-c", "-f", "-o", self.summary.name, *attach], stderr=subprocess.PIPE)
        self._wait_until_attached()
        return self

    def _wait_until_attached(self):
        """Waits until every task has a TracerPid. The messages of strace come too early."""
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
            return True  # it ended
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
    """The length of the complete response at the start of `data`; None if it is incomplete."""
    head, separator, body = bytes(data).partition(b"\r\n\r\n")
    if not separator:
        return None
    found = re.search(rb"\r\ncontent-length:[ \t]*(\d+)", head, re.IGNORECASE)
    length = int(found.group(1)) if found else 0
    return len(head) + 4 + length if len(body) >= length else None


class Connection:
    """A keep-alive connection with a batch of requests in flight."""

    def __init__(self, server, batch):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = f"GET {server.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self.batch, self.received, self.missing = batch, bytearray(), 0

    def ask(self, count):
        self.socket.sendall(self.request * count)
        self.missing = count

    def read(self):
        """Receives. Returns whether the batch is complete."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise SystemExit("the server closed a keep-alive connection")
        self.received += data
        while self.missing and (length := response_length(self.received)):
            del self.received[:length]
            self.missing -= 1
        return self.missing == 0


def keep_alive(connections, requests):
    """Makes `requests` requests in batches. Each connection gets its next batch after its responses."""
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
    """Makes each request on its own connection, one after the other."""
    request = f"GET {server.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    for _ in range(requests):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
            sock.sendall(request)
            while sock.recv(1 << 20):
                pass


def count_calls(server, args):
    """Returns the number of requests, and {name: calls} of the server for them."""
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
    parser.add_argument("--pipeline", type=int, default=1, help="requests in one send of a connection")
    client = parser.add_mutually_exclusive_group()
    client.add_argument("--close", action="store_true", help="a connection for each request, one after the other")
    client.add_argument("--wrk", type=int, metavar="SECONDS", help="use wrk for this time instead of -n requests")
    args = parser.parse_args()
    for server in map(place, args.servers):
        requests, counts = count_calls(server, args)
        total = sum(counts.values())
        print(f"{server.name}: {requests} requests, {total} calls, {total / requests:.3f} per request")
        for name, calls in sorted(counts.items(), key=lambda item: -item[1]):
            print(f"  {name:<20}{calls:>9}{calls / requests:>10.4f}")


if __name__ == "__main__":
    sys.exit(main())
