#!/usr/bin/env python3
"""Measures server CPU per request for several servers in one run.

usage: measure.py [options] NAME=PORT[/PATH] NAME=PORT[/PATH] ...

Each round drives every server once with wrk, in random order, and reads the CPU time (user + system, nanosecond clock)
of the processes that listen on PORT. Prints for each server: the median and the range of CPU microseconds per request;
the ratio to the first server, as the geometric mean of the ratios within each round, with a 95 % bootstrap interval
over rounds; the request rate and p99. Compare CPU per request, not rates: a client with one core limits the rates, so
their ratios shrink towards 1.

Name the first server twice (two instances) to see the noise: the interval of the second instance shows it. Before the
measurement, every server must answer PATH with --status and the same number of bytes as the first (unless
--different-bytes).

Pin every server to one core before (taskset -c 0 SERVER); wrk is pinned to --client-cpu.
Needs: wrk, ss (iproute2), taskset. Traffic goes only to 127.0.0.1.
"""
import argparse, http.client, json, math, os, random, re, ssl, statistics, subprocess, sys, time
from typing import NamedTuple

from processes import listeners, place, with_descendants


class Round(NamedTuple):
    """The result of a server in a round."""
    cost: float  # CPU microseconds per request
    rate: float  # requests per second
    p99: str  # as wrk prints it
    trouble: list


class Load(NamedTuple):
    """The requests of wrk."""
    connections: int = 64
    seconds: int = 3
    close: bool = False  # a new connection for every request
    script: str | None = None  # a wrk Lua script
    client_cpu: int = 1
    status: int = 200  # the expected status
    tls: bool = False  # https, with any certificate
    bench: str | None = None  # the path of `tenfold bench`, which makes a connection for each request; wrk would resume sessions
    resumed: bool = False  # whether these connections resume a session


def cpu_seconds(pids):
    """The CPU time of live processes and of the children that they have reaped (a process per connection)."""
    total, tick = 0.0, os.sysconf("SC_CLK_TCK")
    for pid in pids:
        try:
            # The clock id of another process's CPU time (clock_getcpuclockid(3)).
            total += time.clock_gettime((~pid << 3) | 2)
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            total += (int(fields[13]) + int(fields[14])) / tick
        except OSError:
            pass  # it ended, so the reaped time of its parent contains it
    return total


def drive(load, server):
    """Runs wrk. Returns the requests, their rate, p99, and the complaints of wrk."""
    if load.bench:
        return drive_bench(load, server)
    command = ["taskset", "-c", str(load.client_cpu), "wrk", "-t1", f"-c{load.connections}", f"-d{load.seconds}s",
               "--latency", "--timeout", "30s"]
    if load.script:
        command += ["-s", load.script]
    if load.close:
        command += ["-H", "Connection: close"]
    run = subprocess.run(command + [f"{'https' if load.tls else 'http'}://127.0.0.1:{server.port}{server.path}"], capture_output=True, text=True)
    found = re.search(r"(\d+) requests in", run.stdout)
    if not found or int(found.group(1)) == 0:
        raise SystemExit(f"{server.name}, port {server.port}: wrk completed no request:\n{run.stdout}{run.stderr}")
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", run.stdout).group(1))
    p99 = re.search(r"99%\s+(\S+)", run.stdout)
    trouble = re.findall(r"Socket errors.*", run.stdout)
    if load.status < 300:
        trouble += re.findall(r"Non-2xx.*", run.stdout)
    return int(found.group(1)), rate, p99.group(1) if p99 else "-", trouble


def drive_bench(load, server):
    """Runs `tenfold bench`: a connection for each request, with a full handshake or a resumed session."""
    command = ["taskset", "-c", str(load.client_cpu), load.bench, "bench", f"https://localhost:{server.port}{server.path}",
               "--insecure", "--requests-per-connection", "1", f"-c{load.connections}", f"-d{load.seconds}", "--warm-up", "off", "--json",
               "--tls-resume", "on" if load.resumed else "off"]
    run = subprocess.run(command, capture_output=True, text=True)
    try:
        report = json.loads(run.stdout)["runs"][0]
        done, full = report["answers"], report["tls"]["full"]
    except (ValueError, LookupError) as error:
        raise SystemExit(f"{server.name}, port {server.port}: tenfold bench gave no report: {error}\n{run.stdout[:400]}{run.stderr}") from error
    # The first connections have no session yet.
    trouble = [f"{full} full handshakes"] if load.resumed == (full > load.connections) else []
    return done, done / load.seconds, "-", trouble


