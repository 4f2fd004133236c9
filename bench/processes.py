"""Which processes serve a port, and what NAME=PORT[/PATH] on a command line means.

Shared by measure.py, idle.py, syscalls.py and compare.py. Needs ss (package iproute2).
"""
import os, re, subprocess
from typing import NamedTuple


class Place(NamedTuple):
    """One server under measurement: 127.0.0.1:port, asked for path."""
    name: str
    port: int
    path: str


def place(text, default_path="/1k.html"):
    """NAME=PORT[/PATH]; without NAME= the port is the name."""
    name, equals, rest = text.rpartition("=")
    port, slash, path = rest.partition("/")
    if not port.isdigit():
        raise SystemExit(f"{text}: not NAME=PORT[/PATH], epoll=8201/1k.html for instance")
    return Place(name if equals else port, int(port), "/" + path if slash else default_path)


def listeners(port):
    """Every process that holds a socket listening on the port; an error when there is none."""
    out = subprocess.run(["ss", "-ltnpH", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    pids = sorted({int(pid) for pid in re.findall(r"pid=(\d+)", out)})
    if not pids:
        reason = "its process belongs to another user" if out.strip() else "nothing listens there"
        raise SystemExit(f"port {port}: {reason}")
    return pids


def with_descendants(pids):
    """The processes and all their live descendants: workers that were forked without the listener count too."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue  # it ended while we were looking
        children.setdefault(parent, []).append(int(entry))
    seen, todo = set(), list(pids)
    while todo:
        pid = todo.pop()
        if pid not in seen:
            seen.add(pid)
            todo += children.get(pid, [])
    return seen
