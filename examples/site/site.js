// The theme switch, the folding table of contents and the engine that served the page. Everything on the site works without this file:
// the theme then follows the system, and the contents stay unfolded.
"use strict";

const root = document.documentElement;
root.classList.add("js");

const THEMES = ["auto", "light", "dark"];

// Storage may be forbidden; the choice then lasts as long as the page.
function remembered() {
  try {
    return localStorage.getItem("theme") || "auto";
  } catch {
    return "auto";
  }
}

function remember(theme) {
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // Nothing to do: the theme is applied either way.
  }
}

function apply(theme) {
  if (theme === "auto") {
    delete root.dataset.theme;
  } else {
    root.dataset.theme = theme;
  }
}

// Before the first paint, so that no page flashes in the wrong colours.
let theme = THEMES.includes(remembered()) ? remembered() : "auto";
apply(theme);

// The engine, the worker and the system calls that served this page: the field Server-Timing, which `server-timing`
// turns on. A browser shows it on addresses that it trusts: https, or this machine.
function showServer() {
  const panel = document.querySelector(".served");
  const [page] = performance.getEntriesByType("navigation");
  const timing = new Map((page?.serverTiming ?? []).map((entry) => [entry.name, entry.description]));
  if (!panel || !timing.has("engine")) {
    return;
  }
  for (const name of ["engine", "worker", "calls"]) {
    panel.querySelector(`.${name}`).textContent = timing.get(name) ?? "";
  }
  panel.hidden = false;
}

document.addEventListener("DOMContentLoaded", () => {
  const button = document.querySelector("button.theme");
  if (button) {
    const label = () => {
      button.textContent = `Theme: ${theme}`;
    };
    label();
    button.hidden = false;
    button.addEventListener("click", () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      apply(theme);
      remember(theme);
      label();
    });
  }

  showServer();

  const unfold = document.querySelector("button.unfold");
  const contents = document.getElementById("contents");
  if (unfold && contents) {
    unfold.hidden = false;
    unfold.addEventListener("click", () => {
      const open = contents.classList.toggle("open");
      unfold.setAttribute("aria-expanded", String(open));
    });
  }
});
