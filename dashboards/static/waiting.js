// The page in place of one that is being computed: asks for that until it is there, and shows it then.
"use strict";
(() => {
  const FIRST = 250; // milliseconds between two questions; then twice as long each time, for the server has others too
  const MOST = 2000;
  const pause = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));

  async function look(milliseconds) {
    await pause(milliseconds);
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" }).catch(() => null);
    const isPending = !answer || answer.status === 202 || answer.status === 503;
    if (isPending) look(Math.min(2 * milliseconds, MOST));
    else location.reload(); // also a refusal, which is a page too
  }
  look(FIRST);
})();
