#!/usr/bin/env python3
"""Draws examples/site/media/waiting.mp4 and its poster: the same eight clients served by three engines.

Each scene is a small simulation: eight clients send requests, the third one drop by drop. What the server
does follows from the engine's rule and nothing else; the strip at the bottom is the trace of its system
calls. The times are chosen to be seen, not measured.

Needs python3-cairo and ffmpeg (Debian package names). Run it from anywhere:
    python3 examples/media/make-video.py
"""

import math
import subprocess
from pathlib import Path

import cairo

WIDTH, HEIGHT, RATE = 1280, 720, 30
OUT = Path(__file__).resolve().parent.parent / "site" / "media"

CLIENTS, SLOW = 8, 2
TRAVEL, THINK, DRIP = 0.36, 0.3, 0.55
SCENE = 10.0

NIGHT, PANEL, LINE = (0.055, 0.075, 0.12), (0.086, 0.114, 0.18), (0.2, 0.25, 0.36)
INK, QUIET = (0.93, 0.95, 0.98), (0.56, 0.62, 0.72)
TEAL, AMBER, ROSE, VIOLET = (0.25, 0.83, 0.75), (1.0, 0.72, 0.3), (0.98, 0.45, 0.5), (0.66, 0.6, 1.0)

CLIENT_X, EDGE_X, BOX = 150, 640, (700, 128, 470, 400)


def row(client):
    return 150 + client * 51


class Trace:
    """What happened: packets on the wire, the server's calls, and which connection it had in hand."""

    def __init__(self):
        self.packets = []  # (start, arrival, taken, client, kind)
        self.calls = []  # (start, end, label, kind)
        self.hands = []  # (start, end, client)
        self.served = []  # (time, client)

    def request(self, start, client):
        """Sends one request; the slow client's comes in four drops. Returns when each part arrives."""
        starts = [start + DRIP * drop for drop in range(4)] if client == SLOW else [start]
        parts = []
        for begin in starts:
            parts.append(len(self.packets))
            self.packets.append([begin, begin + TRAVEL, math.inf, client, "request"])
        return parts

    def take(self, part, now):
        self.packets[part][2] = now

    def respond(self, now, client):
        self.packets.append([now, now + TRAVEL, now + TRAVEL, client, "response"])
        self.served.append((now + TRAVEL, client))
        return now + TRAVEL

    def call(self, start, length, label, kind, client=None):
        self.calls.append((start, start + length, label, kind))
        if client is not None:
            self.hands.append((start, start + length, client))
        return start + length


def naive():
    """accept, serve until closed, accept the next."""
    trace, now = Trace(), 0.0
    waiting = [trace.request(0.25 + 0.09 * client, client) for client in range(CLIENTS)]
    for client in range(CLIENTS):
        first = trace.packets[waiting[client][0]][1]
        if first > now:
            now = trace.call(now, first - now, "accept", "wait")
        now = trace.call(now, 0.12, "accept", "open", client)
        parts = waiting[client]
        for _ in range(2):
            for part in parts:
                arrival = trace.packets[part][1]
                if arrival > now:
                    trace.hands.append((now, arrival, client))
                    now = trace.call(now, arrival - now, "recv", "wait")
                trace.take(part, now)
            now = trace.call(now, 0.1, "recv", "receive", client)
            now = trace.call(now, 0.1, "send", "send", client)
            parts = trace.request(trace.respond(now, client) + THINK, client)
        gone = trace.packets[parts[0]][0] + TRAVEL
        del trace.packets[-len(parts):]
        trace.hands.append((now, gone, client))
        now = trace.call(now, gone - now, "recv", "wait")
        now = trace.call(now, 0.1, "close", "open", client)
    return trace


def multiplexed(turn):
    """A loop over whatever has arrived; `turn` says which calls one turn of the loop makes."""
    trace, now = Trace(), 0.0
    pending, left = [], {}
    for client in range(CLIENTS):
        pending += [(trace.packets[part][1], part) for part in trace.request(0.25 + 0.09 * client, client)]
        left[client] = 4 if client == SLOW else 1
    while now < SCENE + 1 and pending:
        pending.sort()
        ready = [part for arrival, part in pending if arrival <= now]
        if not ready:
            now = trace.call(now, pending[0][0] - now, turn.waits, "wait")
            ready = [part for arrival, part in pending if arrival <= now]
        pending = [entry for entry in pending if entry[1] not in ready]
        now, answered = turn(trace, now, ready, left)
        for client, sent in answered:
            again = trace.request(trace.respond(sent, client) + THINK, client)
            pending += [(trace.packets[part][1], part) for part in again]
            left[client] = len(again)
    return trace


