#!/usr/bin/env python3
"""Measures the costs of every model, sender and switch on this machine, and writes docs/explanation/costs.md.

usage: costs.py [-s SECONDS] [-r ROUNDS] [--only latency] [--out FILE]

Measures one group of switches after the other, with servers on one core and the client on another. Each cost is the
server's CPU microseconds per request, and its ratio to the floor of the same workload. The defaults take about 35
minutes, in which nothing else should run. The second floor in each table shows the noise of the run. --only latency
measures only the latencies, in 4 minutes, and leaves the rest of the page unchanged.

Needs what compare.py needs, without the peers.
"""
import argparse, pathlib, statistics, sys, tempfile
from typing import NamedTuple

import compare, latency
from environment import describe
from fleet import Fleet
from measure import ratio


class Group(NamedTuple):
    """A table: the server of each row, named as for compare.py, and the workloads."""
    title: str
    says: str
    servers: dict
    workloads: tuple


SENDERS = "auto copy mmap sendfile splice zerocopy".split()
MODELS = "naive fork thread pool busy select poll epoll libevent asio asio-proactor uring".split()

GROUPS = [
    Group("I/O models", "Each model has one worker and the sender `auto`. The floor of `uring` is a program on io_uring, if the machine has one.",
          {f"`{model}`": model for model in MODELS}, ("1k", "close")),
    Group("Senders on epoll", "", {f"`{sender}`": f"epoll:{sender}" for sender in SENDERS}, ("1k", "64k", "large")),
    Group("Senders on uring", "", {f"`{sender}`": f"uring:{sender}" for sender in SENDERS}, ("1k", "64k", "large")),
    Group("Dispatch", "On `epoll`; the threads of the pool share one core with the loop.",
          {"`inline`": "epoll", "`reactor`": "epoll+reactor", "`proactor`": "epoll+proactor"}, ("1k", "close")),
    Group("Topologies", "On `epoll`, with one worker: the cost of reaching the worker, not the gain from several cores.",
          {f"`{topology}`": f"epoll --topology {topology}"
           for topology in "single threads reuseport-processes reuseport-threads handoff".split()}, ("1k", "close")),
    Group("Timers", "On `epoll`, 64 connections; the default is `wheel`.",
          {f"`{timer}`": f"epoll --timer {timer}" for timer in ("list", "wheel")}, ("1k", "close")),
    Group("Logs", "On `epoll`, into a file.",
          {"off": "epoll",
           **{f"`{form}`, `{mode}`": f"epoll --access-log @RUN@/{form}-{mode}.log --log-format {form} --log-mode {mode}"
              for form, mode in (("common", "buffered"), ("combined", "buffered"), ("json", "buffered"),
                                 ("common", "sync"), ("common", "async"))}}, ("1k", "close")),
    Group("Writing and socket options", "On `epoll`; all other settings have their defaults.",
          {"defaults": "epoll",
           **{f"`{name} {value}`": f"epoll --{name} {value}" for name, value in
              (("write", "split"), ("write", "per-header"), ("accept", "one"), ("tcp-cork", "on"),
               ("tcp-nodelay", "off"), ("defer-accept", "off"), ("linger", "5"), ("notsent-lowat", "16384"),
               ("backlog", "128"), ("trigger", "lt+lt"), ("trigger", "et+et"))}}, ("1k", "close")),
]


def cell(gathered, name):
    """The median, the ratio and its interval."""
    cost = statistics.median(round_.cost for round_ in gathered.results[name])
    mean, low, high = ratio(gathered.results, name, gathered.bases[name])
    shown = f"{cost:.2f}" if cost < 100 else f"{cost:.0f}"
    return f"{shown} | {mean:.2f} [{low:.2f}–{high:.2f}]"


def rows(group, of_workload):
    """The lines of a table: the floors, their second copies, which show the noise, and the servers."""
    titles = [compare.WORKLOADS[name].title for name in group.workloads]
    yield "| | " + " | ".join(f"{title}: CPU µs | of the floor" for title in titles) + " |"
    yield "| --- |" + " --- | --- |" * len(titles)
    floors = [[f for f in gathered.bases if f.rstrip("'").startswith("null_")] for gathered in of_workload]
    # The names of floors differ between workloads. Each pair of floors is a kind.
    for kind in range(0, max(map(len, floors)), 2):
        for copy, title in ((0, "floor"), (1, "floor again")):
            cells = [cell(gathered, names[kind + copy]) if kind < len(names) else " | "
                     for gathered, names in zip(of_workload, floors)]
            yield f"| {title}{' of the ring' if kind else ''} | " + " | ".join(cells) + " |"
    for title, server in group.servers.items():
        yield f"| {title} | " + " | ".join(cell(gathered, server) for gathered in of_workload) + " |"


def measured(group, args):
    """Starts the servers of a group, measures its workloads, stops them."""
    args = argparse.Namespace(**vars(args), engines=list(group.servers.values()))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        with Fleet(folder, compare.WWW, args.server_cpu, args.first_port) as fleet:
            lasting = compare.start_lasting(fleet, args)
            return [compare.gather(compare.WORKLOADS[name], fleet, lasting, args) for name in group.workloads]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-s", "--seconds", type=int, default=1)
    parser.add_argument("-r", "--rounds", type=int, default=8)
    parser.add_argument("--latency-seconds", type=int, default=2, help="seconds of each round of the latencies")
    parser.add_argument("--latency-rounds", type=int, default=3)
    parser.add_argument("--only", choices=["latency"], help="measure only this part, and leave the others unchanged")
    parser.add_argument("--out", default=str(compare.HERE.parent / "docs/explanation/costs.md"))
    parser.add_argument("--tenfold", default=str(compare.HERE.parent / "target/release/tenfold"))
    args = parser.parse_args()
    args = argparse.Namespace(**vars(args), server_cpu=0, client_cpu=1, first_port=8300, seed=1, option=[], peers=[],
                              peer_threads=1)
    args.tenfold = str(pathlib.Path(args.tenfold).resolve())
    compare.check_programs(argparse.Namespace(**vars(args), engines=MODELS))

    out = pathlib.Path(args.out)
    if args.only:
        out.write_text(latency.merged(out.read_text(), latency.section(args, MODELS)))
        print(f"written to {args.out}")
        return
    page = [
        "# What it costs",
        "```sh\nbench/costs.py          # measures and writes this page on your machine, in 35 minutes\n```",
        "\n".join(f"- [{title}](#{title.lower().replace('/', '').replace(' ', '-')})"
                  for title in [*(group.title for group in GROUPS), latency.TITLE]),
        "The tables show server CPU microseconds per request, and the ratio to the floor, with 95 % intervals over the "
        "rounds. The floor is a program that makes only the system calls of the request. The second copy of the floor "
        "shows the noise: if an interval contains 1.00, there is no measurable difference. `bench/costs.py` measured and "
        "wrote this page on the machine below.",
        "```text\n" + describe(argparse.Namespace(**vars(args), engines=["below"]), {}) + "\n```",
    ]
    for group in GROUPS:
        lines = list(rows(group, measured(group, args)))
        chart = "```chart\nbars: times the floor\nmark: 1\n```"
        page += [f"## {group.title}", *([group.says] if group.says else []), chart, "\n".join(lines)]
        print("\n".join([f"== {group.title}", *lines, ""]), flush=True)
    out.write_text("\n\n".join(page) + "\n\n" + latency.section(args, MODELS))
    print(f"written to {args.out}; `cargo xtask charts` updates the home page")


if __name__ == "__main__":
    sys.exit(main())
