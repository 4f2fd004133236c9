#!/usr/bin/env python3
"""Compares Tenfold with the floor, nginx, Apache, lighttpd and h2o: one table per workload.

usage: compare.py [options] [WORKLOAD ...]

Starts every server on --server-cpu, runs the rounds of measure.py for each workload, stops the servers, prints the
tables, and writes them to results/ with the machine and the versions.
Workloads: 1k, pipelined, close, 404 (the default), browser, 4k, 16k, 24k, 32k, 48k, 64k, large; or all.

Each table contains its floor twice: the interval of the second floor shows the noise of this run. Each engine is
compared with the floor of its own mechanism: uring with null_uring, the others with null_epoll. The name of an engine
may have a dispatch other than inline, a sender other than auto, and further options: epoll+reactor, epoll:splice,
'epoll --timer list'. evhttp and asio-threads are small servers of ours, built like those of a comparison of 2012:
libevent's HTTP server, and Asio with one io_context and the file in a string. --peer-threads sets their threads
(default: 1, as for the other servers). Below a table are the ratios of each engine to each peer, and to itself with
another sender, dispatch or option, from the same rounds.

Needs: the programs and www/ (`cargo xtask bench` makes both), wrk, taskset, ss, and the peers (--peers none leaves
them out). Traffic goes only to 127.0.0.1.
"""
import argparse, pathlib, sys, tempfile, time
from typing import NamedTuple

from environment import describe
from fleet import Fleet
from measure import Load, check_answers, measure, ratio, table
from processes import Place

HERE = pathlib.Path(__file__).resolve().parent
WWW = HERE / "www"
PEERS = {
    "nginx": ["nginx", "-p", "@RUN@", "-e", "stderr", "-c", "@RUN@/nginx.conf"],
    "lighttpd": ["lighttpd", "-D", "-f", "@RUN@/lighttpd.conf"],
    "apache2": ["apache2", "-D", "FOREGROUND", "-f", "@RUN@/apache2.conf"],
    "h2o": ["h2o", "-c", "@RUN@/h2o.conf"],
    "caddy": ["env", "XDG_CONFIG_HOME=@RUN@", "XDG_DATA_HOME=@RUN@", "caddy", "run", "--config", "@RUN@/caddy.conf",
              "--adapter", "caddyfile"],
    "evhttp": [str(HERE / "peer_evhttp"), "@PORT@", "@WWW@", "@THREADS@"],
    "asio-threads": [str(HERE / "peer_asio"), "@PORT@", "@WWW@", "@THREADS@"],
}
USUAL_PEERS = "nginx,apache2,lighttpd,h2o"


class Workload(NamedTuple):
    """A workload: its requests, and the floor program that makes only the system calls for them."""
    title: str
    path: str = "/1k.html"
    load: Load = Load()
    floor: tuple = ("null_epoll", "1024")  # the program, and its arguments after the port
    uring_floor: tuple | None = ("null_uring", "1024")  # for uring; None: the same floor for every engine
    floor_status: int = 200  # the floor responds to every request with 200
    own_reference: bool = False  # the table also has Tenfold's /1k.html


