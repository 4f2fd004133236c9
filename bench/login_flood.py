#!/usr/bin/env python3
"""Measures the effect of a flood of logins on requests for files.

usage: login_flood.py [options]

The server and its hashes run on one core. First, the capacity for requests of a file is measured without logins. Then
rounds follow with half of this rate (open loop: latency counts from the due time), with and without a flood of logins
on many connections, in random order. Prints the p99 of each round, the medians with and without the flood, and their
ratio and difference with 95 % bootstrap intervals over rounds.

Needs: the release binary, taskset. Traffic goes only to 127.0.0.1.
"""
import argparse, json, pathlib, random, statistics, subprocess, sys, tempfile

import members
from fleet import Fleet


def bench(args, *words):
    """The result of `tenfold bench`. Exits if the run failed."""
    command = ["taskset", "-c", str(args.client_cpu), args.tenfold, "bench", "-q", "--json", *words]
    run = subprocess.run(command, capture_output=True, text=True)
    try:
        result = json.loads(run.stdout)["runs"][-1]
    except (ValueError, LookupError):
        raise SystemExit(f"{' '.join(command)}:\n{run.stdout}{run.stderr}") from None
    if run.returncode != 0 or result["errors"]:
        print(f"note: exit code {run.returncode}: {result['errors']} {result.get('invalid', '')} {run.stderr.strip()}")
    return result


class Flood:
    """Logins until the end of `with`, and the number of refused, thus hashed, logins per second."""

    def __init__(self, args, port, body, browser):
        fields = [word for field in browser.fields().items() for word in ("-H", ": ".join(field))]
        self.command = ["taskset", "-c", str(args.client_cpu), args.tenfold, "bench", "-q", "--json", "--warm-up", "off",
                        "-c", str(args.flood), "-d", f"{args.seconds + 2}s", "-m", "POST", "--body", str(body), *fields,
                        "--expect-status", "422", f"http://127.0.0.1:{port}/account/login"]

    def __enter__(self):
        self.run = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        output, errors = self.run.communicate()
        result = json.loads(output)["runs"][-1] if output else {}
        self.rate = result.get("rate", 0)
        if result.get("errors") or not result:
            print(f"note: the flood had {result.get('errors')} {errors.strip()}")


def interval(values, draw):
    """The 95 % percentile bootstrap of a median."""
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return medians[49], medians[1949]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    members.arguments(parser)
    parser.add_argument("-c", "--connections", type=int, default=32, help="connections that request the file")
    parser.add_argument("-s", "--seconds", type=int, default=5)
    parser.add_argument("-r", "--rounds", type=int, default=9)
    parser.add_argument("--flood", type=int, default=32, help="connections that log in")
    parser.add_argument("--path", default="/16k.bin")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    draw = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as run, Fleet(run, members.HERE / "www", args.server_cpu, args.port) as fleet:
        port = members.start(fleet, args)
        browser = members.Browser(port)
        browser.register("ann")
        body = pathlib.Path(run) / "login"
        body.write_text(browser.form(name="ann", password="violet wrong 82")[0])
        url, load = f"http://127.0.0.1:{port}{args.path}", ["-c", str(args.connections), "-d", f"{args.seconds}s"]
        capacity = bench(args, *load, url)["rate"]
        rate = round(capacity / 2)
        print(f"capacity   {capacity:.0f} requests/s for {args.path}; rate from now on: {rate}")
        results, hashed = {"quiet": [], "flood": []}, []
        for _ in range(args.rounds):
            for state in draw.sample(["quiet", "flood"], 2):
                if state == "quiet":
                    result = bench(args, *load, "--rate", str(rate), url)
                else:
                    with Flood(args, port, body, browser) as flood:
                        result = bench(args, *load, "--rate", str(rate), url)
                    hashed.append(flood.rate)
                results[state].append(result["latency_us"]["percentiles"]["p99"] / 1000)
    for state, found in results.items():
        print(f"{state:<11}p99 {statistics.median(found):.3f} ms (rounds: {' '.join(f'{value:.2f}' for value in found)})")
    print(f"hashed     {statistics.median(hashed):.1f} logins/s during the flood")
    pairs = list(zip(results["quiet"], results["flood"]))
    for name, values in (("times", [b / a for a, b in pairs]), ("ms more", [b - a for a, b in pairs])):
        low, high = interval(values, draw)
        print(f"flood      {statistics.median(values):.2f} {name} ({low:.2f} .. {high:.2f}, 95 %)")


if __name__ == "__main__":
    sys.exit(main())
