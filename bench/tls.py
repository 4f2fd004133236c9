#!/usr/bin/env python3
"""Measures Tenfold with TLS, nginx and h2o: the same certificate (ECDSA P-256), one core, one run.

usage: tls.py [--tenfold BINARY] [--engines E,E] [-r ROUNDS] [-s SECONDS] [WORKLOAD ...]

Workloads: keep-alive (1 KiB), handshake (a connection and a full handshake for each request), resumed (a connection
that resumes a session for each request) and large (66 MB). Default: all.
Ratios are relative to nginx. Needs wrk, openssl, nginx, h2o, and www/ (cargo xtask bench).
Traffic goes only to 127.0.0.1.
"""
import argparse, pathlib, subprocess, tempfile

from fleet import Fleet
from measure import Load, check_answers, measure, table
from processes import Place

HERE = pathlib.Path(__file__).resolve().parent
WWW = HERE / "www"
PEERS = {"nginx": ["nginx", "-p", "@RUN@", "-e", "stderr", "-c", "@RUN@/nginx-tls.conf"], "h2o": ["h2o", "-c", "@RUN@/h2o-tls.conf"]}
WORKLOADS = {
    "keep-alive": ("1 KiB, keep-alive, 64 connections", "/1k.html", {}),
    "handshake": ("a connection and a full handshake for each request", "/1k.html", {"connections": 16, "bench": True}),
    "resumed": ("a connection that resumes a session for each request", "/1k.html", {"connections": 16, "bench": True, "resumed": True}),
    "large": ("66 MB, 4 connections", "/video.mp4", {"connections": 4}),
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", default=[])
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"))
    parser.add_argument("--engines", default="epoll,uring")
    parser.add_argument("--option", default="", help="further options of Tenfold")
    parser.add_argument("-r", "--rounds", type=int, default=7)
    parser.add_argument("-s", "--seconds", type=int, default=3)
    args = parser.parse_args()
    unknown = set(args.workloads) - set(WORKLOADS)
    if unknown:
        parser.error(f"unknown workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    return args


def make_certificate(folder):
    """Makes a certificate for localhost, which no client verifies."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{folder}/key.pem"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", *key, "-out", f"{folder}/cert.pem", "-days", "30", *names]
    subprocess.run(command, check=True, capture_output=True)


def main():
    args = parse()
    with tempfile.TemporaryDirectory() as folder, Fleet(folder, WWW, 0, 8400) as fleet:
        make_certificate(folder)
        ports = {}
        for peer, command in PEERS.items():
            file = HERE / "peers" / f"{peer}-tls.conf"
            ports[peer] = fleet.start(peer, command, config=(file.name, file.read_text()))
        for engine in args.engines.split(","):
            command = [args.tenfold, "serve", str(WWW), "--listen", "127.0.0.1:@PORT@", "--engine", engine, "--workers", "1",
                       "--tls-certificate", "@RUN@/cert.pem", "--tls-key", "@RUN@/key.pem", "--access-log", "off", "--control", "off"]
            ports[engine] = fleet.start(engine, [*command, *args.option.split()])
        for name in args.workloads or WORKLOADS:
            title, path, load = WORKLOADS[name]
            if load.get("bench"):
                load = load | {"bench": args.tenfold}
            places = [Place(server, port, path) for server, port in ports.items()]
            check_answers(places, 200, tls=True)
            results = measure(places, Load(seconds=args.seconds, tls=True, **load), args.rounds)
            print(f"== {title}\n{table(results, dict.fromkeys(ports, 'nginx'))}\n", flush=True)


if __name__ == "__main__":
    main()