WORKLOADS = {
    "1k": Workload("1 KiB, keep-alive, 64 connections"),
    "pipelined": Workload("1 KiB, 16 pipelined, 64 connections", load=Load(script=str(HERE / "pipeline.lua"))),
    "close": Workload("1 KiB, a connection per request", load=Load(close=True), floor=("null_close", "1024"),
                      uring_floor=None),
    "404": Workload("404, keep-alive, 64 connections", path="/no-such-file.html", load=Load(status=404),
                    own_reference=True),
    "browser": Workload("1 KiB with a browser's header fields", load=Load(script=str(HERE / "browser.lua"))),
    **{f"{size}k": Workload(f"{size} KiB, keep-alive, 64 connections", path=f"/{size}k.bin",
                            floor=("null_epoll", str(size * 1024)), uring_floor=("null_uring", str(size * 1024)))
       for size in (4, 16, 24, 32, 48)},
    "64k": Workload("64 KiB, keep-alive, 64 connections", path="/64k.bin",
                    floor=("null_sendfile", str(WWW / "64k.bin")), uring_floor=None),
    "large": Workload("66 MiB, 8 connections", path="/video.mp4", load=Load(connections=8),
                      floor=("null_sendfile", str(WWW / "video.mp4")), uring_floor=None),
}
USUAL = ["1k", "pipelined", "close", "404"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(WORKLOADS)}, or all")
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"), help="the release binary")
    parser.add_argument("--engines", default="epoll,uring", help="engines, such as epoll,epoll+reactor,epoll:splice; default: epoll,uring")
    parser.add_argument("--option", action="append", default=[], metavar="'--NAME VALUE'",
                        help="a further option for tenfold serve; repeatable")
    parser.add_argument("--peers", default=USUAL_PEERS,
                        help=f"of {','.join(PEERS)}, or none; default: {USUAL_PEERS}")
    parser.add_argument("--peer-threads", type=int, default=1, help="threads of evhttp and asio-threads")
    parser.add_argument("-s", "--seconds", type=int, default=2, help="seconds of each run")
    parser.add_argument("-r", "--rounds", type=int, default=9)
    parser.add_argument("--first-port", type=int, default=8300, help="the first port of the servers")
    parser.add_argument("--server-cpu", type=int, default=0)
    parser.add_argument("--client-cpu", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="file for the tables; default: results/DATE-TIME.txt")
    args = parser.parse_args()
    args.tenfold = str(pathlib.Path(args.tenfold).resolve())  # servers start in another folder
    args.workloads = list(WORKLOADS) if args.workloads == ["all"] else args.workloads or USUAL
    args.engines = [engine for engine in args.engines.split(",") if engine]
    args.peers = [] if args.peers == "none" else [peer for peer in args.peers.split(",") if peer]
    for names, legal in ((args.workloads, WORKLOADS), (args.peers, PEERS)):
        if unknown := [name for name in names if name not in legal]:
            parser.error(f"{', '.join(unknown)}: not one of {', '.join(legal)}")
    check_programs(args)
    return args


def check_programs(args):
    """Exits if a program or a file is missing."""
    missing = [file for file in (HERE / "null_epoll", WWW / "video.mp4") if not file.exists()]
    if missing:
        raise SystemExit(f"{missing[0].relative_to(HERE.parent)} is missing; run `cargo xtask bench`")
    if args.engines and not pathlib.Path(args.tenfold).exists():
        raise SystemExit(f"{args.tenfold} is missing; run `cargo build --release`, or use --tenfold")


def start_lasting(fleet, args):
    """Starts Tenfold on each engine, and the peers, for all workloads. Returns {name: port}."""
    ports = {}
    for engine in args.engines:
        model, dispatch, sender, options = parts(engine)
        command = [args.tenfold, "serve", str(WWW), "--listen", "127.0.0.1:@PORT@", "--engine", model]
        if dispatch:
            command += ["--dispatch", dispatch]
        if sender:
            command += ["--send", sender]
        if model not in ("naive", "fork", "thread", "pool"):
            command += ["--workers", "1"]
        if "--access-log" not in options:
            command += ["--access-log", "off"]
        command += [*(word for option in args.option for word in option.split()), *options]
        ports[engine] = fleet.start(engine, command)
    for peer in args.peers:
        file = HERE / "peers" / f"{peer}.conf"
        config = (file.name, file.read_text()) if file.exists() else None
        command = [word.replace("@THREADS@", str(args.peer_threads)) for word in PEERS[peer]]
        ports[peer] = fleet.start(peer, command, config=config)
    return ports


