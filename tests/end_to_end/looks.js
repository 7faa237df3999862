// What a test sees of a page: an expression, whose methods give what is cut off, drawn, or reached by keyboard.
({
  // Tables and the page itself where they are wider than their place; those of figures are opened meanwhile.
  cutOff() {
    const width = document.documentElement.scrollWidth;
    const cut = width > innerWidth ? [`the page is ${width} px wide`] : [];
    const closed = [...document.querySelectorAll("details.numbers:not([open])")];
    for (const details of closed) details.open = true;
    for (const table of document.querySelectorAll("main table")) {
      const box = table.closest(".scroll") ?? table.parentElement;
      if (box.matches(".sql-rows")) continue; // as wide as what was asked for
      const name = box.getAttribute("aria-label") ?? box.getAttribute("aria-labelledby");
      const [needed, there] = [table.scrollWidth, box.clientWidth];
      if (there && needed > there + 1) cut.push(`${name}: ${needed} of ${there} px`);
    }
    for (const details of closed) details.open = false;
    return cut;
  },

  // Labels of axes that lie over each other; slanted ones have boxes that do, and are left out.
  crowded() {
    const isLevel = (text) => text.textContent && !/rotate\((?!0\b[^.])/.test(text.getAttribute("transform") ?? "");
    const over = (one, other) =>
      Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 &&
      Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1;
    return [...document.querySelectorAll(".plot.drawn")].flatMap((plot) => {
      const texts = [...plot.querySelectorAll("[class$='tick'] text, [class^='g-'] text")].filter(isLevel);
      const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
      const pairs = boxes.flatMap((one, place) => boxes.slice(place + 1).map((other) => [one, other]));
      const crowded = pairs.filter(([[, one], [, other]]) => over(one, other));
      return crowded.map(([[one], [other]]) => `${plot.dataset.figure}: ${one} over ${other}`);
    });
  },

  figures() {
    const cells = (row) => [...row.cells].map((cell) => cell.textContent);
    return [...document.querySelectorAll("figure.chart")].map((figure) => ({
      name: figure.id.replace("figure-", ""),
      title: figure.querySelector("h2").textContent,
      sentence: figure.querySelector(".twin").textContent,
      rows: [...figure.querySelectorAll("table tr")].map(cells),
    }));
  },

  // Numbers and texts that are drawn, by figure: those of traces, notes, lines and ticks.
  marks() {
    const isList = (value) => Array.isArray(value) || ArrayBuffer.isView(value);
    const flat = (value) => (value == null ? [] : isList(value) ? [...value].flatMap(flat) : [value]);
    const names = ["x", "y", "z", "base", "text", "hovertext", "customdata"];
    const errors = (bars) => flat([bars?.array, bars?.arrayminus]);
    const ofTrace = (trace) => [
      ...names.flatMap((name) => flat(trace[name])),
      ...errors(trace.error_x),
      ...errors(trace.error_y),
    ];
    const ofPlot = ({ _fullData: traces, _fullLayout: layout }) => [
      ...traces.flatMap(ofTrace),
      ...layout.annotations.map((note) => note.text),
      ...layout.shapes.flatMap((line) => [line.x0, line.x1, line.y0, line.y1]),
      ...Object.keys(layout).filter((name) => /^[xy]axis/.test(name)).flatMap((name) => flat(layout[name].ticktext)),
    ];
    const plots = [...document.querySelectorAll(".plot.drawn")];
    return Object.fromEntries(plots.map((plot) => [plot.dataset.figure, ofPlot(plot)]));
  },

  // Notes what gets the focus from now on; how often Tab is to be pressed to reach everything.
  watch() {
    const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]');
    const isStop = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled && one.type !== "hidden";
    const watched = { stops: [...all].filter(isStop), reached: new Set(), unmarked: [] };
    window.watched = watched;
    addEventListener("focusin", ({ target }) => {
      watched.reached.add(target);
      const { outlineStyle, outlineWidth } = getComputedStyle(target);
      const isMarked = target.matches(":focus-visible") && outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
      const { width, height, top, bottom, left, right } = target.getBoundingClientRect();
      const isInView = width > 1 && height > 1 && bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
      if (!isMarked || !isInView) watched.unmarked.push(target);
    });
    document.activeElement?.blur();
    const times = watched.stops.filter((one) => one.type === "datetime-local").length;
    return watched.stops.length + 6 * times; // day, month, year, hour, minute, half of the day, picker
  },

  // What was not reached, or had the focus and did not show it.
  missed() {
    const { stops, reached, unmarked } = window.watched;
    return [...stops.filter((one) => !reached.has(one)), ...unmarked].map((one) => one.outerHTML.slice(0, 160));
  },

  // Where links and forms lead, and from where styles and scripts come.
  leads() {
    const all = document.querySelectorAll("a[href], form, link[href], script[src]");
    return [...all].map((one) => one.href ?? one.action ?? one.src);
  },
})
