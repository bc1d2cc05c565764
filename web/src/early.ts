// A file of its own that comes first, and is small: while the browser reads the rest of the page, the
// daemon is asked who is here and, if nobody else in this browser has it, for the stream of figures.
// `session.svelte.ts` and `stream.ts` take both over. Without this file they ask by themselves.
import { EVENTS, LOCK, type Early, type Lead } from "./api/first.ts";
import { Wants, WORST } from "./api/wants.ts";

const isNow = /^(#\/?(now)?(\?.*)?)?$/.test(location.hash);

/** The stream of the first screen's rows, with what it says until somebody listens. */
function begin(release: () => void): Lead {
  const address = `/v1/events?${new Wants().address(WORST)}`;
  const lead: Lead = { address, release, source: new EventSource(address), said: [] };
  for (const name of EVENTS) lead.source.addEventListener(name, (sent) => lead.said?.push({ name, text: (sent as MessageEvent<string>).data }));
  return lead;
}

// A link is exchanged for a session first: who comes with one has none.
if (!location.hash.startsWith("#link=") && !document.hidden) {
  const early: Early = {
    session: fetch("/v1/session", { credentials: "same-origin", cache: "no-store" })
      .then((answer) => (answer.ok ? answer.json() : null))
      .catch(() => null),
    lead: null,
  };
  if (isNow && "locks" in navigator) {
    early.lead = new Promise((resolve) => {
      navigator.locks
        .request(LOCK, { ifAvailable: true }, (lock) => {
          if (!lock) return resolve(null);
          return new Promise<void>((release) => resolve(begin(release)));
        })
        .catch(() => resolve(null));
    });
  }
  globalThis.sternaEarly = early;
}
