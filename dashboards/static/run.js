// The run page: a zoom asks for the figures of these steps alone, and puts the range into the address.
"use strict";
(() => {
  const FIGURES = ["steps", "strips", "ranks"];
  const PAUSE_MS = 150;
  const note = document.getElementById("shown");
  const all = note.querySelector("a");
  let waiting = 0;
  let asked = 0;

  function address(range) {
    const url = new URL(location.href);
    const [first, last] = range ?? [null, null];
    for (const [name, value] of [["from_step", first], ["to_step", last]]) {
      if (value === null) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    return url;
  }

  // A figure's texts, numbers and drawing; what the range has no figure of is left as it was.
  function replace(name, page) {
    const [here, there] = [document, page].map((one) => one.getElementById(`figure-${name}`));
    if (!here || !there) return;
    for (const part of ["figcaption", 'script[type="application/json"]', "details table", "details summary"]) {
      here.querySelector(part).replaceWith(document.importNode(there.querySelector(part), true));
    }
    const plot = here.querySelector("[data-figure]");
    plot.setAttribute("aria-label", there.querySelector("[data-figure]").getAttribute("aria-label"));
    plot.dispatchEvent(new Event("figure-changed"));
  }

  async function show(range) {
    const number = ++asked;
    const url = address(range);
    note.setAttribute("aria-busy", "true");
    const part = new URL(url);
    part.searchParams.set("only", "steps");
    const answer = await crosswind.answered(part, () => number === asked).catch(() => null);
    if (number !== asked) return;
    note.removeAttribute("aria-busy");
    if (!answer || answer.status !== 200) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    history.replaceState(null, "", url);
    FIGURES.forEach((name) => replace(name, page));
    note.hidden = range === null;
    if (range) note.querySelector("span").textContent = `${range[0]} to ${range[1]}`;
  }

  function soon(range) {
    clearTimeout(waiting);
    waiting = setTimeout(() => show(range), PAUSE_MS);
  }

  // The range of a zoom: both ends of the axis of steps, which plotly names one by one.
  function rangeOf(change) {
    const ends = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (ends.some((end) => typeof end !== "number")) return null;
    const [first, last] = [Math.max(0, Math.ceil(ends[0])), Math.floor(ends[1])];
    return first <= last ? [first, last] : null;
  }

  document.addEventListener("figure-drawn", ({ target: plot }) => {
    const figure = plot.dataset.figure;
    if (!FIGURES.includes(figure) || !document.getElementById("figure-steps")) return; // without steps, seconds
    plot.on("plotly_relayout", (change) => {
      const range = rangeOf(change);
      if (range) soon(range);
    });
    plot.on("plotly_doubleclick", () => soon(null));
    plot.closest("figure").querySelector(".reset").addEventListener("click", () => soon(null));
  });
  all.addEventListener("click", (event) => {
    if (!document.querySelector("[data-figure].drawn") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    soon(null);
  });
})();
