// Two lanes of requests, each to a server on this machine, drawn as responses arrive.
"use strict";

// The time that a lane shows, and the time after which a mark is removed before the next sweep, in milliseconds.
const SWEEP = 30_000;
const KEPT = 28_000;
// The time between the starts of two requests of a visitor: while requests are drawn, and otherwise.
const PACE = 100;
const WATCH = 1000;
// The `idle-timeout` of examples/tenfold.toml.
const HELD = 75_000;
// The percentiles are those of the latest responses.
const LATEST = 1000;
const SMALL = "/media/request.svg";
const HEIGHT = 150;

const SVG = "http://www.w3.org/2000/svg";
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const pick = (selector) => document.querySelector(selector);
const sleep = (time) => new Promise((done) => setTimeout(done, time));

const line = () => document.createElementNS(SVG, "line");
const across = (time) => `${(((time % SWEEP) / SWEEP) * 100).toFixed(2)}%`;
const up = (time) => HEIGHT - 12 - (Math.log10(Math.min(Math.max(time, 1), 1e5)) / 5) * (HEIGHT - 24);
const shown = (time) => (time < 100 ? `${time.toFixed(1)} ms` : time < 1000 ? `${time.toFixed(0)} ms` : `${(time / 1000).toFixed(1)} s`);

// The requests that run; `stop` aborts them.
let running = null;
// Visitors have other names, and therefore other connections, after idle connections were held.
let turn = "a";

class Lane {
  constructor(section, port) {
    this.part = (name) => section.querySelector(name);
    this.picture = this.part("svg");
    for (const time of [1, 100, 10_000]) {
      const [rule, text] = [line(), document.createElementNS(SVG, "text")];
      set(rule, { class: "grid", x1: "0", x2: "100%", y1: up(time), y2: up(time) });
      set(text, { x: "0", y: up(time) - 3 });
      text.textContent = time < 1000 ? `${time} ms` : `${time / 1000} s`;
      this.picture.append(rule, text);
    }
    this.cursor = line();
    set(this.cursor, { class: "cursor", y1: "0", y2: HEIGHT });
    this.picture.append(this.cursor);
    this.marks = [];
    this.begin(port);
    for (const visitor of [0, 1, 2, 3]) {
      this.visit(visitor);
    }
  }

  // Shows another server, or the same from the beginning.
  begin(port) {
    this.port = port;
    this.part(".at").textContent = port;
    this.marks.splice(0).forEach((mark) => mark.remove());
    this.waiting = new Map();
    this.times = [];
    this.count = 0;
    this.held = { asked: 0, answered: 0, ended: 0, since: 0 };
  }