def epoll(trace, now, ready, left):
    """One epoll_wait for all that is ready, then a receive and a send for each."""
    answered = []
    now = trace.call(now, 0.04, "epoll_wait", "open")
    for part in ready:
        client = trace.packets[part][3]
        if client not in {who for _, _, who in trace.hands}:
            now = trace.call(now, 0.04, "accept", "open", client)
        trace.take(part, now)
        now = trace.call(now, 0.04, "recv", "receive", client)
        left[client] -= 1
        if left[client] == 0:
            now = trace.call(now, 0.04, "send", "send", client)
            answered.append((client, now))
    return now, answered


def uring(trace, now, ready, left):
    """Completions are read from shared memory; one call hands over every answer and waits."""
    answered = []
    for part in ready:
        client = trace.packets[part][3]
        trace.take(part, now)
        trace.hands.append((now, now + 0.06, client))
        now += 0.06
        left[client] -= 1
        if left[client] == 0:
            answered.append(client)
    now = trace.call(now, 0.06, "io_uring_enter", "open")
    return now, [(client, now) for client in answered]


epoll.waits, uring.waits = "epoll_wait", "io_uring_enter"

SCENES = [
    ("naive", "accept, serve until closed, accept the next", naive(), ROSE),
    ("epoll", "ask which connections are ready, then serve those", multiplexed(epoll), TEAL),
    ("uring", "hand operations over, collect what is complete", multiplexed(uring), VIOLET),
]
KINDS = {"open": AMBER, "receive": (0.45, 0.68, 1.0), "send": TEAL, "wait": (0.3, 0.35, 0.46)}


def ease(x):
    x = min(1.0, max(0.0, x))
    return x * x * (3 - 2 * x)


class Canvas:
    """The few drawing words that the scenes use."""

    def __init__(self, context):
        self.c = context

    def color(self, rgb, alpha=1.0):
        self.c.set_source_rgba(*rgb, alpha)

    def text(self, x, y, words, size, rgb=INK, alpha=1.0, mono=False, bold=False, anchor=0.0):
        face = "DejaVu Sans Mono" if mono else "DejaVu Sans"
        weight = cairo.FONT_WEIGHT_BOLD if bold else cairo.FONT_WEIGHT_NORMAL
        self.c.select_font_face(face, cairo.FONT_SLANT_NORMAL, weight)
        self.c.set_font_size(size)
        width = self.c.text_extents(words).x_advance
        self.color(rgb, alpha)
        self.c.move_to(x - width * anchor, y)
        self.c.show_text(words)
        return width

    def round(self, x, y, w, h, r, fill=None, stroke=None, alpha=1.0, line=2.0):
        self.c.new_path()
        for cx, cy, a in ((x + w - r, y + r, -90), (x + w - r, y + h - r, 0), (x + r, y + h - r, 90), (x + r, y + r, 180)):
            self.c.arc(cx, cy, r, math.radians(a), math.radians(a + 90))
        self.c.close_path()
        if fill:
            self.color(fill, alpha)
            self.c.fill_preserve() if stroke else self.c.fill()
        if stroke:
            self.color(stroke, alpha)
            self.c.set_line_width(line)
            self.c.stroke()

    def dot(self, x, y, r, rgb, alpha=1.0):
        self.c.new_path()
        self.c.arc(x, y, r, 0, 2 * math.pi)
        self.color(rgb, alpha)
        self.c.fill()

    def line(self, x1, y1, x2, y2, rgb, alpha=1.0, width=1.5):
        self.c.move_to(x1, y1)
        self.c.line_to(x2, y2)
        self.color(rgb, alpha)
        self.c.set_line_width(width)
        self.c.stroke()

    def ring(self, x, y, r, lit, rgb):
        """A ring of eight entries of which some are lit."""
        self.c.set_line_width(15)
        for slot in range(CLIENTS):
            begin = math.radians(slot * 45 - 90 + 3)
            self.c.new_path()
            self.c.arc(x, y, r, begin, begin + math.radians(39))
            self.color(rgb if slot in lit else LINE, 1.0 if slot in lit else 0.8)
            self.c.stroke()


