#!/usr/bin/env python3
"""Measures Tenfold, nginx, Caddy and h2o, and writes the rows of costs in README's table.

usage: readme.py [-s SECONDS] [-r ROUNDS]

Each cell is server CPU per request as a multiple of the floor, with a 95 % interval over the rounds. The measurement
takes about six minutes, in which nothing else should run. Needs what compare.py needs, with nginx, caddy and h2o.
"""
import argparse, pathlib, re, sys, tempfile, time

import compare
from environment import commit, cpu_model, version_of
from fleet import Fleet
from measure import ratio

README = compare.HERE.parent / "README.md"
SERVERS = {"Tenfold": "epoll", "nginx": "nginx", "Caddy": "caddy", "h2o": "h2o"}
WORKLOADS = ("1k", "close", "64k")


def row(gathered, title):
    """A line of the table."""
    cells = []
    for name in SERVERS.values():
        mean, low, high = ratio(gathered.results, name, gathered.bases[name])
        cells.append(f"{mean:.2f} [{low:.2f}–{high:.2f}]")
    return f"| {title} | " + " | ".join(cells) + " |"


def facts(args):
    """The date, the machine and the versions."""
    peers = {name: server for name, server in SERVERS.items() if server in compare.PEERS}
    numbers = {name: re.search(r"\d+(\.\d+)+", version_of(server)).group() for name, server in peers.items()}
    others = ", ".join(f"{name} {number}" for name, number in numbers.items())
    return (f"Measured on {time.strftime('%Y-%m-%d')} by `bench/readme.py`, {args.rounds} rounds of {args.seconds} s: "
            f"{cpu_model()}, commit {commit()}, {others}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-s", "--seconds", type=int, default=2)
    parser.add_argument("-r", "--rounds", type=int, default=9)
    parser.add_argument("--tenfold", default=str(compare.HERE.parent / "target/release/tenfold"))
    args = parser.parse_args()
    engines, peers = ["epoll"], [name for name in SERVERS.values() if name in compare.PEERS]
    args = argparse.Namespace(**vars(args), server_cpu=0, client_cpu=1, first_port=8300, seed=1, option=[], peers=peers,
                              engines=engines, peer_threads=1)
    args.tenfold = str(pathlib.Path(args.tenfold).resolve())
    compare.check_programs(args)

    text = README.read_text()
    said = facts(args)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        with Fleet(folder, compare.WWW, args.server_cpu, args.first_port) as fleet:
            lasting = compare.start_lasting(fleet, args)
            for name in WORKLOADS:
                work = compare.WORKLOADS[name]
                line = row(compare.gather(work, fleet, lasting, args), work.title)
                print(line, flush=True)
                text, found = re.subn(rf"^\| {re.escape(work.title)} \|.*$", line, text, flags=re.M)
                if found != 1:
                    raise SystemExit(f"{README}: {found} rows begin with `| {work.title} |`, not one")
    text, found = re.subn(r"^Measured on\b.*$", said, text, flags=re.M)
    if found != 1:
        raise SystemExit(f"{README}: {found} lines begin with `Measured on`, not one")
    README.write_text(text)
    print(f"{said}\nwritten to {README}")


if __name__ == "__main__":
    sys.exit(main())
