#!/usr/bin/env python3
"""Writes the book's page of a run of the laboratory, and the verdicts on the book's first page.

usage: lab_run.py [--earlier FOLDER] FOLDER

FOLDER is the output of `tenfold lab run --output FOLDER`. With --earlier, an earlier run on the same machine, the page
also has the verdicts on which both runs agree.
"""
import argparse, json, pathlib, re, statistics, sys, time

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
NAMES = {"nginx": "nginx", "apache": "Apache", "lighttpd": "lighttpd", "h2o": "h2o"}
# Rulings that contradict no other ruling.
OPEN = ("inconclusive", "not-testable-here")


class Run:
    """A finished run."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        found = json.loads((self.folder / "verdicts.json").read_text())
        self.verdicts = {(one["experiment"], one["claim"]): one for one in found["verdicts"]}
        self.controls = [control["effect"] for control in found["controls"]]
        self.peers, self.profile = found["environment"]["peers"], found["profile"]
        self.minutes = json.loads((self.folder / "plan.json").read_text())["budget"] // 60
        times = [json.loads(line)["at"] for line in (self.folder / "trials.jsonl").open()]
        self.began, self.ended = min(times), max(times)
        self.summary = re.sub(r"Linux (\d+\.\d+)[^,]*", r"Linux \1", (self.folder / "summary.md").read_text().strip())

    def count(self, ruling):
        return sum(one["ruling"] == ruling for one in self.verdicts.values())

    def facts(self):
        """The date, the other load, and the controls of the run."""
        version = lambda name: re.search(r"\d+(\.\d+)+", self.peers[name]).group()
        peers = [f"{shown} {version(name)}" for name, shown in NAMES.items() if name in self.peers]
        covering = sum(effect["low"] <= 1 <= effect["high"] for effect in self.controls)
        width = statistics.median((effect["high"] - effect["low"]) / 2 for effect in self.controls)
        day = time.strftime("%-d %B %Y", time.gmtime(self.began))
        command = f"tenfold lab run --profile {self.profile} --budget {self.minutes}m"
        return (f"```sh\n{command}\n```\n\nThis command ran on {day}, with {', '.join(peers[:-1])} and "
                f"{peers[-1]}, for {(self.ended - self.began) / 60:.0f} minutes. A control compares a cell with itself: of "
                f"{len(self.controls)} controls, {covering} have an interval that contains 1. The median half-width is "
                f"{width:.1%}. ".replace("%", " %") + "`bench/lab_run.py` wrote this page from the run's folder.")

    def agreement(self, earlier):
        """The verdicts of an earlier run on the same claims."""
        both = [(one, earlier.verdicts[key]) for key, one in self.verdicts.items() if key in earlier.verdicts]
        differ = [(one, other) for one, other in both if one["ruling"] != other["ruling"]]
        contradict = [pair for pair in differ if not any(one["ruling"] in OPEN for one in pair)]
        hours = (self.began - earlier.began) / 3600
        text = (f"A {earlier.profile} run that began {hours:.0f} {'hour' if round(hours) == 1 else 'hours'} earlier agrees in "
                f"{len(both) - len(differ)} of {len(both)} verdicts. In {len(differ) - len(contradict)} others, one of the "
                "two runs is INCONCLUSIVE.")
        for one, other in contradict:
            text += f" “{one['says'].rstrip('.')}” was {shown(other['ruling'])} and is {shown(one['ruling'])}."
        return text


def shown(ruling):
    return ruling.replace("-", " ").upper()


def replace(text, pattern, by, where):
    """Replaces the only line that matches."""
    text, found = re.subn(pattern, lambda _: by, text, flags=re.M)
    if found != 1:
        raise SystemExit(f"{where}: {found} lines match {pattern!r}, not one")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--earlier")
    args = parser.parse_args()
    run = Run(args.folder)
    parts = [f"# A {run.profile} run", run.facts()]
    if args.earlier:
        parts.append(run.agreement(Run(args.earlier)))
    page = DOCS / "explanation/lab-run.md"
    page.write_text("\n\n".join([*parts, run.summary]) + "\n")

    first = DOCS / "README.md"
    text = first.read_text()
    artefacts = run.count("artefact")
    artefacts = f"{artefacts} {'has' if artefacts == 1 else 'have'}"
    sentence = (
        f"Of {len(run.verdicts)} claims about server models, {run.count('holds')} hold, {run.count('reversed')} are reversed "
        f"and {run.count('no-difference')} make no difference in [a {run.profile} run of the laboratory]"
        f"(explanation/lab-run.md) on two processors. {run.count('inconclusive')} stayed open, "
        f"{run.count('not-testable-here')} need other hardware, and {artefacts} another cause than the model. Some of them:")
    text = replace(text, r"(?<=the verdicts on )\d+(?: published)?(?= claims, on one machine)", str(len(run.verdicts)), first)
    text = replace(text, r"^Of \d+ .*claims about server models, .*$", sentence, first)
    rows = {line.split(" | ")[0]: line for line in run.summary.splitlines() if line.startswith("| ")}
    for line in text.splitlines():
        claim = line.split(" | ")[0]
        if claim in rows and claim not in ("| claim", "| ---"):
            text = replace(text, rf"^{re.escape(line)}$", rows[claim], first)
    first.write_text(text)
    print(f"written to {page} and {first}")


if __name__ == "__main__":
    sys.exit(main())