def draw_clients(canvas, trace, t):
    held = {client for start, end, client in trace.hands if start <= t < end}
    for client in range(CLIENTS):
        y = row(client)
        canvas.line(CLIENT_X + 24, y, EDGE_X, y, LINE, 0.9 if client in held else 0.45, 2.5 if client in held else 1.2)
        answers = sum(1 for when, who in trace.served if who == client and when <= t)
        flash = max((1 - (t - when) / 0.5 for when, who in trace.served if who == client and 0 <= t - when < 0.5), default=0)
        canvas.dot(CLIENT_X, y, 17 + 5 * flash, TEAL if answers else LINE, 0.25 + 0.55 * flash if answers else 0.7)
        canvas.dot(CLIENT_X, y, 11, AMBER if client == SLOW else (TEAL if answers else QUIET))
        if client == SLOW:
            canvas.text(CLIENT_X - 34, y + 6, "slow", 16, AMBER, anchor=1.0)


def draw_packets(canvas, trace, t):
    for start, arrival, taken, client, kind in trace.packets:
        if not start <= t < max(taken, arrival):
            continue
        gone = ease((t - start) / (arrival - start))
        left, right = CLIENT_X + 30, EDGE_X - 14
        x = left + (right - left) * (gone if kind == "request" else 1 - gone)
        rgb = TEAL if kind == "response" else (AMBER if client == SLOW else INK)
        width = 12 if kind == "request" and client == SLOW else 24
        canvas.round(x - width / 2, row(client) - 7, width, 14, 5, fill=rgb)


