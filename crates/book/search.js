// The search of the book. It reads an index of the sections, made with the pages, when the field is first used.
// The form is hidden until this script runs.
"use strict";

const base = new URL(".", document.currentScript.src);
const MOST = 12;

let index = null;

function load() {
  index ??= fetch(new URL("search.json", base)).then((response) => {
    if (!response.ok) throw new Error(`the index is missing (${response.status})`);
    return response.json();
  });
  index.catch(() => { index = null; });
  return index;
}

const split = (text) => text.toLowerCase().split(/[^\p{Alphabetic}\p{N}]+/u).filter((word) => word.length > 1);

// The sections of one term with their weights; null if the term is in too many sections to select any.
function sections(term, words) {
  if (Object.hasOwn(words, term) && words[term].length === 0) return null;
  const found = new Map();
  for (const [word, list] of Object.entries(words)) {
    if (!word.startsWith(term)) continue;
    const weight = word === term ? 3 : 1;
    let at = 0;
    for (const distance of list) {
      at += distance;
      found.set(at, Math.max(weight, found.get(at) ?? 0));
    }
  }
  return found;
}

function search(query, { pages, sections: all, words }) {
  const terms = split(query);
  const lists = terms.map((term) => sections(term, words)).filter((list) => list !== null);
  if (lists.length === 0) return [];
  const results = [];
  for (const at of lists[0].keys()) {
    if (!lists.every((list) => list.has(at))) continue;
    const [page, anchor, heading] = all[at];
    const [path, title] = pages[page];
    const top = heading === title;
    const named = terms.filter((term) => split(heading).includes(term)).length;
    const titled = terms.filter((term) => split(title).includes(term)).length;
    const weight = lists.reduce((sum, list) => sum + list.get(at), 0) + 4 * named + 3 * titled + (top ? 1 : 0);
    results.push({ at, weight, link: top ? path : `${path}#${anchor}`, title, heading: top ? "" : heading });
  }
  return results.sort((a, b) => b.weight - a.weight || a.at - b.at);
}

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.search");
  if (!form) return;
  const field = form.querySelector("input");
  const state = form.querySelector("[role=status]");
  const list = form.querySelector("ul");
  const contents = document.querySelector(".contents");
  form.hidden = false;

  async function show() {
    const query = field.value.trim();
    if (split(query).length === 0) {
      list.replaceChildren();
      state.textContent = "";
      contents.classList.remove("searching");
      return;
    }
    let results;
    try {
      results = search(query, await load());
    } catch (error) {
      state.textContent = `Search failed: ${error.message}`;
      return;
    }
    // Another letter was typed while the index was loading.
    if (query !== field.value.trim()) return;
    const shown = results.slice(0, MOST);
    list.replaceChildren(...shown.map(({ link, title, heading }) => {
      const item = document.createElement("li");
      const anchor = document.createElement("a");
      anchor.href = new URL(link, base);
      anchor.append(title);
      if (heading) {
        const small = document.createElement("small");
        small.append(heading);
        anchor.append(small);
      }
      item.append(anchor);
      return item;
    }));
    const more = results.length > MOST ? `, the first ${MOST} shown` : "";
    state.textContent = results.length === 1 ? "1 section" : `${results.length || "No"} sections${more}`;
    contents.classList.add("searching");
  }

  const links = () => [...list.querySelectorAll("a")];
  field.addEventListener("focus", () => load().catch(() => {}), { once: true });
  field.addEventListener("input", show);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await show();
    links()[0]?.click();
  });
  form.addEventListener("keydown", (event) => {
    const all = links();
    const at = all.indexOf(document.activeElement);
    if (event.key === "Escape") {
      field.value = "";
      show();
      field.focus();
    } else if (event.key === "ArrowDown" && all.length > 0) {
      all[Math.min(at + 1, all.length - 1)].focus();
    } else if (event.key === "ArrowUp" && at >= 0) {
      (all[at - 1] ?? field).focus();
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      field.focus();
    }
  });
});
