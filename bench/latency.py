"""Latencies of every model, open loop at half of its capacity: a section of the page that costs.py writes.

A closed loop of one second measures the capacity of each model. Then several rounds at half of that rate follow, in
random order. `tenfold bench` fixes all times in advance, and measures from the time at which a request was due.
"""
import argparse, json, random, re, statistics, subprocess, sys, tempfile
from typing import NamedTuple

import compare
from environment import describe
from fleet import Fleet

TITLE = "Latency"
PERCENTILES = ("p50", "p90", "p99", "p99.9")
CONNECTIONS = 16
FLOOR = "floor"


class Workload(NamedTuple):
    """A workload, and the models that do not support it."""
    title: str
    says: str
    floor: str
    flags: tuple = ()
    without: tuple = ()


WORKLOADS = (
    Workload("Latency, keep-alive", f"1 KiB, {CONNECTIONS} connections. `naive` is missing, because it serves one "
             "connection at a time.", "null_epoll", without=("naive",)),
    Workload("Latency, a connection per request", f"1 KiB, at most {CONNECTIONS} connections at a time.", "null_close",
             flags=("--requests-per-connection", "1")),
)


class Found(NamedTuple):
    """The results of a server: the rate, the percentiles of valid rounds, and the reasons of invalid rounds."""
    rate: int
    rounds: list
    invalid: list


def bench(args, work, port, seconds, *more):
    """The result of a run of `tenfold bench`."""
    command = ["taskset", "-c", str(args.client_cpu), args.tenfold, "bench", "-q", "--json", "-c", str(CONNECTIONS),
               "-d", f"{seconds}s", *work.flags, *more, f"http://127.0.0.1:{port}/1k.html"]
    run = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(run.stdout)["runs"][-1]
    except (ValueError, LookupError):
        raise SystemExit(f"{' '.join(command)}:\n{run.stdout[:400]}{run.stderr}") from None


def gather(work, ports, args):
    """Measures a workload. Returns {name: Found}."""
    draw = random.Random(args.seed)
    rates = {name: max(1, round(bench(args, work, port, 1)["rate"] / 2)) for name, port in ports.items()}
    found = {name: Found(rate, [], []) for name, rate in rates.items()}
    for _ in range(args.latency_rounds):
        for name in draw.sample(list(ports), len(ports)):
            run = bench(args, work, ports[name], args.latency_seconds, "--rate", str(rates[name]))
            wrong = run["invalid"] + [f"{count} errors: {kind}" for kind, count in run["errors"].items()]
            if wrong:
                found[name].invalid.extend(wrong)
            else:
                found[name].rounds.append(run["latency_us"]["percentiles"])
    return found


def cell(rounds, percentile):
    """The median and the range of the rounds in microseconds; empty if a round has too few requests."""
    values = [one[percentile] for one in rounds if percentile in one]
    if not values or len(values) < len(rounds):
        return ""
    shown = [f"{value:.0f}" if value >= 100 else f"{value:.1f}" for value in (statistics.median(values), min(values), max(values))]
    return f"{shown[0]} [{shown[1]}–{shown[2]}]"


def machine(args):
    """The machine and the versions, without wrk."""
    mine = {"engines": ["below"], "rounds": args.latency_rounds, "seconds": args.latency_seconds}
    lines = describe(argparse.Namespace(**vars(args) | mine), {}).splitlines()
    return "\n".join(line for line in lines if not line.startswith("wrk"))


def section(args, models):
    """The Markdown of both workloads."""
    names = "".join(f" {name}: µs |" for name in PERCENTILES)
    page = [f"## {TITLE}",
            f"Each model runs on one core. {CONNECTIONS} connections on another core send requests at half of the capacity "
            "of the model. The times of requests are fixed before the run, and a latency counts from the time at which the "
            "request was due (open loop). "
            f"A cell is the median of {args.latency_rounds} rounds of {args.latency_seconds} s, and their range. A cell is "
            "empty if a round had too few requests for that percentile, or if the generator itself was late in all rounds.",
            "```text\n" + machine(args) + "\n```"]
    for work in WORKLOADS:
        servers = [model for model in models if model not in work.without]
        count = (len(servers) + 1) * (1 + args.latency_rounds * args.latency_seconds)
        print(f"{work.title}: about {count} s ...", file=sys.stderr, flush=True)
        here = argparse.Namespace(**vars(args) | {"engines": servers})
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            with Fleet(folder, compare.WWW, args.server_cpu, args.first_port) as fleet:
                ports = {FLOOR: fleet.start(FLOOR, [str(compare.HERE / work.floor), "@PORT@", "1024"]),
                         **compare.start_lasting(fleet, here)}
                found = gather(work, ports, args)
        lines = [f"| | requests/s |{names}", "| --- | --- |" + " --- |" * len(PERCENTILES)]
        for name, (rate, rounds, invalid) in found.items():
            title = name if name == FLOOR else f"`{name}`"
            lines.append(f"| {title} | {rate:,} | " + " | ".join(cell(rounds, at) for at in PERCENTILES) + " |")
            if invalid:
                print(f"note: {name}: {len(rounds)} of {args.latency_rounds} rounds are valid: {invalid[0]}", file=sys.stderr)
        page += [f"### {work.title.split(', ', 1)[1].capitalize()}", work.says,
                 f"```chart\ntitle: {work.title}\npercentiles: µs\n```", "\n".join(lines)]
        print("\n".join([f"== {work.title}", *lines, ""]), flush=True)
    return "\n\n".join(page) + "\n"


def merged(page, new):
    """The page with the new section, which replaces the old section or is appended."""
    old = re.compile(rf"^## {TITLE}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if old.search(page):
        return old.sub(lambda _: new + "\n", page).rstrip("\n") + "\n"
    return f"{page.rstrip()}\n\n{new}"
