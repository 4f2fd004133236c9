"""Finds the processes that serve a port, and parses NAME=PORT[/PATH].

Used by measure.py, idle.py, syscalls.py and compare.py. Needs ss (package iproute2).
"""
import os, re, subprocess
from typing import NamedTuple


class Place(NamedTuple):
    """A measured server at 127.0.0.1:port, and the path to request."""
    name: str
    port: int
    path: str


def place(text, default_path="/1k.html"):
    """Parses NAME=PORT[/PATH]. Without NAME=, the port is the name."""
    name, equals, rest = text.rpartition("=")
    port, slash, path = rest.partition("/")
    if not port.isdigit():
        raise SystemExit(f"{text} is not NAME=PORT[/PATH], such as epoll=8201/1k.html")
    return Place(name if equals else port, int(port), "/" + path if slash else default_path)


def listeners(port):
    """The processes with a socket that listens on the port. Exits if there are none."""
    out = subprocess.run(["ss", "-ltnpH", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    pids = sorted({int(pid) for pid in re.findall(r"pid=(\d+)", out)})
    if not pids:
        reason = "its process belongs to another user" if out.strip() else "nothing listens there"
        raise SystemExit(f"port {port}: {reason}")
    return pids


def with_descendants(pids):
    """The processes and all their live descendants, including workers without the listening socket."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue  # it ended in the meantime
        children.setdefault(parent, []).append(int(entry))
    seen, todo = set(), list(pids)
    while todo:
        pid = todo.pop()
        if pid not in seen:
            seen.add(pid)
            todo += children.get(pid, [])
    return seen
