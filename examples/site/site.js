// The theme switch and the folding table of contents. Everything on the site works without this file:
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
