// Draws the page's figures in the page's theme, tells times in the reader's zone, and listens to a few keys.
"use strict";
(() => {
  const root = document.documentElement;
  const narrow = matchMedia("(max-width: 640px)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const PRINT_PIXELS = 690; // the width that A4 and Letter leave between margins of 12 mm
  let isPrinting = false;
  const config = { responsive: true, displayModeBar: false, displaylogo: false, scrollZoom: false };

  const palette = new Map(Object.entries(JSON.parse(document.getElementById("palette").textContent)));
  const hex = (numbers) => "#" + numbers.map((each) => (+each).toString(16).padStart(2, "0")).join("");

  // A figure's colours are the light ones; here they become what the style sheet says now.
  function recolour(value, styles) {
    if (typeof value === "string") {
      const variable = palette.get(value);
      if (variable) return styles.getPropertyValue(variable).trim();
      const rgba = /^rgba\((\d+), (\d+), (\d+), ([\d.]+)\)$/.exec(value);
      const translucent = rgba && palette.get(hex(rgba.slice(1, 4)));
      if (!translucent) return value;
      const [red, green, blue] = styles.getPropertyValue(translucent).trim().match(/[\da-f]{2}/gi).map((each) => parseInt(each, 16));
      return `rgba(${red}, ${green}, ${blue}, ${rgba[4]})`;
    }
    if (Array.isArray(value)) return value.map((each) => recolour(each, styles));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, recolour(each, styles)]));
    }
    return value;
  }

  // Plotly.js takes a while to start, so the page is shown first; within a report it is there already.
  const plotly = new Promise((resolve) => {
    const link = document.getElementById("plotly");
    if (!link) return resolve();
    const script = document.createElement("script");
    script.src = link.href;
    script.addEventListener("load", resolve);
    const load = () => document.head.append(script);
    if (document.hidden) load();
    else requestAnimationFrame(() => setTimeout(load));
  });

  // A finger scrolls the page, not the axes; times stand level, and a smaller legend has two columns.
  function fitPhone(layout) {
    layout.dragmode = false;
    layout.legend = { ...layout.legend, font: { ...layout.font, size: 11 } };
    for (const axis of Object.values(layout)) if (axis?.type === "date") Object.assign(axis, { nticks: 4, tickangle: 0 });
  }

  async function draw(plot) {
    await plotly;
    const source = document.querySelector(`script[data-for="${plot.dataset.figure}"]`);
    const figure = JSON.parse(source.textContent);
    const { data, layout } = isPrinting ? figure : recolour(figure, getComputedStyle(root)); // paper is light
    if (narrow.matches) fitPhone(layout);
    else layout.dragmode = "zoom";
    layout.autosize = !isPrinting;
    if (isPrinting) Object.assign(layout, { width: PRINT_PIXELS, paper_bgcolor: "#fff", plot_bgcolor: "#fff" });
    const isFirst = !plot.classList.contains("drawn");
    if (isFirst) plot.replaceChildren();
    await Plotly.react(plot, data, layout, config);
    if (!isFirst) return;
    plot.classList.add("drawn");
    listen(plot);
  }

  function listen(plot) {
    const tools = plot.closest("figure").querySelector(".tools");
    const reset = tools.querySelector(".reset");
    tools.hidden = false;
    plot.addEventListener("figure-changed", () => draw(plot));
    plot.dispatchEvent(new Event("figure-drawn", { bubbles: true }));
    plot.on("plotly_relayout", (change) => {
      const names = Object.keys(change);
      if (names.some((name) => name.includes(".range["))) reset.hidden = false;
      if (names.some((name) => name.includes("autorange"))) reset.hidden = true;
    });
    reset.addEventListener("click", () => {
      reset.hidden = true;
      draw(plot);
      plot.focus();
    });
    for (const button of tools.querySelectorAll("[data-save]")) {
      button.addEventListener("click", () => save(plot, button.dataset.save));
    }
    if (plot.dataset.link) {
      plot.on("plotly_click", ({ points: [point] }) => {
        if (point.customdata) location.href = there(plot.dataset.link + encodeURIComponent(point.customdata[0]));
      });
    }
  }

  // The address of another page, about the same system, workload and period.
  function there(address) {
    const url = new URL(address, location.href);
    const here = new URLSearchParams(location.search);
    for (const name of ["system", "workload", "period"]) if (here.get(name)) url.searchParams.set(name, here.get(name));
    return url;
  }

  // The figure as it is shown, in the page's colours, under its title.
  function save(plot, format) {
    const escaped = document.createElement("i");
    escaped.textContent = plot.closest("figure").querySelector("h2").textContent;
    const { margin, font, width, height } = plot._fullLayout;
    const title = { text: escaped.innerHTML, font: { size: 15, color: font.color }, x: 0, xref: "paper" };
    const layout = { ...plot.layout, title, margin: { ...plot.layout.margin, t: margin.t + 24 } };
    const size = { width: Math.max(Math.round(width), 800), height: Math.round(height) + 24 };
    const filename = `crosswind-${plot.dataset.figure}`;
    return Plotly.downloadImage({ data: plot.data, layout, config }, { format, filename, scale: 2, ...size });
  }

  // How far a key moves both ends of the x axis, as shares of what is shown.
  const KEYS = { ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2], "+": [0.2, -0.2], "=": [0.2, -0.2], "-": [-1 / 3, 1 / 3] };
  function turn(event) {
    const plot = event.currentTarget;
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== plot || !plot._fullLayout) return;
    if (event.key === "0") plot.closest("figure").querySelector(".reset").click();
    if (!KEYS[event.key]) return;
    event.preventDefault();
    const axis = plot._fullLayout.xaxis;
    const [begin, end] = axis.range.map((value) => axis.r2l(value));
    const [from, to] = KEYS[event.key].map((share, place) => axis.l2r([begin, end][place] + share * (end - begin)));
    Plotly.relayout(plot, { "xaxis.range[0]": from, "xaxis.range[1]": to });
  }

  const seen = new IntersectionObserver(
    async (entries) => {
      const plots = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
      plots.forEach((plot) => seen.unobserve(plot));
      await plotly;
      for (const plot of plots) setTimeout(draw, 0, plot); // a task each: the page shows one and answers before the next
    },
    { rootMargin: "400px" },
  );
  const redraw = () => document.querySelectorAll("[data-figure].drawn").forEach(draw);
  dark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    isPrinting = true;
    document.querySelectorAll("[data-figure]").forEach(draw); // also those further down that nobody has seen yet
  });
  addEventListener("afterprint", () => {
    isPrinting = false;
    redraw();
  });
  for (const table of document.querySelectorAll("details.numbers")) {
    table.open = false; // they stand open for readers without scripts
    table.classList.add("closable");
  }

  // The answer to a page's address once it is there, and not only announced: asked for soon again, then less often, as
  // the server has others. It ends with the last one after some minutes, or once `isWanted` is false.
  async function answered(address, isWanted = () => true) {
    for (let tries = 0; ; tries++) {
      const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store" });
      const isPending = answer.status === 202 || answer.status === 503;
      if (!isPending || !isWanted() || tries === 60) return answer;
      await new Promise((resume) => setTimeout(resume, Math.min(250 * 2 ** tries, 2000)));
    }
  }
  window.crosswind = { answered }; // for the pages' own scripts

  const toggle = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const theme = () => root.dataset.theme ?? "auto";
  function showTheme() {
    toggle.querySelector("span").textContent = theme();
  }
  toggle.hidden = false;
  showTheme();
  toggle.addEventListener("click", () => {
    const next = themes[(themes.indexOf(theme()) + 1) % themes.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      localStorage.setItem("crosswind-theme", next);
    } catch {
      // Not kept, but it holds for this page.
    }
    showTheme();
    redraw();
  });

  const formats = {};
  function localTime(moment, timeStyle) {
    formats[timeStyle] ??= new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle }); // takes milliseconds
    return formats[timeStyle].format(moment); // 2026-11-20 19:27:03, in tables 19:27
  }
  for (const form of document.querySelectorAll("form.filters")) {
    form.addEventListener("change", () => form.requestSubmit());
    form.addEventListener("submit", () => {
      for (const field of form.elements) if (field.name && !field.value) field.disabled = true; // short addresses
    });
  }
  addEventListener("pageshow", () => {
    for (const field of document.querySelectorAll("form.filters :disabled")) field.disabled = false;
  });

  // Draws figures, tells times and lets texts be copied in a part of the page: all of it, or what a script put there.
  function enliven(part) {
    for (const plot of part.querySelectorAll("[data-figure]")) {
      seen.observe(plot);
      plot.tabIndex = 0;
      plot.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight + - 0");
      plot.addEventListener("keydown", turn);
    }
    for (const time of part.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (!isNaN(moment)) time.textContent = localTime(moment, time.closest("table") ? "short" : "medium");
    }
    for (const button of part.querySelectorAll("button[data-copy]")) {
      const source = document.getElementById(button.dataset.copy);
      button.hidden = false;
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(source.textContent);
          button.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren(source); // no clipboard here: what is selected can be copied by hand
          button.textContent = "Selected";
        }
        setTimeout(() => (button.textContent = "Copy"), 2000);
      });
    }
  }
  enliven(document);
  addEventListener("crosswind:added", (event) => enliven(event.target)); // what a page's own script put in

  function move(by) {
    const links = [...document.querySelectorAll("a.row-link")];
    const now = links.indexOf(document.activeElement);
    links[Math.min(Math.max(now + by, 0), links.length - 1)]?.focus();
  }
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (event.key === "Escape" && isTyping) event.target.blur();
    if (isTyping) return;
    if (event.key === "j") move(1);
    if (event.key === "k") move(-1);
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("search")?.select();
      document.getElementById("search")?.focus();
    }
  });
})();
