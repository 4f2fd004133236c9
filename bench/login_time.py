#!/usr/bin/env python3
"""Tests whether the time of a failed login reveals if a name is registered.

usage: login_time.py [options]

Makes logins with a wrong password over one connection, in pairs of a registered and an unregistered name in random
order. Other logins have a password that exceeds the limit, so they do everything except the hash. Prints the medians,
and the difference of registered and unregistered names in per cent of the time of a hash (the median minus the median
without a hash), with a 95 % bootstrap interval over pairs. The difference of a second registered name shows the noise.

Needs: the release binary, taskset. Traffic goes only to 127.0.0.1.
"""
import argparse, os, random, statistics, sys, tempfile, time

import members
from fleet import Fleet
from measure import cpu_seconds
from processes import with_descendants

NAMES = {"known": "known-name-a", "known too": "known-name-b", "unknown": "unknown-nm-c"}


class Attempts:
    """Failed logins at a server with these processes."""

    def __init__(self, browser, pids):
        self.browser, self.pids, self.sizes = browser, pids, set()

    def make(self, name, password):
        """Makes a login. Returns the milliseconds until the response, and the CPU milliseconds of the server."""
        body, fields = self.browser.form(name=name, password=password)
        used, begin = cpu_seconds(self.pids), time.perf_counter()
        response, page = self.browser.ask("POST", "/account/login", body, fields)
        took = time.perf_counter() - begin
        used = cpu_seconds(self.pids) - used
        if response.status != 422:
            raise SystemExit(f"{name}: {response.status}, not 422\n{page.decode()[:2000]}")
        self.sizes.add(len(page))
        return took * 1e3, used * 1e3


def interval(one, other, draw, times=1000):
    """The 95 % percentile bootstrap of the difference of medians, over pairs."""
    pairs, found = list(zip(one, other)), []
    for _ in range(times):
        drawn = draw.choices(pairs, k=len(pairs))
        found.append(statistics.median(b for _, b in drawn) - statistics.median(a for a, _ in drawn))
    found.sort()
    return found[int(times * 0.025)], found[int(times * 0.975) - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    members.arguments(parser)
    parser.add_argument("-n", type=int, default=2000, help="all logins with known and unknown names")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    os.sched_setaffinity(0, {args.client_cpu})
    draw = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as run, Fleet(run, members.HERE / "www", args.server_cpu, args.port) as fleet:
        port = members.start(fleet, args)
        browser = members.Browser(port)
        for name in ("known", "known too"):
            browser.register(NAMES[name])
        attempts = Attempts(browser, sorted(with_descendants([fleet.servers["tenfold"][0].pid])))
        for name in NAMES.values():
            attempts.make(name, "warm up")
        times, without = {name: [] for name in NAMES}, []
        for turn in range(args.n // 2):
            for name in draw.sample(list(NAMES), len(NAMES)):
                times[name].append(attempts.make(NAMES[name], "violet wrong 82"))
            if turn % 10 == 0:
                without.append(attempts.make(NAMES["known"], "x" * 1025))
    if len(attempts.sizes) > 1:
        raise SystemExit(f"the responses differ in length: {attempts.sizes}")
    print(f"{args.n // 2} logins with each name, one after the other")
    for place, what in enumerate(("time until the answer", "processor time of the server")):
        show(what, {name: [one[place] for one in of] for name, of in times.items()}, [one[place] for one in without], draw)


def show(what, times, without, draw):
    """The lines about elapsed time or CPU time."""
    bare, middle = statistics.median(without), {name: statistics.median(of) for name, of in times.items()}
    hashing = middle["known"] - bare
    print(f"{what}: {hashing:.3f} ms for the hash, {bare:.3f} ms for the rest")
    for name, of in times.items():
        quarters = statistics.quantiles(of, n=4)
        print(f"  {name:<10}{middle[name]:.3f} ms ({quarters[0]:.3f} .. {quarters[2]:.3f}, the middle half)")
    for name in ("unknown", "known too"):
        low, high = interval(times["known"], times[name], draw)
        share = lambda milliseconds: f"{milliseconds / hashing * 100:+.2f}"
        print(f"  {name} less known: {share(middle[name] - middle['known'])} % of the hash"
              f" ({share(low)} .. {share(high)}, 95 %)")


if __name__ == "__main__":
    sys.exit(main())
