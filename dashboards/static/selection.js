// Selects runs in the figure of a cohort: a box becomes a range of times and step times, a lasso the ids of its runs.
"use strict";
(() => {
  const plot = document.querySelector('[data-figure="cohort"]');
  const form = document.querySelector("form.selecting");
  if (!plot || !form) return;
  const modes = [...form.querySelectorAll("button[data-mode]")];

  function leave(parameters) {
    const kept = ["cohort", "period"].map((name) => [name, form.elements[name]?.value ?? ""]);
    const words = new URLSearchParams([...kept, ...parameters].filter(([, value]) => value !== ""));
    location.href = `${form.action}?${words}`;
  }

  const ratio = (value, median) => String(Number((value / median).toPrecision(4)));
  const iso = (moment) => new Date(typeof moment === "string" ? `${moment.replace(" ", "T")}Z` : moment).toISOString();

  function selected(event) {
    const runs = [...new Set((event?.points ?? []).flatMap(({ customdata }) => (customdata ? [customdata[0]] : [])))];
    if (!runs.length) return;
    if (!event.range) return leave([["runs", runs.join(",")]]);
    const median = plot.data.find(({ name }) => name === "median").y[0];
    const [from, to] = event.range.x.map(iso).sort();
    const [slower, faster] = [...event.range.y].sort((one, other) => one - other);
    leave([["from", from], ["to", to], ["slower", ratio(Math.max(0, slower), median)], ["faster", ratio(faster, median)]]);
  }

  function start(mode) {
    if (!plot.classList.contains("drawn")) return;
    if (!plot.dataset.selects) {
      plot.dataset.selects = "yes";
      plot.on("plotly_selected", selected);
    }
    const next = plot.layout.dragmode === mode ? "zoom" : mode;
    Plotly.relayout(plot, { dragmode: next });
    for (const button of modes) button.setAttribute("aria-pressed", String(button.dataset.mode === next));
    if (next !== "zoom") plot.scrollIntoView({ block: "nearest" });
  }

  form.querySelector(".modes").hidden = false;
  for (const button of modes) button.addEventListener("click", () => start(button.dataset.mode));
  form.addEventListener("submit", () => {
    for (const field of form.elements) if (field.name && !field.value) field.disabled = true; // short addresses
  });
  addEventListener("pageshow", () => {
    for (const field of form.elements) field.disabled = false;
  });
})();
