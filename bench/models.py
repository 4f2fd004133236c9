#!/usr/bin/env python3
"""Measures what breaks each I/O model with the laboratory, and writes the charts of docs/explanation/models.

usage: models.py [-b BLOCKS] [MODEL ...]

Each model has a small experiment, which `tenfold lab run` runs: every block has each cell once, in random order. The
result is the section "In the laboratory" of the model's page: a chart, its table, the machine and the commit. All
models take about ten minutes, in which nothing else should run. MODEL selects some of them.

Needs a release build, strace and a C compiler.
"""
import argparse, json, os, pathlib, platform, re, statistics, subprocess, sys, tempfile, time
from typing import NamedTuple

from environment import commit, cpu_model

HERE = pathlib.Path(__file__).resolve().parent
PAGES = HERE.parent / "docs/explanation/models"
TITLE = "In the laboratory"


class Cell(NamedTuple):
    """A server and its load, as in a file of the laboratory."""
    settings: dict
    load: dict
    subject: str = "tenfold"


class Column(NamedTuple):
    """A column with a chart of its own: its title, the measure of the laboratory, and the unit."""
    title: str
    measure: str
    unit: str
    scale: float = 1.0


class Study(NamedTuple):
    """The cells of a model: by row and column if `over` names the first column, otherwise by row."""
    says: str
    columns: tuple
    cells: dict
    over: str = ""


def engine(name, **settings):
    """The settings of a server."""
    one = {} if name in ("naive", "fork", "thread", "pool") else {"workers": "1"}
    return {"engine": name, **one, **{key.replace("_", "-"): value for key, value in settings.items()}}


def grid(servers, key, levels, **load):
    """A cell for each level of `load[key]` and each server."""
    return {level: {name: Cell(settings, {key: level, **load}) for name, settings in servers.items()} for level in levels}


UNANSWERED = Column("Unanswered", "unanswered", "connections")
CPU = Column("CPU time of a response", "cpu", "µs")
MEMORY = Column("Resident memory", "memory", "MiB", 1 / 1024)
CALLS = Column("Cost of a response", "calls", "calls")
IDLE, BUSY = "idle connections", "busy connections"