def draw_server(canvas, name, trace, t, accent):
    x, y, w, h = BOX
    canvas.round(x, y, w, h, 18, fill=PANEL, stroke=LINE)
    held = {client for start, end, client in trace.hands if start <= t < end}
    if name == "naive":
        canvas.text(x + w / 2, y + 52, "one process, one connection", 20, QUIET, anchor=0.5)
        for client in held:
            canvas.line(EDGE_X, row(client), x + w / 2 - 70, y + h / 2, accent, 0.8, 3)
        canvas.round(x + w / 2 - 70, y + h / 2 - 42, 140, 84, 14, fill=NIGHT, stroke=accent if held else LINE, line=3)
        label = f"client {min(held) + 1}" if held else "idle"
        canvas.text(x + w / 2, y + h / 2 + 8, label, 22, INK if held else QUIET, anchor=0.5)
        waiting = {p[3] for p in trace.packets if p[1] <= t < p[2] and p[4] == "request"} - held
        words = f"{len(waiting)} wait in the queue of the socket" if waiting else ""
        canvas.text(x + w / 2, y + h - 44, words, 20, ROSE, anchor=0.5)
    elif name == "epoll":
        canvas.text(x + w / 2, y + 52, "one process, a record per connection", 20, QUIET, anchor=0.5)
        ready = {p[3] for p in trace.packets if p[1] <= t < p[2] and p[4] == "request"}
        for client in range(CLIENTS):
            sx, sy = x + 55 + (client % 4) * 94, y + 130 + (client // 4) * 110
            lit = accent if client in held else (AMBER if client in ready else LINE)
            canvas.round(sx, sy, 78, 78, 12, fill=NIGHT, stroke=lit, line=4 if client in held | ready else 2)
            canvas.text(sx + 39, sy + 49, str(client + 1), 26, INK if client in held | ready else QUIET, anchor=0.5)
        canvas.text(x + w / 2, y + h - 30, "amber: ready · green: in hand", 17, QUIET, anchor=0.5)
    else:
        canvas.text(x + w / 2, y + 52, "one process, two rings shared with the kernel", 19, QUIET, anchor=0.5)
        done = {p[3] for p in trace.packets if p[1] <= t < p[2] and p[4] == "request"} | held
        sent = {p[3] for p in trace.packets if p[4] == "response" and -0.22 <= t - p[0] < 0.1}
        for cx, lit, rgb, label in ((x + 125, sent, TEAL, "submissions"), (x + w - 125, done, accent, "completions")):
            canvas.ring(cx, y + 215, 74, lit, rgb)
            canvas.text(cx, y + 221, str(len(lit)), 24, INK if lit else QUIET, anchor=0.5)
            canvas.text(cx, y + 335, label, 18, QUIET, anchor=0.5)


def draw_trace(canvas, trace, t):
    """The last seconds of system calls, now at the right edge; waiting is the quiet part."""
    left, right, y, span = 110, 1170, 600, 3.2
    canvas.text(left, y - 18, "system calls", 17, QUIET)
    canvas.round(left - 8, y - 8, right - left + 16, 66, 12, fill=PANEL)
    canvas.c.save()
    canvas.c.rectangle(left, y - 6, right - left, 62)
    canvas.c.clip()
    for start, end, label, kind in trace.calls:
        if end < t - span or start > t:
            continue
        x1 = right - (t - start) / span * (right - left)
        x2 = right - (t - min(end, t)) / span * (right - left)
        canvas.round(x1 + 1, y, max(x2 - x1 - 2, 3), 50, min(6, max((x2 - x1 - 2) / 2, 1)), fill=KINDS[kind])
        if kind == "wait" and (end - start) / span > 0.25:
            canvas.c.save()
            canvas.c.rectangle(x1, y, x2 - x1 - 6, 50)
            canvas.c.clip()
            canvas.text(max(x1, left) + 12, y + 32, f"waiting in {label}", 18, INK, 0.85, mono=True)
            canvas.c.restore()
    canvas.c.restore()
    count = sum(1 for call in trace.calls if call[0] <= t)
    answers = sum(1 for when, _ in trace.served if when <= t)
    canvas.text(right, y - 18, f"answers: {answers} · calls: {count}", 17, QUIET, anchor=1.0)
    for label, kind, at in (("open, ask, close", "open", 0), ("receive", "receive", 190), ("send", "send", 290), ("wait", "wait", 370)):
        canvas.dot(left + 8 + at, y + 86, 7, KINDS[kind])
        canvas.text(left + 22 + at, y + 92, label, 16, QUIET)


def draw_scene(canvas, name, rule, trace, accent, t):
    width = canvas.text(110, 76, "tenfold serve --engine ", 30, QUIET, mono=True)
    canvas.text(110 + width, 76, name, 30, accent, mono=True, bold=True)
    canvas.text(110, 110, rule, 20, INK)
    draw_clients(canvas, trace, t)
    draw_server(canvas, name, trace, t, accent)
    draw_packets(canvas, trace, t)
    draw_trace(canvas, trace, t)


def draw_card(canvas, lines, t):
    for at, (words, size, rgb, y) in enumerate(lines):
        shown = ease((t - 0.25 * at) / 0.6)
        canvas.text(WIDTH / 2, y + 14 * (1 - shown), words, size, rgb, shown, bold=size > 40, anchor=0.5)


OPENING = [
    ("Three ways to wait", 64, INK, 330),
    ("eight clients, one of them slow, three engines", 26, QUIET, 390),
    ("an illustration: times are chosen to be seen, not measured", 20, QUIET, 440),
]
CLOSING = [
    ("The same site, the same answers", 54, INK, 310),
    ("tenfold serve --engine naive | fork | epoll | uring", 30, TEAL, 380),
    ("one word decides how the server waits", 24, QUIET, 430),
]


def timeline():
    """Pieces of the film: how long each lasts and what draws it."""
    yield 3.5, lambda canvas, t: draw_card(canvas, OPENING, t)
    for name, rule, trace, accent in SCENES:
        yield SCENE, lambda canvas, t, n=name, r=rule, e=trace, a=accent: draw_scene(canvas, n, r, e, a, t)
    yield 4.0, lambda canvas, t: draw_card(canvas, CLOSING, t)


def frames():
    surface = cairo.ImageSurface(cairo.FORMAT_RGB24, WIDTH, HEIGHT)
    canvas = Canvas(cairo.Context(surface))
    for length, draw in timeline():
        for frame in range(int(length * RATE)):
            t = frame / RATE
            canvas.color(NIGHT)
            canvas.c.paint()
            draw(canvas, t)
            veil = 1 - min(ease(t / 0.35), ease((length - t) / 0.35))
            canvas.color(NIGHT, veil)
            canvas.c.paint()
            surface.flush()
            yield bytes(surface.get_data())


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    film = OUT / "waiting.mp4"
    encode = [
        "ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "bgr0",
        "-s", f"{WIDTH}x{HEIGHT}", "-r", str(RATE), "-i", "-",
        # A key frame each second, so that seeking is exact; the index in front, so that playing starts at once.
        "-c:v", "libx264", "-preset", "slow", "-crf", "20", "-g", str(RATE), "-pix_fmt", "yuv420p",
        "-map_metadata", "-1", "-fflags", "+bitexact", "-movflags", "+faststart", str(film),
    ]
    encoder = subprocess.Popen(encode, stdin=subprocess.PIPE)
    for frame in frames():
        encoder.stdin.write(frame)
    encoder.stdin.close()
    if encoder.wait() != 0:
        raise SystemExit("ffmpeg could not encode the film")
    poster = ["ffmpeg", "-y", "-loglevel", "error", "-ss", "18.4", "-i", str(film), "-frames:v", "1", "-q:v", "3",
              "-map_metadata", "-1", "-fflags", "+bitexact", str(OUT / "waiting.jpg")]
    subprocess.run(poster, check=True)


if __name__ == "__main__":
    main()
