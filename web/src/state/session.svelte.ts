// Who is logged in. The daemon decides what somebody may do; the page only leaves out what
// would be refused.
import { taken } from "../api/first.ts";
import { get, onLogout, Refusal, send } from "../api/client.ts";
import type { Session } from "../api/wire.ts";
import { ready } from "./first.ts";
import { hush, listen } from "./live.svelte.ts";

type State = { kind: "asking" } | { kind: "in"; who: Session } | { kind: "out"; words: string; hint: string };

let state = $state.raw<State>({ kind: "asking" });

export const session = {
  get state() {
    return state;
  },
  /** Whether somebody may change something. */
  get operates() {
    return state.kind === "in" && state.who.role === "operator";
  },
  get who() {
    return state.kind === "in" ? state.who : null;
  },
};

onLogout.call = () => {
  hush();
  state = { kind: "out", words: "The session has ended.", hint: "" };
};

/**
 * Exchanges the one-time link of the address for a cookie, or asks for the session there is, and
 * for figures at the same time: who has no session is refused both.
 */
export async function logIn(): Promise<void> {
  const link = /^#link=([^&]+)/.exec(location.hash)?.[1];
  // The link is dead after this, and no history keeps it.
  if (link) history.replaceState(null, "", location.pathname + location.search);
  if (!link) listen();
  try {
    const who = link
      ? await send<Session>("POST", "/v1/session", { link: decodeURIComponent(link) })
      : ((await taken("session")) ?? (await get<Session>("/v1/session")));
    listen();
    if (state.kind === "asking") await ready();
    state = { kind: "in", who };
  } catch (error) {
    hush();
    const refusal = error instanceof Refusal ? error : null;
    if (refusal?.status === 401) {
      state = { kind: "out", words: refusal.message, hint: refusal.hint };
      return;
    }
    state = { kind: "out", words: refusal?.message ?? String(error), hint: "" };
    setTimeout(() => void logIn(), 1_000);
  }
}

// If somebody opens a new link in a tab that stands at the login, only its hash changes.
addEventListener("hashchange", () => {
  if (state.kind === "out" && location.hash.startsWith("#link=")) void logIn();
});

/** Ends the session. */
export async function logOut(): Promise<void> {
  await send("DELETE", "/v1/session").catch(() => {});
  hush();
  state = { kind: "out", words: "You have logged out.", hint: "" };
}
