#!/usr/bin/env python3
"""Measures the goodput of an overloaded server by the length of its accept queue (`backlog`).

usage: overload.py [options]

For each engine and backlog, starts a server with a part of one core (`--quota`), so that the generator can offer many
times its capacity. Each request has its own connection, and a client gives up after `--patience`. Three phases: the
capacity (closed loop, 64 connections), the overload (open loop, for `--seconds`), and the recovery (open loop at half
of the capacity). Prints the responses in time as a share of the capacity, in the first and the second half of the
overload, and the time after the overload until 9 of 10 requests of a second get a response in time.

Needs: root, for a control group of the processor (version 1 or 2); the release binary; taskset; 20,000 descriptors.
Traffic goes only to 127.0.0.0/8.
"""
import argparse, json, pathlib, subprocess, tempfile, time

from fleet import Fleet

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = "127.0.0.2-127.0.0.9"
PERIOD = 20_000  # microseconds; the kernel accepts no quota below 1,000


class Group:
    """A control group whose processes together use at most `quota` of a processor."""

    def __init__(self, quota):
        version1 = pathlib.Path("/sys/fs/cgroup/cpu")
        self.folder = (version1 if version1.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"tenfold-overload-{time.time_ns()}"
        self.folder.mkdir()
        runs = int(PERIOD * quota)
        if version1.is_dir():
            (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD))
            (self.folder / "cpu.cfs_quota_us").write_text(str(runs))
        else:
            (self.folder / "cpu.max").write_text(f"{runs} {PERIOD}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(50):
            try:
                return self.folder.rmdir()
            except OSError:
                time.sleep(0.1)

    def start(self, fleet, name, words):
        """Starts a server in the group. The shell joins the group, then executes the server."""
        join = f'echo $$ > {self.folder}/cgroup.procs; exec "$@"'
        return fleet.start(name, ["sh", "-c", join, "sh", *words])


def bench(args, port, *words):
    """Runs the generator, and returns its JSON report."""
    command = ["taskset", "-c", str(args.client_cpu), args.tenfold, "bench", "-q", "--json", "--warm-up", "off",
               "--requests-per-connection", "1", "--timeout", f"{args.patience}s", "--source", SOURCES, *words,
               f"http://127.0.0.1:{port}/1k.html"]
    run = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(run.stdout)["runs"][-1]
    except ValueError:
        raise SystemExit(f"{' '.join(command)}:\n{run.stdout}{run.stderr}") from None


def recovery(args, port, rate):
    """Seconds after the overload until 9 of 10 requests of a second get a response in time; None if this never happens."""
    start = time.monotonic()
    while (passed := time.monotonic() - start) < args.recover:
        run = bench(args, port, "-c", str(max(1, rate * args.patience)), "--rate", str(rate), "-d", "1s")
        if run["answers"] >= 0.9 * rate and run["latency_us"]["percentiles"]["p90"] < 1e6 * args.patience:
            return passed
    return None


def measure(args, group, fleet, engine, backlog):
    """Prints a row for each load."""
    for times in args.loads:
        name = f"{engine}-{backlog}-{times}"
        port = group.start(fleet, name, [
            args.tenfold, "serve", "@WWW@", "--listen", "127.0.0.1:@PORT@", "--engine", engine, "--workers", "1",
            "--access-log", "off", *(["--backlog", backlog] if backlog != "default" else [])])
        capacity = bench(args, port, "-c", "64", "-d", "3s")["rate"]
        rate = round(times * capacity)
        half = f"{args.seconds * 500}ms"
        shares = []
        for _ in range(2):
            run = bench(args, port, "-c", str(min(18_000, rate * args.patience)), "--rate", str(rate), "-d", half)
            shares.append(run["answers"] / (args.seconds / 2) / capacity)
        after = recovery(args, port, max(1, round(capacity / 2)))
        fleet.stop(name)
        time.sleep(1)
        print(f"{engine:<8} {backlog:>7} {times:>4} {capacity:>8.0f}/s {shares[0]:>8.2f} {shares[1]:>8.2f} "
              f"{'never' if after is None else f'{after:.1f} s':>9}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default="epoll,uring,thread")
    parser.add_argument("--backlogs", default="128,256,511,1024,4096")
    parser.add_argument("--loads", type=lambda text: [float(word) for word in text.split(",")], default=[2.0, 10.0])
    parser.add_argument("--quota", type=float, default=0.05, help="the part of a core that the server may use")
    parser.add_argument("--seconds", type=int, default=10, help="of overload")
    parser.add_argument("--recover", type=int, default=12, help="seconds in which a server must recover")
    parser.add_argument("--patience", type=int, default=2, help="seconds for which a client waits")
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"))
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--client-cpu", type=int, default=1)
    parser.add_argument("--port", type=int, default=8400)
    args = parser.parse_args()
    print(f"{'engine':<8} {'backlog':>7} {'load':>4} {'capacity':>10} {'1st half':>8} {'2nd half':>8} {'recovery':>9}")
    with tempfile.TemporaryDirectory() as run, Group(args.quota) as group:
        www = pathlib.Path(run) / "www"
        www.mkdir()
        (www / "1k.html").write_text("x" * 1024)
        with Fleet(run, www, args.server_cpu, args.port) as fleet:
            for engine in args.engines.split(","):
                for backlog in args.backlogs.split(","):
                    measure(args, group, fleet, engine, backlog)


if __name__ == "__main__":
    main()
