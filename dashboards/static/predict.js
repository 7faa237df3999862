// Sliders: each value that is tried goes into the form and into the address, and the answer is fetched anew.
"use strict";
(() => {
  const form = document.getElementById("ask");
  const knobs = document.getElementById("knobs");
  const PAUSE_MS = 200; // after the last move
  let timer = 0;
  let latest = 0;

  for (const one of document.querySelectorAll("form.ask")) {
    one.addEventListener("submit", () => {
      for (const field of one.elements) if (field.name && !field.value.trim()) field.disabled = true; // short addresses
    });
  }
  addEventListener("pageshow", () => {
    for (const field of document.querySelectorAll("form.ask :disabled")) field.disabled = false;
  });
  if (!knobs) return;
  knobs.hidden = false;

  const address = () => {
    const pairs = [...new FormData(form)].filter(([, value]) => value.trim());
    return `${form.action}?${new URLSearchParams(pairs)}`;
  };

  function put(knob, value) {
    const name = knob.dataset.parameter;
    if (name === undefined) {
      form.elements.ranks.value = value;
      form.elements.nodes.value = ""; // as many ranks a node as before
      return;
    }
    const config = form.elements.config;
    const others = config.value.split("\n").filter((line) => line.trim() && line.split("=")[0].trim() !== name);
    config.value = [...others, `${name}=${value}`].join("\n");
  }

  async function fetched(url, mine) {
    const answer = await crosswind.answered(url, () => mine === latest);
    return mine === latest ? answer.text() : null;
  }

  async function renew() {
    const mine = ++latest;
    const url = address();
    const here = [...document.querySelectorAll("[data-answer]")];
    here.forEach((part) => part.setAttribute("aria-busy", "true"));
    try {
      const text = await fetched(url, mine);
      if (text === null) return;
      const there = new DOMParser().parseFromString(text, "text/html").querySelectorAll("[data-answer]");
      if (there.length !== here.length) throw new Error("no answer");
      document.querySelectorAll("[data-answer] .plot.drawn").forEach((plot) => Plotly.purge(plot));
      here.forEach((part, place) => {
        part.replaceChildren(...there[place].childNodes);
        part.dispatchEvent(new Event("crosswind:added", { bubbles: true }));
      });
      history.replaceState(null, "", url);
    } catch {
      location.href = url; // the server says there what is wrong
    }
    here.forEach((part) => part.removeAttribute("aria-busy"));
  }

  for (const knob of knobs.querySelectorAll("input")) {
    const values = knob.dataset.values.split(" ");
    knob.addEventListener("input", () => {
      const value = values[+knob.value];
      knob.nextElementSibling.textContent = value.slice(0, 8);
      knob.setAttribute("aria-valuetext", value);
      put(knob, value);
      clearTimeout(timer);
      timer = setTimeout(renew, PAUSE_MS);
    });
  }
})();