  // Requests a file by a name of this machine, and returns the time, or null if the server did not answer.
  async get(name, file, signal) {
    const port = this.port;
    const begin = performance.now();
    const response = await fetch(`http://${name}.localhost:${port}${file}`, { cache: "no-store", credentials: "omit", signal });
    await response.arrayBuffer();
    const timing = response.headers.get("Server-Timing") ?? "";
    if (port === this.port) {
      this.part(".by").textContent = /engine;desc="([^"]*)"/.exec(timing)?.[1] ?? "?";
    }
    return performance.now() - begin;
  }

  // A visitor: one request at a time. Without a run, the first one finds out whether the server is present.
  async visit(visitor) {
    for (;;) {
      const [run, port, begin] = [running, this.port, performance.now()];
      const isActive = !document.hidden && (run ? visitor < Number(pick("#visitors").value) : visitor === 0);
      if (isActive) {
        await this.request(`visitor-${visitor}-${turn}`, run, port, begin);
      }
      const pace = isActive && !(run && this.present) ? WATCH : PACE;
      await sleep(Math.max(pace - (performance.now() - begin), 0));
    }
  }

  async request(name, run, port, begin) {
    const mark = run && this.picture.insertBefore(line(), this.cursor);
    if (mark) {
      this.waiting.set(mark, begin);
    }
    const isCurrent = () => run === running && port === this.port;
    try {
      const time = await this.get(name, run ? pick("#file").value : SMALL, run?.signal);
      if (isCurrent()) {
        this.present = true;
        if (mark) {
          this.answered(mark, begin, time);
          return;
        }
      }
    } catch {
      if (isCurrent()) {
        this.present = false;
        this.part(".by").textContent = "?";
      }
    }
    if (mark) {
      this.waiting.delete(mark);
      mark.remove();
    }
  }

  answered(mark, begin, time) {
    this.waiting.delete(mark);
    this.count += 1;
    this.times.push(time);
    if (this.times.length > LATEST) {
      this.times.shift();
    }
    mark.end = begin + time;
    this.place(mark, begin, mark.end);
    set(mark, { class: "response" });
    this.marks.push(mark);
  }

  // A line from the start of a request to the present or to its response, in the sweep of its end.
  place(mark, begin, end) {
    const from = Math.max(begin, end - (end % SWEEP));
    set(mark, { class: "waiting", x1: across(from), x2: across(end), y1: up(end - begin), y2: up(end - begin) });
  }

  async hold(count, signal) {
    const held = { asked: count, answered: 0, ended: 0, since: performance.now() };
    this.held = held;
    const until = AbortSignal.any([signal, AbortSignal.timeout(HELD)]);
    for (let number = 0; number < count; number += 1) {
      this.get(`idle-${number}`, SMALL, until).then(() => (held.answered += 1), () => {}).finally(() => (held.ended += 1));
    }
  }

  get isHolding() {
    return this.held.ended < this.held.asked;
  }

  draw(now) {
    const at = running ? across(now) : "-1";
    set(this.cursor, { x1: at, x2: at });
    for (const [mark, begin] of this.waiting) {
      this.place(mark, begin, now);
    }
    while (this.marks[0]?.end < now - KEPT) {
      this.marks.shift().remove();
    }
    const sorted = this.times.toSorted((a, b) => a - b);
    const percentile = (share) => (sorted.length ? shown(sorted[Math.ceil(sorted.length * share) - 1]) : "–");
    const longest = Math.max(0, ...[...this.waiting.values()].map((begin) => now - begin));
    const isOver = this.held.asked === 0 || now - this.held.since > HELD;
    for (const [name, text] of [
      [".count", this.count],
      [".median", percentile(0.5)],
      [".p99", percentile(0.99)],
      [".wait", longest > PACE ? shown(longest) : "–"],
      [".idle", isOver ? "–" : `${this.held.answered} of ${this.held.asked}`],
      [".state", this.state(longest)],
    ]) {
      // An equal text would be read aloud again.
      if (this.part(name).textContent !== String(text)) {
        this.part(name).textContent = text;
      }
    }
  }

  state(longest) {
    if (this.present === undefined) {
      return "Asking for the server…";
    }
    if (!this.present) {
      return this.port === Number(location.port || 80)
        ? "Start this server with --config examples/tenfold.toml, and use Chromium or Firefox."
        : "No server here yet. The page asks each second.";
    }
    return longest > 2000 ? "The server does not answer." : running ? "The server answers." : "The server is ready.";
  }
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
}

function start() {
  const [button, hold, port] = [pick(".run"), pick(".hold"), pick("#port")];
  const own = Number(location.port || 80);
  port.value = new URLSearchParams(location.search).get("second") ?? own + 1;
  const sections = document.querySelectorAll(".lane");
  const lanes = [new Lane(sections[0], own), new Lane(sections[1], Number(port.value))];

  const describe = () => {
    pick(".line").textContent =
      `cargo run --release -- serve --config examples/tenfold.toml --engine ${pick("#engine").value} -p ${lanes[1].port}`;
  };
  describe();
  pick("#engine").addEventListener("change", describe);
  port.addEventListener("change", () => {
    if (port.reportValidity() && port.value) {
      history.replaceState(null, "", `?second=${port.value}`);
      lanes[1].begin(Number(port.value));
      lanes[1].present = undefined;
      describe();
    }
  });

  button.addEventListener("click", () => {
    running?.stop();
    if (running) {
      running = null;
    } else {
      const abort = new AbortController();
      running = { signal: abort.signal, stop: () => abort.abort() };
      lanes.forEach((lane) => lane.begin(lane.port));
    }
    button.textContent = running ? "Stop" : "Start";
  });
  hold.addEventListener("click", () => {
    if (hold.getAttribute("aria-disabled") === "true") {
      return;
    }
    lanes.forEach((lane) => lane.hold(Number(pick("#idle").value), running.signal));
    // The new visitors come when the idle connections are in the queues of the servers.
    setTimeout(() => (turn = turn === "a" ? "b" : "a"), 2 * PACE);
  });

  const draw = (last) => {
    const now = performance.now();
    if (now - last >= (calm.matches ? 1000 : PACE)) {
      last = now;
      lanes.forEach((lane) => lane.draw(now));
      hold.setAttribute("aria-disabled", String(!running || lanes.some((lane) => lane.isHolding)));
    }
    setTimeout(draw, PACE, last);
  };
  draw(-Infinity);
}

// Other names of this machine work only for addresses of this machine, and without TLS.
const isHere = location.protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
pick(isHere ? ".trial" : ".elsewhere").hidden = false;
if (isHere) {
  start();
}
