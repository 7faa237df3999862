// Runs before the first paint, so that a chosen theme does not flash in late.
"use strict";
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("crosswind-theme");
  } catch {
    // No storage here (private window, sandboxed frame): the system's preference holds.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("js");
})();
