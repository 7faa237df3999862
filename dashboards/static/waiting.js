// The page in place of one that is being computed: asks for that until it is there, and shows it then.
"use strict";
(async () => {
  const LATER = 2000; // milliseconds, where the server cannot be reached
  for (let answer = null; !answer; ) {
    answer = await crosswind.answered(location.href).catch(() => null);
    if (!answer) await new Promise((resume) => setTimeout(resume, LATER));
  }
  location.reload(); // also for a refusal, which is a page too
})();