def parts(engine):
    """Parses ENGINE+DISPATCH:SENDER OPTION VALUE ..., of which only ENGINE is required."""
    name, *options = engine.split()
    rest, _, sender = name.partition(":")
    model, _, dispatch = rest.partition("+")
    return model, dispatch, sender, options


def start_floors(fleet, work, engines):
    """Starts the floors of a workload, each twice. Returns {name: port}, and the floor of each engine."""
    ports, of_engine = {}, {}
    for program_and_arguments, mine in floors_of(work, engines):
        program, *arguments = program_and_arguments
        for name in (program, program + "'"):
            ports[name] = fleet.start(name, [str(HERE / program), "@PORT@", *arguments])
        of_engine |= dict.fromkeys(mine, program)
    return ports, of_engine


def floors_of(work, engines):
    """The floor programs of a workload with the engines that are compared with them. The first floor always runs."""
    on_ring = [engine for engine in engines if parts(engine)[0] == "uring"] if work.uring_floor else []
    yield work.floor, [engine for engine in engines if engine not in on_ring]
    if on_ring:
        yield work.uring_floor, on_ring


class Gathered(NamedTuple):
    """The results of a workload: the rounds of each server, and the server that each is compared with."""
    results: dict
    bases: dict
    references: list


def gather(work, fleet, lasting, args):
    """Measures a workload."""
    servers = 2 * len(list(floors_of(work, args.engines))) + len(lasting) + work.own_reference * len(args.engines)
    print(f"{work.title}: about {servers * args.rounds * args.seconds} s ...", file=sys.stderr, flush=True)
    floors, of_engine = start_floors(fleet, work, args.engines)
    floor_places = [Place(name, port, work.path) for name, port in floors.items()]
    places = [Place(name, port, work.path) for name, port in lasting.items()]
    references = [Place(f"{engine} 1 KiB", lasting[engine], "/1k.html") for engine in args.engines] if work.own_reference else []
    check_answers(floor_places + references, work.floor_status, same_bytes=False)
    check_answers(places, work.load.status, same_bytes=work.load.status == 200)
    first_floor = work.floor[0]
    bases = {place.name: of_engine.get(place.name, first_floor) for place in places}
    bases |= {name: name.rstrip("'") for name in floors}
    bases |= {place.name: of_engine[place.name.removesuffix(" 1 KiB")] for place in references}

    load = work.load._replace(seconds=args.seconds, client_cpu=args.client_cpu)
    results = measure(floor_places + references + places, load, args.rounds, args.seed)
    for name in floors:
        fleet.stop(name)
    return Gathered(results, bases, references)


def run(work, fleet, lasting, args):
    """Measures a workload and returns its text."""
    results, bases, references = gather(work, fleet, lasting, args)
    lines = [f"== {work.title}", table(results, bases)]
    pairs = [(engine, other) for engine in args.engines for other in ([f"{engine} 1 KiB"] if references else []) + args.peers]
    pairs += [(engine, other) for engine in args.engines for other in args.engines if other.startswith((f"{engine}:", f"{engine}+", f"{engine} "))]
    for engine, other in pairs:
        mean, low, high = ratio(results, engine, other, args.seed)
        lines.append(f"{engine} / {other}: {mean:.2f}  {low:.2f} .. {high:.2f}")
    return "\n".join(lines)


def main():
    args = parse()
    out = pathlib.Path(args.out) if args.out else HERE / "results" / time.strftime("%Y-%m-%d-%H%M%S.txt")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-") as run_folder, out.open("w") as file:
        def tell(text):
            print(text + "\n", flush=True)
            file.write(text + "\n\n")
            file.flush()

        tell(describe(args, PEERS))
        with Fleet(run_folder, WWW, args.server_cpu, args.first_port) as fleet:
            lasting = start_lasting(fleet, args)
            for name in args.workloads:
                tell(run(WORKLOADS[name], fleet, lasting, args))
    print(f"written to {out}")


if __name__ == "__main__":
    sys.exit(main())