STUDIES = {
    "naive": Study(
        "Connections that make requests for two seconds and never get a response.", (UNANSWERED,),
        grid({"naive": engine("naive"), "epoll": engine("epoll")}, "connections", (1, 2, 4, 8, 16),
             may_fail=True, milliseconds=2000), BUSY),
    "fork": Study(
        "16 connections at a time, a new one for each request.", (CPU,),
        {f"`{name}`": Cell(engine(name), {"connections": 16, "close": True, "milliseconds": 800})
         for name in ("fork", "thread", "pool", "epoll")}),
    "thread": Study(
        "One connection makes requests, the others have made one each.", (MEMORY,),
        grid({"thread": engine("thread", max_connections="4096"), "epoll": engine("epoll", max_connections="4096")},
             "idle", (0, 250, 500, 1000, 2000), connections=1, milliseconds=400), IDLE),
    "pool": Study(
        "A pool of four threads. Connections that make requests for two seconds and never get a response.", (UNANSWERED,),
        grid({"pool": engine("pool", pool_threads="4"), "epoll": engine("epoll")}, "connections", (2, 4, 8, 16, 32),
             may_fail=True, milliseconds=2000), BUSY),
    "busy": Study(
        "50 requests per second on one connection.", (CPU, Column("p50 of the latency", "p50", "ms")),
        {title: Cell(settings, {"connections": 1, "rate": 50, "milliseconds": 2000}) for title, settings in
         (*((f"`busy-sleep {sleep}`", engine("busy", busy_sleep=sleep)) for sleep in ("0ms", "1ms", "10ms")),
          ("`epoll`", engine("epoll")))}),
    "select": Study(
        "16 connections make requests, the idle ones have made one each. `select` has no room for more.", (CPU,),
        grid({name: engine(name) for name in ("select", "epoll")}, "idle", (0, 100, 300, 900),
             connections=16, milliseconds=400), IDLE),
    "poll": Study(
        "16 connections make requests, the idle ones have made one each.", (CPU,),
        grid({name: engine(name) for name in ("poll", "epoll")}, "idle", (0, 500, 1000, 2000, 4000),
             connections=16, milliseconds=400), IDLE),
    "epoll": Study(
        "64 connections arrive at the [museum's](../../how-to/measure/museum.md) program with an edge-triggered listener. "
        "Connections that never get a response in two seconds.", (UNANSWERED,),
        {title: Cell({"exhibit": "accept-one", "corrected": corrected},
                     {"connections": 64, "milliseconds": 2000, "may-fail": True}, "museum")
         for title, corrected in (("one accept for each event", "off"), ("accept until EAGAIN", "on"))}),
    "libevent": Study(
        "The same program with each method of the library. 16 connections make requests, the idle ones have made one each.",
        (CPU,),
        grid({method: engine("libevent", libevent_method=method) for method in ("epoll", "poll", "select")},
             "idle", (0, 300, 600, 900), connections=16, milliseconds=400), IDLE),
    "asio": Study(
        "The system calls of the server, counted under `strace`.", (CALLS,),
        grid({name: engine(name) for name in ("asio", "epoll")}, "connections", (1, 4, 16, 64), trace=True, milliseconds=500), BUSY),
    "asio-proactor": Study(
        "One connection makes requests, the others have made one each.", (MEMORY,),
        grid({name: engine(name) for name in ("asio-proactor", "asio", "uring")}, "idle", (0, 1000, 2000, 4000),
             connections=1, milliseconds=400), IDLE),
    "uring": Study(
        "The system calls of the server, counted under `strace`.", (CALLS,),
        grid({name: engine(name) for name in ("epoll", "uring")}, "connections", (1, 4, 16, 64), trace=True, milliseconds=500), BUSY),
}


def named(study):
    """The cells with their names for the laboratory."""
    if not study.over:
        return {f"row-{number}": cell for number, cell in enumerate(study.cells.values())}
    return {f"{column}-{level}": cell for level, row in study.cells.items() for column, cell in row.items()}


def toml(value):
    return json.dumps(value, ensure_ascii=False)


def experiment(model, study):
    """The file of the laboratory."""
    lines = [f"{key} = {toml(value)}" for key, value in
             (("name", f"breaks-{model}"), ("title", f"What breaks {model}"), ("source", "bench/models.py"),
              ("setting", "none"), ("scaled", study.says))]
    cells = named(study)
    for name, cell in cells.items():
        tables = {key: ", ".join(f"{name.replace('_', '-')} = {toml(value)}" for name, value in table.items())
                  for key, table in (("settings", cell.settings), ("load", cell.load))}
        lines += [f"\n[cells.{name}]", f"subject = {toml(cell.subject)}", *(f"{key} = {{ {text} }}" for key, text in tables.items())]
    # The laboratory runs the cells that a claim names.
    rule = f"{{ best = {toml(list(cells)[-1])}, among = {toml(list(cells)[:-1])} }}"
    lines += ["\n[[claims]]", 'says = "The last cell is the best."', 'published = "none"',
              f"measure = {toml(study.columns[0].measure)}", f"rule = {rule}"]
    return "\n".join(lines) + "\n"


