#!/usr/bin/env python3
"""Tests whether all connections of a ramp get responses, with each dispatch.

usage: ramp.py [options]

Starts a server on one core for each dispatch. `tenfold bench` on the other core opens connections at a steady rate
from four addresses. Each connection makes its next request after a response, and all are used for the given time after
the last connect. Prints the connections made, the connections without a response, responses and errors (a response
after the deadline is an error), the longest wait, the refused requests, and the overflows of accept queues
(ListenOverflows of this network namespace, including other servers).

Exit code 1 if a connection got no response within the deadline, or a request was refused.
Needs: the release binary, taskset, about 11,000 descriptors. Traffic goes only to 127.0.0.0/8.
"""
import argparse, json, math, pathlib, subprocess, sys, tempfile

from fleet import Fleet

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = "127.0.0.2-127.0.0.5"


def listen_overflows():
    """The overflows of accept queues since the start of the system."""
    rows = [line.split() for line in open("/proc/net/netstat") if line.startswith("TcpExt:")]
    return int(dict(zip(*rows))["ListenOverflows"])


def output(words):
    """The JSON output of a command. Exits if the output is not JSON."""
    run = subprocess.run(words, capture_output=True, text=True)
    try:
        return json.loads(run.stdout)
    except ValueError:
        raise SystemExit(f"{' '.join(words)}:\n{run.stdout}{run.stderr}") from None


def try_out(args, fleet, dispatch):
    """Prints a line for a dispatch. Returns whether all connections got responses."""
    room = str(args.connections + 100)
    control = str(fleet.run / f"{dispatch}.control")
    pool = [] if dispatch == "inline" else ["--pool-queue", room]
    port = fleet.start(dispatch, [
        args.tenfold, "serve", "@WWW@", "--listen", "127.0.0.1:@PORT@", "--engine", args.engine, "--workers", "1",
        "--dispatch", dispatch, "--max-connections", room, *pool, "--access-log", "off", "--control", control])
    milliseconds = math.ceil(1000 * (args.connections / args.rate + args.seconds))
    before = listen_overflows()
    run = output(["taskset", "-c", str(args.client_cpu), args.tenfold, "bench", "-q", "--json", "--warm-up", "off",
                  "-c", str(args.connections), "--source", SOURCES, "--connection-rate", str(args.rate),
                  "-d", f"{milliseconds}ms", "--timeout", f"{args.deadline}s", f"http://127.0.0.1:{port}/1k.html"])["runs"][-1]
    overflows = listen_overflows() - before
    refused = {why: count for why, count in output([args.tenfold, "status", "--json", "--control", control])["refusals"].items() if count}
    fleet.stop(dispatch)
    made = run["connections"]
    # Includes the requests in flight at the end.
    longest = max(run["first_byte_us"]["max"] / 1e6, run["longest_wait"])
    print(f"{dispatch:<9} {made['made']} made, {made['most_at_once']} at once, {made['never_answered']} never answered; "
          f"{run['answers']} answers, errors {run['errors'] or 'none'}, longest wait {longest:.2f} s; "
          f"refused {refused or 'none'}; listen overflows {overflows}", *run["invalid"], sep="\n          ", flush=True)
    complete = made["made"] == made["most_at_once"] == args.connections and not made["never_answered"]
    return complete and not run["errors"] and not refused and not run["invalid"] and longest <= args.deadline


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--connections", type=int, default=10_500)
    parser.add_argument("-s", "--seconds", type=int, default=5, help="seconds with all connections")
    parser.add_argument("--rate", type=int, default=3000, help="connections per second in the ramp")
    parser.add_argument("--deadline", type=int, default=5, help="the most seconds of a response")
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--dispatch", default="inline,reactor,proactor")
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"))
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--client-cpu", type=int, default=1)
    parser.add_argument("--port", type=int, default=8300)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as run:
        www = pathlib.Path(run) / "www"
        www.mkdir()
        (www / "1k.html").write_text("x" * 1024)
        with Fleet(run, www, args.server_cpu, args.port) as fleet:
            answered = [try_out(args, fleet, dispatch) for dispatch in args.dispatch.split(",")]
    return 0 if all(answered) else 1


if __name__ == "__main__":
    sys.exit(main())
