#!/usr/bin/env python3
"""Measures the controller of `tenfold bench --on` with many agents, without their load.

usage: agents.py [--program PROGRAM] [--counts 1,10,50,200] [--rounds N] [--out PAGE]

One true agent makes a load and its record is kept. Then stubs take the place of agents: each answers pings, waits for
the time of the run, and sends that record. So the controller does all its work, and no load disturbs it. With the
largest count, a run follows in which 10 of the agents end in the middle. --out replaces the section Measured of a page. Traffic goes only to 127.0.0.1.
"""
import argparse, json, os, re, statistics, struct, subprocess, sys, tempfile, time

SECONDS = 2
FAILING = 10
# Of each agent, as in the record.
CONNECTIONS = 10


def read_frame(stream):
    head = stream.read(4)
    return stream.read(struct.unpack(">I", head)[0]) if len(head) == 4 else b""


def write_frame(stream, message):
    data = message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode()
    stream.write(struct.pack(">I", len(data)) + data)
    stream.flush()


def magic(stream):
    """The first line of an agent."""
    while line := stream.readline():
        if line.startswith(b"tenfold-agent "):
            return line
    raise SystemExit("the program is no agent")


def record(folder, program):
    """A true agent whose messages pass through; its line, its machine and its record are kept."""
    import threading
    agent = subprocess.Popen([program, "agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    line = magic(agent.stdout)
    kept = {"line": line.decode()}
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()

    def forward():
        while data := os.read(0, 65536):
            agent.stdin.write(data)
            agent.stdin.flush()
        agent.stdin.close()

    threading.Thread(target=forward, daemon=True).start()
    while data := read_frame(agent.stdout):
        said = json.loads(data).get("say") if data.startswith(b'{"say"') else None
        if isinstance(said, dict):
            kept.update({name: said[name] for name in ("Here", "Ready", "Done") if name in said})
        if "Done" in kept:
            open(os.path.join(folder, "kept"), "w").write(json.dumps(kept))
        write_frame(sys.stdout.buffer, data)


def replay(folder, name):
    """A stub in place of an agent."""
    kept = json.load(open(os.path.join(folder, "kept")))
    failing = os.path.exists(os.path.join(folder, "failing")) and int(name.removeprefix("stub")) <= FAILING
    done = kept.pop("Done")
    tail = b',"record":' + json.dumps(done["record"], separators=(",", ":")).encode() + b"}}}"
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sink.write(kept["line"].encode())
    sink.flush()
    import select
    at, ends, told = None, None, 0
    while True:
        now = time.monotonic_ns()
        if at and failing and now > at + SECONDS * 500_000_000:
            sys.exit("the stub was asked to fail")
        if at and now > at + SECONDS * 1_000_000_000:
            write_frame(sink, b'{"say":{"Done":{"number":%d,"begun":%d' % (number, at) + tail)
            at = None
        elif at and now > told + 250_000_000:
            told = now
            write_frame(sink, {"say": {"Progress": [1, 0, 1, 1]}})
        if not select.select([source], [], [], 0.05)[0]:
            continue
        data = read_frame(source)
        if not data:
            return
        order = json.loads(data)
        if order == "end":
            write_frame(sink, {"ended": ""})
        elif "ping" in order:
            write_frame(sink, {"pong": {"number": order["ping"], "clock": time.monotonic_ns()}})
        elif "begin" in order:
            write_frame(sink, {"say": {"Here": kept["Here"]}})
        elif "say" in order and "Plan" in order["say"]:
            write_frame(sink, {"say": {"Ready": kept["Ready"]}})
        elif "say" in order:
            number, at = order["say"]["Run"]["number"], order["say"]["Run"]["at"]


def usage(pid):
    """Processor seconds and the largest resident memory in MiB of a process without its children."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    peak = next(line for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) / 1024


def run(program, count, command, folder):
    """One run with `count` agents."""
    words = [program, "bench", "--json", "-d", str(SECONDS), "-c", str(CONNECTIONS * count), "--on-command", command, "127.0.0.1:9"]
    for number in range(1, count + 1):
        words += ["--on", f"stub{number}"]
    begin = time.monotonic()
    out = open(os.path.join(folder, "out"), "w+")
    child = subprocess.Popen(words, stdout=out, stderr=subprocess.DEVNULL)
    used = (0, 0)
    while child.poll() is None:
        try:
            used = usage(child.pid)
        except (OSError, StopIteration):
            pass
        time.sleep(0.02)
    took = time.monotonic() - begin
    out.seek(0)
    text = out.read()
    report = json.loads(text) if text else {"runs": [{"agents": [], "answers": 0}]}
    found = report["runs"][0]
    lost = sum(1 for row in found["agents"] if row["lost"])
    return {"cpu": used[0], "memory": used[1], "took": took, "code": child.returncode, "lost": lost,
            "answers": found["answers"], "kept": len(found["agents"]) - lost}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/tenfold")
    parser.add_argument("--counts", default="1,10,50,200")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out")
    options = parser.parse_args()
    program, own = os.path.realpath(options.program), os.path.realpath(__file__)
    with tempfile.TemporaryDirectory() as folder:
        site = os.path.join(folder, "site")
        os.mkdir(site)
        open(os.path.join(site, "file"), "wb").write(os.urandom(1000))
        server = subprocess.Popen([program, "serve", site, "--listen", "127.0.0.1:18099"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            time.sleep(1)
            command = f"python3 -S -E {own} --record {folder} {program}"
            words = [program, "bench", "-d", str(SECONDS), "-c", str(CONNECTIONS), "--on", "one", "--on-command", command, "http://127.0.0.1:18099/file"]
            subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        finally:
            server.terminate()
            server.wait()
        kept = os.path.getsize(os.path.join(folder, "kept"))
        command = f"python3 -S -E {own} --replay {folder} {{}}"
        rows = []
        for count in map(int, options.counts.split(",")):
            runs = [run(program, count, command, folder) for _ in range(options.rounds)]
            if any(found["lost"] or found["kept"] != count for found in runs):
                raise SystemExit(f"{count} agents: {runs}")
            rows.append((str(count), runs))
        open(os.path.join(folder, "failing"), "w").close()
        runs = [run(program, count, command, folder)]
        rows.append((f"{count}, of which {FAILING} end", runs))
    kernel = re.match(r"[0-9.]+", os.uname().release)[0]
    table = [f"Linux {kernel}, {os.cpu_count()} processors. A record of {kept / 1024:.0f} KiB; {options.rounds} rounds; median, and the range in brackets.", "",
             "| agents | controller's CPU, s | its memory, MiB | whole command, s | exit code |", "| --- | --- | --- | --- | --- |"]
    for name, runs in rows:
        def shown(key, digits):
            values = sorted(found[key] for found in runs)
            middle = f"{statistics.median(values):.{digits}f}"
            return middle if len(values) == 1 else f"{middle} [{values[0]:.{digits}f}–{values[-1]:.{digits}f}]"
        codes = ", ".join(str(code) for code in sorted({found["code"] for found in runs}))
        lost = f", {runs[0]['lost']} lost, {runs[0]['kept']} kept" if runs[0]["lost"] else ""
        table.append(f"| {name} | {shown('cpu', 2)} | {shown('memory', 0)} | {shown('took', 2)} | {codes}{lost} |")
    text = "\n".join(table)
    print(text)
    if options.out:
        page = open(options.out).read()
        begin, end = "\n### Measured\n", "\n## "
        page = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: f"{begin}\n{text}\n{end}", page, flags=re.S)
        open(options.out, "w").write(page)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        record(*sys.argv[2:4])
    elif sys.argv[1:2] == ["--replay"]:
        replay(*sys.argv[2:4])
    else:
        main()
