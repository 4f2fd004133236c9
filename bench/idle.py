#!/usr/bin/env python3
"""Measures the memory of a server per idle keep-alive connection.

usage: idle.py [-n CONNECTIONS] [-p PROCESSES] [--burst] [--tls] NAME=PORT[/PATH] ...

Opens N connections to each server in turn, makes one request on each, and leaves them idle. Prints the growth of the
private memory of the processes that listen on PORT, and of their descendants, per connection. Then opens N more
connections and prints the slope between both steps, which excludes one-time allocations.
-p opens the connections from several processes with an address each, because a process has a limit of descriptors.
--burst sends half a head on all connections before any response, so that all connections are busy at the same time
before they become idle. Memory that is not freed then stays allocated. Kernel memory (sockets, io_uring) does not
count. Traffic goes only to 127.0.0.1.
"""
import argparse, multiprocessing, re, resource, select, socket, ssl, time

from processes import listeners, place, with_descendants

# A client address, and so a client process, has about 28,000 ephemeral ports.
CONNECTIONS_PER_ADDRESS = 20000


def private_kib(pids):
    """Private resident memory of the processes and their descendants, in KiB."""
    total = 0
    for pid in with_descendants(pids):
        try:
            lines = open(f"/proc/{pid}/smaps_rollup").readlines()
        except PermissionError:  # only root may read the maps of Tenfold's processes
            lines = open(f"/proc/{pid}/status").readlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty", "Private_Clean", "RssAnon")))
    return total


def is_answered(sock):
    """Reads a whole response, and returns whether its status is 200."""
    received, length = b"", None
    while length is None or len(received) < length:
        bytes_more = sock.recv(65536)
        if not bytes_more:
            return False
        received += bytes_more
        head, end, _ = received.partition(b"\r\n\r\n")
        if end:
            length = len(head + end) + int(re.search(rb"(?im)^content-length: (\d+)", head)[1])
    return received.startswith(b"HTTP/1.1 200")


class Client:
    """A client process, which opens connections and holds them."""

    def __init__(self, server, address, context, burst, barrier):
        self.server, self.address, self.context, self.burst, self.barrier = server, address, context, burst, barrier
        self.request = f"GET {server.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self.first, self.held = None, []

    def obey(self, orders):
        """Opens the number of connections of each order. The order 0 checks all connections and ends the process."""
        try:
            while count := orders.recv():
                orders.send(self.open(count))
            orders.send(self.lost())
        except BaseException:
            self.barrier.abort()  # otherwise the other clients would wait
            raise

    def connect(self):
        sock = socket.socket()
        sock.settimeout(30)
        sock.bind((self.address, 0))
        sock.connect(("127.0.0.1", self.server.port))
        return self.context.wrap_socket(sock, server_hostname="localhost") if self.context else sock

    def open(self, count):
        """Opens `count` connections, makes a request on each, and returns the number of responses with 200."""
        answered, fresh = 0, []
        for _ in range(count):
            sock = self.connect()
            sock.sendall(self.request[:20] if self.burst else self.request)
            if self.burst:
                fresh.append(sock)
            else:
                answered += self.keep(sock)
        self.barrier.wait()
        for sock in fresh:
            sock.sendall(self.request[20:])
        return answered + sum(map(self.keep, fresh))

    def keep(self, sock):
        """Reads a response. Keeps only the descriptor, because the TLS state would need 25 KB per connection."""
        answered = is_answered(sock)
        if self.first is None:
            self.first = sock
        else:
            self.held.append(socket.socket(fileno=sock.detach()) if self.context else sock)
        return answered

    def lost(self):
        """The number of ended connections. Makes another request on the first connection."""
        poll = select.poll()
        for sock in self.held:
            poll.register(sock, select.POLLIN)
        ended = len(poll.poll(0))
        self.first.sendall(self.request)
        return ended + (not is_answered(self.first))


class Clients:
    """Client processes, each with its own address."""

    def __init__(self, server, args):
        context = ssl._create_unverified_context() if args.tls else None
        barrier = multiprocessing.Barrier(args.processes)
        self.orders = []
        for number in range(args.processes):
            own, theirs = multiprocessing.Pipe()
            client = Client(server, f"127.0.0.{2 + number}", context, args.burst, barrier)
            multiprocessing.Process(target=client.obey, args=(theirs,), daemon=True).start()
            theirs.close()
            self.orders.append(own)

    def order(self, counts):
        """Sends each process its order, and returns the sum of the replies. A failed process raises EOFError."""
        for orders, count in zip(self.orders, counts):
            orders.send(count)
        return sum(orders.recv() for orders in self.orders)

    def open(self, count):
        each, more = divmod(count, len(self.orders))
        answered = self.order([each + (number < more) for number in range(len(self.orders))])
        time.sleep(1)  # the server finishes deferred work
        return answered

    def lost(self):
        return self.order([0] * len(self.orders))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", metavar="NAME=PORT[/PATH]")
    parser.add_argument("-n", type=int, default=4000, help="connections of each of the two steps")
    parser.add_argument("-p", "--processes", type=int, default=1, help="client processes, which share the connections")
    parser.add_argument("--tls", action="store_true", help="https, with any certificate")
    parser.add_argument("--burst", action="store_true", help="all connections busy at once before they become idle")
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = min(hard - 100, CONNECTIONS_PER_ADDRESS)
    if not 1 <= args.processes <= args.n or 2 * args.n > most * args.processes:
        raise SystemExit(f"{2 * args.n} connections do not fit {args.processes} processes with at most {most} each")
    for server in map(place, args.servers):
        pids = listeners(server.port)
        begun, start = time.monotonic(), private_kib(pids)
        clients = Clients(server, args)
        answered = clients.open(args.n)
        first = private_kib(pids)
        answered += clients.open(args.n)
        second = private_kib(pids)
        took = time.monotonic() - begun
        print(f"{server.name:<16} answered {answered}/{2 * args.n} in {took:.0f} s, lost {clients.lost()}  bytes/connection:"
              f" first {args.n}: {(first - start) * 1024 / args.n:.0f}  next {args.n}: {(second - first) * 1024 / args.n:.0f}"
              f"  both: {(second - start) * 512 / args.n:.0f}")
        time.sleep(1)


if __name__ == "__main__":
    main()
