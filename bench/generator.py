#!/usr/bin/env python3
"""Measures the cost of load generators: CPU per request of `tenfold bench` and wrk, in one run.

usage: generator.py [options] [SHAPE ...]
       generator.py --out docs/explanation/bench-and-wrk.md      the page of the book

Each round drives the same floor program with wrk and with tenfold bench, in random order, and reads the CPU time of
the generator (user + system, of the whole process). Prints for each shape: the median of both, the ratio of tenfold
bench to wrk as the geometric mean over rounds with a 95 % bootstrap interval, and the rates of both.
Shapes: keep-alive, pipelined, close, close-epoll (close with --io epoll), join-ack (a connection per request, where
the acknowledgement of the handshake carries the request, which wrk cannot do), rates, and server. Default: all.

The line of null_client after close is a client that makes only the necessary calls and does no other work. The rest
of its time is the kernel's, so no client with this order of calls can be faster.
`rates` drives a server that is the bottleneck, because it computes for --burn nanoseconds before each answer, and
compares the rates that both tools report. (A server that shares its processor with other programs would not be the
bottleneck: it is faster than the client while it runs, and sleeps while the client is slow.)
`server` compares the CPU per answer of the *server*, less the --burn nanoseconds, under both loads. If the interval
contains 1, a result measured with one tool holds for the other.

Needs: the floor programs (cargo xtask bench), the release binary, wrk, taskset. Traffic goes only to 127.0.0.1.
"""
import argparse, json, math, pathlib, random, re, resource, statistics, subprocess, sys, time

from environment import describe

HERE = pathlib.Path(__file__).resolve().parent
WRK = {"keep-alive": [], "pipelined": ["-s", str(HERE / "pipeline.lua")], "rates": [], "server": []}
CLOSE = ["-H", "Connection: close"]
TENFOLD = {"keep-alive": [], "pipelined": ["--pipeline", "16"], "close": ["--requests-per-connection", "1"],
           "close-epoll": ["--requests-per-connection", "1", "--io", "epoll"],
           "join-ack": ["--requests-per-connection", "1", "--join-ack"], "rates": [], "server": []}
SHAPES = list(TENFOLD)
# The shapes of the page with their names.
SAYS = {"server": "keep-alive", "keep-alive": "keep-alive", "pipelined": "16 requests at once",
        "close": "a connection for each request", "close-epoll": "the same, `--io epoll`",
        "rates": "keep-alive, the server is the limit"}


def spent(command):
    """Runs `command`. Returns the CPU seconds of it and its children, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, run


def used_by(process):
    """CPU seconds of all threads of a process, with nanosecond precision."""
    tasks = pathlib.Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def under(args, server, tool, shape, url):
    """The result of a tool. For `server`, the CPU time is the server's."""
    before = used_by(server)
    cpu, rate = tool(args, shape, url)
    if shape == "server":
        cpu = (used_by(server) - before) / (rate * args.seconds) * 1e6 - args.burn / 1e3
    return cpu, rate


def wrk(args, shape, url):
    """The result of wrk: CPU microseconds per answer, and answers per second."""
    command = ["taskset", "-c", str(args.client_cpu), "wrk", "-t1", f"-c{args.connections}", f"-d{args.seconds}s"]
    cpu, run = spent(command + WRK.get(shape, CLOSE) + [url])
    found = re.search(r"(\d+) requests in", run.stdout)
    if not found or "Socket errors" in run.stdout:
        raise SystemExit(f"wrk, {shape}:\n{run.stdout}{run.stderr}")
    return cpu / int(found.group(1)) * 1e6, float(re.search(r"Requests/sec:\s+([\d.]+)", run.stdout).group(1))


def tenfold(args, shape, url):
    """The result of tenfold bench."""
    command = ["taskset", "-c", str(args.client_cpu), args.tenfold, "bench", "-q", "--json", "--warm-up", "off",
               "-c", str(args.connections), "-d", f"{args.seconds}s"]
    cpu, run = spent(command + TENFOLD[shape] + [url])
    try:
        result = json.loads(run.stdout)["runs"][-1]
    except ValueError:
        raise SystemExit(f"tenfold bench, {shape}:\n{run.stdout}{run.stderr}") from None
    if result["errors"]:
        raise SystemExit(f"tenfold bench, {shape}: {result['errors']}")
    return cpu / result["answers"] * 1e6, result["rate"]


def null_client(args, _shape, url):
    """The result of null_client."""
    port = url.split(":")[2].split("/")[0]
    run = subprocess.run(["taskset", "-c", str(args.client_cpu), str(HERE / "null_client"), port, str(args.connections),
                          str(args.seconds)], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"null_client:\n{run.stderr}")
    cpu, rate = run.stdout.split()
    return float(cpu), float(rate)


def interval(logs, seed=1):
    """The geometric mean, and its 95 % bootstrap interval."""
    draw = random.Random(seed)
    means = sorted(math.exp(statistics.fmean(draw.choices(logs, k=len(logs)))) for _ in range(2000))
    return math.exp(statistics.fmean(logs)), means[49], means[1949]