def measured(model, study, args):
    """Runs the laboratory. Returns {cell: {measure: [value of each block]}}, and the share of disturbed trials."""
    with tempfile.TemporaryDirectory(prefix="models-") as folder:
        file, output = pathlib.Path(folder, f"{model}.toml"), pathlib.Path(folder, "run")
        file.write_text(experiment(model, study))
        command = [args.tenfold, "lab", "run", "--only", str(file), "--blocks", str(args.blocks), "--peers", "none",
                   "--output", str(output)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{' '.join(command)}:\n{run.stdout[-2000:]}{run.stderr}")
        trials = [json.loads(line) for line in (output / "trials.jsonl").read_text().splitlines()]
    last = {}
    for trial in sorted(trials, key=lambda trial: trial["attempt"]):
        if not trial["control"]:
            last[trial["cell"], trial["block"]] = trial
    values = {name: {} for name in named(study)}
    for (name, _), trial in last.items():
        for column in study.columns:
            if column.measure not in trial["values"]:
                raise SystemExit(f"{model}: no {column.measure} of {name}: {trial['failed'] or trial['notes']}")
            values[name].setdefault(column.measure, []).append(trial["values"][column.measure] * column.scale)
    return values, sum(bool(trial["flags"]) for trial in last.values()) / len(last)


def shown(value):
    """A number that the charts read: three digits, without separators."""
    return f"{value:.0f}" if value >= 100 or value == round(value) else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values):
    return f"{shown(min(values))}–{shown(max(values))}"


def rows(study, values):
    """The lines of the table: medians over blocks, with the range in each cell or in the last row."""
    if not study.over:
        yield "| | " + " | ".join(f"{column.title}, {column.unit}" for column in study.columns) + " |"
        yield "| --- |" + " --- |" * len(study.columns)
        for title, name in zip(study.cells, named(study)):
            found = [values[name][column.measure] for column in study.columns]
            yield f"| {title} | " + " | ".join(f"{shown(statistics.median(one))} [{spread(one)}]" for one in found) + " |"
        return
    measure, names = study.columns[0].measure, list(next(iter(study.cells.values())))
    yield f"| {study.over} | " + " | ".join(names) + " |"
    yield "| ---: |" + " ---: |" * len(names)
    for level in study.cells:
        found = [shown(statistics.median(values[f"{name}-{level}"][measure])) for name in names]
        yield f"| {level:,} | " + " | ".join(found) + " |"
    yield f"| range at {level:,} | " + " | ".join(spread(values[f"{name}-{level}"][measure]) for name in names) + " |"


def section(model, study, values, disturbed, args):
    """The section of the model's page."""
    charts = [f"```chart\ntitle: {column.title}\nlines: {column.unit}\n```" if study.over else
              f"```chart\nbars: median over blocks\ncolumn: {column.title}\n```" for column in study.columns]
    where = f"{cpu_model()}, {os.cpu_count()} processors, Linux {platform.release().partition('-')[0]}"
    what, ranges = study.columns[0], "the last row is the range over blocks" if study.over else "the range is in brackets"
    end = (f"{f'{what.title}, {what.unit}: medians' if study.over else 'Medians'} over {args.blocks} blocks; {ranges}. "
           f"`bench/models.py {model}` measured this on {time.strftime('%-d %B %Y')}: {where}, commit {args.commit}.")
    if disturbed:
        end += f" Other programs ran, or something else disturbed, {disturbed * 100:.0f} % of the trials."
    return "\n\n".join([f"### {TITLE}", study.says, *charts, "\n".join(rows(study, values)), end]) + "\n\n"


def merged(page, new):
    """The page with the new section at the end of `What breaks it`."""
    page = re.sub(rf"^### {TITLE}\n.*?(?=^## )", "", page, flags=re.MULTILINE | re.DOTALL)
    return page.replace("\n## Exercise\n", f"\n{new}## Exercise\n", 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(STUDIES)}; default: all")
    parser.add_argument("-b", "--blocks", type=int, default=4)
    parser.add_argument("--tenfold", default=str(HERE.parent / "target/release/tenfold"), help="the release binary")
    args = parser.parse_args()
    if unknown := [name for name in args.models if name not in STUDIES]:
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(STUDIES)}")
    args.tenfold = str(pathlib.Path(args.tenfold).resolve())
    args.commit = commit()  # before the first page is written
    for model in args.models or STUDIES:
        begun, study = time.monotonic(), STUDIES[model]
        page = PAGES / f"{model}.md"
        new = section(model, study, *measured(model, study, args), args)
        page.write_text(merged(page.read_text(), new))
        print(f"{page.relative_to(HERE.parent)}: {time.monotonic() - begun:.0f} s\n\n{new}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
