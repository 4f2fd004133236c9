#!/usr/bin/env python3
"""Draws examples/site/media/rings.png: one turn of an event loop as a picture.

Each ring is a connection, each arc a time in which it had something to say; most of a ring is silence,
which is why one loop can look after so many of them. The seed is fixed, so the picture is always the same.

Needs python3-cairo (Debian package name). Run it from anywhere:
    python3 examples/media/make-picture.py
"""

import math
import random
from pathlib import Path

import cairo

WIDTH, HEIGHT = 1600, 1000
OUT = Path(__file__).resolve().parent.parent / "site" / "media" / "rings.png"
COLORS = [(0.25, 0.83, 0.75), (0.45, 0.68, 1.0), (0.66, 0.6, 1.0), (1.0, 0.72, 0.3), (0.98, 0.45, 0.5)]


def arc(context, radius, begin, length, rgb, alpha, width):
    context.new_path()
    context.arc(0, 0, radius, begin, begin + length)
    context.set_source_rgba(*rgb, alpha)
    context.set_line_width(width)
    context.stroke()


def main():
    random.seed(10)
    surface = cairo.ImageSurface(cairo.FORMAT_RGB24, WIDTH, HEIGHT)
    context = cairo.Context(surface)
    night = cairo.RadialGradient(WIDTH * 0.62, HEIGHT * 0.5, 60, WIDTH * 0.62, HEIGHT * 0.5, WIDTH * 0.8)
    night.add_color_stop_rgb(0, 0.1, 0.14, 0.24)
    night.add_color_stop_rgb(1, 0.035, 0.05, 0.085)
    context.set_source(night)
    context.paint()
    context.translate(WIDTH * 0.62, HEIGHT * 0.5)
    context.set_line_cap(cairo.LINE_CAP_ROUND)
    for ring in range(64):
        radius = 70 + ring * 14
        arc(context, radius, 0, 2 * math.pi, (0.5, 0.6, 0.8), 0.09, 1.2)
        at = random.uniform(0, 2 * math.pi)
        end = at + 2 * math.pi
        while at < end:
            length = random.choice([6, 10, 14, 24, 60]) / radius
            rgb = random.choices(COLORS, weights=[8, 5, 4, 2, 1])[0]
            arc(context, radius, at, length, rgb, random.uniform(0.5, 0.95), 5.5)
            at += length + random.expovariate(radius / 260)
    arc(context, 26, 0, 2 * math.pi, (0.93, 0.95, 0.98), 0.9, 4)
    arc(context, 44, -1.9, 1.5, COLORS[0], 1.0, 6)
    surface.write_to_png(str(OUT))


if __name__ == "__main__":
    main()