def measure(servers, load, rounds, seed=1, drive=drive, pids=None):
    """Measures all rounds, each in random order, with the load of `drive`. Returns {name: [Round, ...]}.

    `pids` has the processes of each server; by default, those that listen on its port, which only root may ask of Tenfold.
    """
    pids = pids or {server.name: listeners(server.port) for server in servers}
    shuffle = random.Random(seed)
    results = {server.name: [] for server in servers}
    for _ in range(rounds):
        for server in shuffle.sample(servers, len(servers)):
            before = cpu_seconds(with_descendants(pids[server.name]))
            done, rate, p99, trouble = drive(load, server)
            used = cpu_seconds(with_descendants(pids[server.name])) - before
            results[server.name].append(Round(used / done * 1e6, rate, p99, trouble))
    return results


def ratio(results, name, base, seed=1):
    """The geometric mean of the cost ratios of rounds, with a 95 % bootstrap interval."""
    logs = [math.log(a.cost / b.cost) for a, b in zip(results[name], results[base])]
    draw = random.Random(seed)
    means = sorted(math.exp(statistics.fmean(draw.choices(logs, k=len(logs)))) for _ in range(2000))
    return math.exp(statistics.fmean(logs)), means[49], means[1949]


def table(results, bases):
    """The table: a line for each server, with its ratio to the server in `bases`."""
    lines = [f"{'server':<18}{'CPU us/req':>11}{'min':>9}{'max':>9}{'ratio':>7}  {'95 % interval':<15}"
             f"{'to':<14}{'req/s':>9}{'p99':>10}  trouble".rstrip()]
    for name, rounds in results.items():
        cost = [r.cost for r in rounds]
        mean, low, high = ratio(results, name, bases[name])
        middle = sorted(rounds, key=lambda r: r.cost)[len(rounds) // 2]
        trouble = "; ".join(sorted({t for r in rounds for t in r.trouble}))[:60]
        lines.append(f"{name:<18}{statistics.median(cost):>11.2f}{min(cost):>9.2f}{max(cost):>9.2f}{mean:>7.2f}  "
                     f"{f'{low:.2f} .. {high:.2f}':<15}{bases[name]:<14}{middle.rate:>9.0f}{middle.p99:>10}  {trouble}".rstrip())
    return "\n".join(lines)


def answer(server, tls=False):
    """The status and the length of the body for one request."""
    if tls:
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=10, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request("GET", server.path, headers={"Connection": "close"})
        response = connection.getresponse()
        return response.status, len(response.read())
    except (OSError, http.client.HTTPException) as error:
        raise SystemExit(f"{server.name}: GET http://127.0.0.1:{server.port}{server.path} failed: {error}") from error
    finally:
        connection.close()


def check_answers(servers, status, same_bytes=True, tls=False):
    """Exits if a server does not answer, or if the answers differ."""
    answers = {server.name: answer(server, tls) for server in servers}
    wrong = {name: got for name, (got, _) in answers.items() if got != status}
    if wrong:
        raise SystemExit(f"servers with another status than {status}: {wrong}")
    if same_bytes and len({size for _, size in answers.values()}) > 1:
        raise SystemExit(f"the servers answer with different lengths: {answers}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", metavar="NAME=PORT[/PATH]")
    parser.add_argument("-c", "--connections", type=int, default=64)
    parser.add_argument("-s", "--seconds", type=int, default=3)
    parser.add_argument("-r", "--rounds", type=int, default=7)
    parser.add_argument("--close", action="store_true", help="a new connection for every request")
    parser.add_argument("--tls", action="store_true", help="https; with --close a full handshake for every request (wrk does not resume)")
    parser.add_argument("--script", help="a Lua script for wrk, such as pipeline.lua")
    parser.add_argument("--path", default="/1k.html", help="the path of servers without their own")
    parser.add_argument("--status", type=int, default=200, help="the status that every server must answer")
    parser.add_argument("--client-cpu", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--different-bytes", action="store_true", help="accept different lengths of responses")
    args = parser.parse_args()

    servers = [place(item, args.path) for item in args.servers]
    if len({server.name for server in servers}) < len(servers):
        raise SystemExit("two servers have the same name; call the second floor floor2")
    if not args.different_bytes:
        check_answers(servers, args.status, tls=args.tls)
    load = Load(args.connections, args.seconds, args.close, args.script, args.client_cpu, args.status, args.tls)
    results = measure(servers, load, args.rounds, args.seed)
    print(table(results, {server.name: servers[0].name for server in servers}))


if __name__ == "__main__":
    sys.exit(main())
