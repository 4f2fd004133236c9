#!/usr/bin/env python3
"""Lists the files of the workspace that a GET of a cached file enters on `epoll`, with the executed lines.

usage: path.py [-n REQUESTS] [--lines]

Builds the server with coverage (profile dev, in target/coverage), warms it up, and reads its counters before and after
REQUESTS keep-alive requests of a small file on one connection. A region of code belongs to the path if it ran for at
least nine of ten requests, so a timer or a signal does not count. The worker maps the file of the counters, so the
sandbox stays on. A second pass makes requests more than a second apart: it adds the revalidation of the file and a new
date. The files of the first pass are compared with the list in ARCHITECTURE.md, "The path of a request"; a difference
is an error.
Needs: rustup component add llvm-tools.
"""
import argparse, json, os, pathlib, re, shutil, socket, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "target/coverage"
SERVER = TARGET / "debug/tenfold"
FLAGS = ["-C", "instrument-coverage", "-C", "llvm-args=-runtime-counter-relocation"]
# A revalidation reloads a file that is younger than two seconds, so the first pauses do not count.
WARM_UP, PAUSED, PAUSE_SECONDS = 200, 4, 1.1


def tool(name):
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], cwd=ROOT, capture_output=True, text=True, check=True)
    found = list(pathlib.Path(sysroot.stdout.strip()).glob(f"lib/rustlib/*/bin/{name}"))
    return str(found[0]) if found else sys.exit(f"{name} is missing: rustup component add llvm-tools")


def build():
    """Runs rustc, with instrumentation for the crates of the workspace: this file is also the wrapper of rustc."""
    environment = os.environ | {"RUSTC_WORKSPACE_WRAPPER": str(ROOT / "bench/path.py"), "LLVM_PROFILE_FILE": "/dev/null"}
    command = ["cargo", "build", "--quiet", "-p", "tenfold", "--target-dir", str(TARGET)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


class Client:
    """A connection that requests one file."""

    def __init__(self, port):
        for _ in range(100):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
                return
            except ConnectionRefusedError:
                time.sleep(0.1)
        sys.exit("the server does not listen")

    def get(self, times, pause=0):
        for _ in range(times):
            time.sleep(pause)
            self.socket.sendall(b"GET /page.txt HTTP/1.1\r\nHost: localhost\r\nUser-Agent: path\r\nAccept: */*\r\n\r\n")
            received = b""
            while not (received.startswith(b"HTTP/1.1 200") and received.endswith(b"the page\n")):
                part = self.socket.recv(1 << 16)
                received += part or sys.exit(f"not the page: {received}")


def regions(folder, name):
    """{(file, first line, last line, place): count} of the counters in a copy of the mapped file."""
    data = str(folder / "data")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-o", data, str(folder / name)], check=True)
    export = [tool("llvm-cov"), "export", str(SERVER), f"-instr-profile={data}"]
    functions = json.loads(subprocess.run(export, capture_output=True, check=True).stdout)["data"][0]["functions"]
    counts = {}
    for function in functions:
        for first, column, last, end, count, file, _, kind in function["regions"]:
            if kind == 0:
                counts[function["filenames"][file], first, last, (function["name"], column, end)] = count
    return counts


def entered(before, after, least):
    """{file: {region}} of the regions that ran at least this often between two counts."""
    files = {}
    for region, count in after.items():
        file = pathlib.Path(region[0])
        if count - before.get(region, 0) >= least and file.is_relative_to(ROOT / "crates"):
            files.setdefault(str(file.relative_to(ROOT / "crates")), set()).add(region[1:])
    return files


def show(title, files, lines):
    print(f"{title}: {len(files)} files")
    for file, found in sorted(files.items()):
        # A region contains its inner regions; the lines of a short region are its own.
        text = (ROOT / "crates" / file).read_text().splitlines()
        ran = sorted({line for first, last, _ in found for line in ((first, last) if last > first else (first,))})
        print(f"  {file:<44}{len(found):>4} regions of {len(text)} lines")
        for line in ran if lines else ():
            print(f"    {line:>4} {text[line - 1]}")


def differences(path):
    """The files that are only in the path, or only in the numbered list of ARCHITECTURE.md."""
    section = (ROOT / "ARCHITECTURE.md").read_text().split("\n## The path of a request")[1].split("\n## ")[0]
    listed = re.findall(r"`([a-z_0-9/]+\.rs)`", "".join(re.findall(r"^\d+\..*\n(?: {3}.*\n)*", section, re.M)))
    named = {name.replace("src/", "") for name in listed}
    entered = {file.replace("/src/", "/"): file for file in path}
    ends = {short: {name for name in named if f"/{short}".endswith(f"/{name}")} for short in entered}
    return "\n".join([f"not in ARCHITECTURE.md: {entered[short]}" for short, names in sorted(ends.items()) if not names]
                     + [f"not entered: {name}" for name in sorted(named - set().union(*ends.values()))]) or None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--requests", type=int, default=1000)
    parser.add_argument("--lines", action="store_true", help="print the first and the last line of each region")
    args = parser.parse_args()
    build()
    with tempfile.TemporaryDirectory(prefix="path-") as name:
        folder = pathlib.Path(name)
        (folder / "site").mkdir()
        (folder / "site/page.txt").write_text("the page\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [SERVER, "serve", folder / "site", "-l", f"127.0.0.1:{port}", "--engine", "epoll", "--workers", "1",
                   "--access-log", "off"]
        profile = os.environ | {"LLVM_PROFILE_FILE": str(folder / "%c%p.profraw")}
        server = subprocess.Popen(command, env=profile, stderr=subprocess.DEVNULL)
        try:
            client = Client(port)
            client.get(WARM_UP)
            mapped, = folder.glob("*.profraw")
            for at, (times, pause) in enumerate([(0, 0), (args.requests, 0), (PAUSED, PAUSE_SECONDS), (PAUSED, PAUSE_SECONDS)]):
                client.get(times, pause)
                shutil.copyfile(mapped, folder / f"counters-{at}")
        finally:
            server.terminate()
            server.wait()
        counters = [regions(folder, f"counters-{at}") for at in range(4)]
    path = entered(counters[0], counters[1], args.requests * 9 // 10)
    show("each request", path, args.lines)
    seconds = entered(counters[2], counters[3], 1)
    show("after a second", {file: found for file, found in seconds.items() if file not in path}, args.lines)
    return differences(path)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.basename(sys.argv[1]) == "rustc":
        os.execvp(sys.argv[1], [*sys.argv[1:], *FLAGS])
    sys.exit(main())
