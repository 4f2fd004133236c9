#!/usr/bin/env python3
"""Memory that a server holds per idle keep-alive connection.

usage: idle.py [-n CONNECTIONS] [--burst] [--tls] NAME=PORT[/PATH] ...

Opens N connections to each server in turn, makes one request on each, leaves them idle, and prints how
much the private memory of the processes listening on PORT (and of their descendants) grew, per
connection. Two sizes are opened, N and 2N, and the slope between them is printed too: it leaves out
what a server allocates once.
--burst sends half a head on all of them before any is answered, so that every connection was busy at
once before it became idle: what does not go back then is held for ever. Kernel memory (sockets,
io_uring) is not in these figures. Traffic goes to 127.0.0.1 only.
"""
import argparse, resource, socket, ssl, time

from processes import listeners, place, with_descendants

# A client address has some 28,000 ephemeral ports; the next one is used well before they run out.
CONNECTIONS_PER_ADDRESS = 20000


def private_kib(pids):
    """Private resident memory of the processes and their descendants, in KiB."""
    total = 0
    for pid in with_descendants(pids):
        for line in open(f"/proc/{pid}/smaps_rollup"):
            if line.startswith(("Private_Dirty", "Private_Clean")):
                total += int(line.split()[1])
    return total


def open_idle(server, count, held, burst, context=None):
    """Opens `count` connections, makes a request on each, and returns how many were answered with 200."""
    request = f"GET {server.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    answered, fresh = 0, []
    for _ in range(count):
        sock = socket.socket()
        sock.settimeout(5)
        sock.bind((f"127.0.0.{2 + len(held) // CONNECTIONS_PER_ADDRESS}", 0))
        sock.connect(("127.0.0.1", server.port))
        if context:
            sock = context.wrap_socket(sock, server_hostname="localhost")
        sock.sendall(request[:20] if burst else request)
        if not burst:
            answered += sock.recv(65536).startswith(b"HTTP/1.1 200")
        held.append(sock)
        fresh.append(sock)
    if burst:
        for sock in fresh:
            sock.sendall(request[20:])
        for sock in fresh:
            answered += sock.recv(65536).startswith(b"HTTP/1.1 200")
    time.sleep(1)  # what the server does lazily is done
    return answered


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", metavar="NAME=PORT[/PATH]")
    parser.add_argument("-n", type=int, default=4000, help="connections of the first step; the second opens as many again")
    parser.add_argument("--tls", action="store_true", help="https, with any certificate")
    parser.add_argument("--burst", action="store_true", help="all connections busy at once before they become idle")
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if 2 * args.n + 100 > hard:
        raise SystemExit(f"{2 * args.n} connections do not fit this process's limit of {hard} descriptors")
    context = ssl._create_unverified_context() if args.tls else None
    for server in map(place, args.servers):
        held, pids = [], listeners(server.port)
        start = private_kib(pids)
        answered = open_idle(server, args.n, held, args.burst, context)
        first = private_kib(pids)
        answered += open_idle(server, args.n, held, args.burst, context)
        second = private_kib(pids)
        print(f"{server.name:<16} answered {answered}/{2 * args.n}  bytes/connection:"
              f" first {args.n}: {(first - start) * 1024 / args.n:.0f}  next {args.n}: {(second - first) * 1024 / args.n:.0f}")
        for sock in held:
            sock.close()
        time.sleep(1)


if __name__ == "__main__":
    main()