def figures(rounds):
    """The CPU time per answer of both tools with its ratio, and the rates of both with their ratio."""
    cost = interval([math.log(own[0] / other[0]) for own, other in rounds])
    rate = interval([math.log(own[1] / other[1]) for own, other in rounds])
    middle = lambda which, what: statistics.median(pair[which][what] for pair in rounds)
    return middle(0, 0), middle(1, 0), cost, middle(0, 1), middle(1, 1), rate


def line(shape, rounds):
    """The printed line of a shape."""
    own, other, cost, own_rate, other_rate, rate = figures(rounds)
    return (f"{shape:<12}{own:>9.2f}{other:>9.2f}  {cost[0]:.2f} ({cost[1]:.2f} .. {cost[2]:.2f})"
            f"{own_rate:>11.0f}{other_rate:>10.0f}  {rate[0]:.3f} ({rate[1]:.3f} .. {rate[2]:.3f})")


def row(shape, rounds):
    """A shape as a row of the page."""
    own, other, cost, own_rate, other_rate, rate = figures(rounds)
    return (f"| {SAYS[shape]} | {own:.2f} | {other:.2f} | {cost[0]:.2f} [{cost[1]:.2f}–{cost[2]:.2f}] | "
            f"{own_rate:,.0f} | {other_rate:,.0f} | {rate[0]:.2f} [{rate[1]:.2f}–{rate[2]:.2f}] |")


def page(args, machine, measured):
    """The page of the book: the CPU time of each generator, and of the server under each."""
    table = lambda of, shapes: "\n".join([
        f"| | CPU µs {of} `bench` | {of} wrk | ratio | responses/s, `bench` | wrk | ratio |", "|" + " --- |" * 7,
        *(row(shape, measured[shape]) for shape in shapes)])
    return "\n\n".join([
        "# bench and wrk",
        "```sh\ntenfold bench -c 64 localhost:8080/1k.html\nwrk -c 64 http://localhost:8080/1k.html\n"
        "bench/generator.py --out page.md        # measures this page again\n```",
        f"Both load generators drive the same server by {args.connections} connections, in turn and in shuffled order. "
        "The server is a floor program: it makes only the system calls of a request. `bench/generator.py` measured and "
        "wrote this page on the machine below. "
        "Intervals are 95 % over the rounds: if one contains 1.00, there is no measurable difference.",
        f"```text\n{machine}\n```",
        "## What the server spends",
        f"The server computes for {args.burn / 1000:.0f} µs before each response, so that it is the limit under both. "
        "The table shows its remaining CPU microseconds per response. If the ratio is 1, a figure measured with one "
        "generator holds for the other.",
        table("under", ["server"]),
        "## What the generator spends",
        "CPU microseconds of the generator per response. On one processor for the client, a generator that spends less "
        "reaches a higher rate before it is the limit.",
        table("of", [shape for shape in SAYS if shape != "server"]),
    ]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"), help="the release binary")
    parser.add_argument("-c", "--connections", type=int, default=64)
    parser.add_argument("-s", "--seconds", type=int, default=2)
    parser.add_argument("-r", "--rounds", type=int, default=9)
    parser.add_argument("--port", type=int, default=9700)
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--client-cpu", type=int, default=1)
    parser.add_argument("--burn", type=int, default=20_000, help="nanoseconds before each answer, for rates and server")
    parser.add_argument("--out", help="write the page of the book, with all its shapes, to this file")
    args = parser.parse_args()
    if args.out:
        args.shapes = list(SAYS)
    about = {"seed": 1, "engines": ["none (a floor program)"], "option": [], "peers": []}
    machine = describe(argparse.Namespace(**vars(args), **about), {})
    measured = {}
    if unknown := set(args.shapes) - set(SHAPES):
        parser.error(f"no such shape: {', '.join(sorted(unknown))}; there are {', '.join(SHAPES)}")

    print(f"{'':<12}{'CPU us per answer':>18}  {'tenfold / wrk':<20}{'answers / s':>19}  tenfold / wrk")
    print(f"{'shape':<12}{'tenfold':>9}{'wrk':>9}  {'95 % interval':<20}{'tenfold':>9}{'wrk':>10}  95 % interval")
    pinned = ["taskset", "-c", str(args.server_cpu)]
    for shape in args.shapes or SHAPES:
        floor = "null_close" if shape in ("close", "close-epoll", "join-ack") else "null_epoll"
        more = [str(args.burn)] if shape in ("rates", "server") else []
        server = subprocess.Popen(pinned + [str(HERE / floor), str(args.port), "1024"] + more)
        time.sleep(0.3)
        try:
            shuffle, rounds, url = random.Random(1), [], f"http://127.0.0.1:{args.port}/1k.html"
            tools = [tenfold, wrk, null_client] if shape == "close" else [tenfold, wrk]
            for _ in range(args.rounds):
                order = shuffle.sample(tools, len(tools))
                rounds.append({tool: under(args, server, tool, shape, url) for tool in order})
            measured[shape] = [(one[tenfold], one[wrk]) for one in rounds]
            print(line(shape, measured[shape]), flush=True)
            if null_client in tools:
                print(line("null_client", [(one[null_client], one[wrk]) for one in rounds]), flush=True)
        finally:
            server.kill()
            server.wait()
    if args.out:
        pathlib.Path(args.out).write_text(page(args, machine, measured))


if __name__ == "__main__":
    sys.exit(main())
