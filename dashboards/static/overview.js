// Fills in the blocks that take longer, and lists what is stored while the page is open; it never reloads the page.
"use strict";
(() => {
  const LISTED = 50;

  async function fetched(address) {
    const answer = await crosswind.answered(address);
    return answer.status === 200 ? parsed(await answer.text(), answer.url) : null;
  }

  // A page whose links lead where they did: that of the example is at another address than the page that shows it.
  function parsed(html, address) {
    const page = new DOMParser().parseFromString(html, "text/html");
    for (const name of ["href", "data-link"]) {
      for (const one of page.querySelectorAll(`main [${name}]:not([${name}^="#"])`)) {
        one.setAttribute(name, new URL(one.getAttribute(name), address));
      }
    }
    return page;
  }

  async function fill(block) {
    const note = block.querySelector(".pending");
    const link = note.firstElementChild;
    note.replaceChildren("Being computed…");
    await before; // one after the other: the server has others to answer
    const page = await fetched(block.dataset.part).catch(() => null);
    const computed = page && page.getElementById(block.id);
    if (!computed) {
      note.replaceChildren("It could not be computed now. ", link);
      return;
    }
    const hasFocus = block.contains(document.activeElement);
    block.replaceWith(document.adoptNode(computed));
    if (hasFocus) computed.querySelector("a")?.focus({ preventScroll: true });
    computed.dispatchEvent(new Event("crosswind:added", { bubbles: true }));
  }
  let before = Promise.resolve();
  for (const block of document.querySelectorAll("[data-part]")) before = fill(block);

  const live = document.getElementById("live");
  if (!live) return;
  const [status, anew, button, list] = ["strong", "a", "button", "ol"].map((name) => live.querySelector(name));
  let clock = null;
  let position = live.dataset.after;
  let stream = null;
  let count = 0;
  let isPaused = false;
  live.hidden = false;

  const words = (name) => String(name ?? "").replaceAll("_", " ");
  const what = {
    "run.started": ({ world_size: ranks }) => (ranks ? `began on ${ranks} ${ranks === 1 ? "rank" : "ranks"}` : "began"),
    "run.ended": ({ state, seconds }) => `ended: ${state}${seconds ? `, after ${Math.round(seconds)} s` : ""}`,
    "run.verdict": ({ verdict, cause }) => `verdict: ${words(verdict)}${cause ? `, by ${words(cause)}` : ""}`,
    "check.measured": () => "nodes were checked",
    "data.gap": ({ origin }) => `data is missing: part of a batch${origin ? ` from ${origin}` : ""} could not be read`,
  };

  function show(event) {
    const said = JSON.parse(event.data);
    position = event.lastEventId || position;
    count += 1;
    const line = document.createElement("li");
    const time = document.createElement("time");
    clock ??= new Intl.DateTimeFormat("sv-SE", { timeStyle: "medium" });
    time.textContent = clock.format(new Date(said.at));
    const about = document.createElement(said.run_id ? "a" : "span");
    about.textContent = [said.workload, said.system].filter(Boolean).join(" on ") || said.run_id || "store";
    if (said.run_id) about.href = live.dataset.runs + encodeURIComponent(said.run_id);
    line.append(time, " ", about, ` ${what[event.type](said.details)}`);
    list.prepend(line);
    if (list.childElementCount > LISTED) list.lastElementChild.remove();
    list.hidden = anew.hidden = false;
    say();
  }

  function say() {
    const nothing = count ? `${count} new since you opened this page.` : "Nothing new since you opened this page.";
    status.textContent = isPaused ? `${nothing} Paused.` : nothing;
  }

  function listen() {
    if (stream || isPaused || document.hidden) return;
    stream = new EventSource(`${live.dataset.events}&after=${position}`);
    for (const kind of Object.keys(what)) stream.addEventListener(kind, show);
    stream.addEventListener("open", () => live.classList.add("listening"));
    stream.addEventListener("error", () => {
      if (stream?.readyState !== EventSource.CLOSED) return; // else it comes back by itself
      status.textContent = `${count || "Nothing"} new; what comes now is not shown here: too many pages are open, or you are logged out.`;
      anew.hidden = false;
      button.hidden = true;
    });
  }

  function leave() {
    stream?.close();
    stream = null;
  }

  button.addEventListener("click", () => {
    isPaused = !isPaused;
    button.textContent = isPaused ? "Go on" : "Pause";
    if (isPaused) leave();
    else listen();
    say();
  });
  // A hidden page frees its connection, of which a browser has six to a server; it catches up when it is seen again.
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : listen()));
  addEventListener("pagehide", leave);
  addEventListener("pageshow", listen);
  listen();
})();
