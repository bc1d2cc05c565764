// What the daemon says all the time, for every screen.
import { covers, type Query } from "../api/wants.ts";
import { get, onLogout, path, Refusal } from "../api/client.ts";
import { Stream, type Event } from "../api/stream.ts";
import type { Activity, Explanation, Hello, Migration, Status, Tick, Top } from "../api/wire.ts";
import { DaemonClock, SILENT_MS } from "../model/age.ts";
import { matches, parse, sorted } from "../model/filter.ts";
import { came, drawn, firstRows } from "./first.ts";
import { inventory } from "./inventory.svelte.ts";

const ACTIVITY_KEPT = 500;
/** How much of the silence is over when the connection breaks. */
const BROKEN_MS = 900;
/** After so long the next word of the daemon is overdue. */
const QUIET_MS = 1_200;
const STEP_MS = 250;
/** While the daemon is away, it is asked so often whether it still knows the session. */
const KNOCK_MS = 1_000;
const clock = new DaemonClock();

// Each by itself, so that what depends on one does not follow the others.
let status = $state.raw<Status | null>(null);
let migrations = $state.raw<Migration[] | null>(null);
let activities = $state.raw<Activity[]>([]);
let version = $state("");
let generation = $state(0);
let zone = $state<string | null>(null);
let now = $state(Date.now());
let heardMs = $state<number | null>(null);
let awaySince = $state<number | null>(null);
let top = $state.raw<{ top: Top; query: Query } | null>(null);

const NO_MOVES: Migration[] = [];

export const live = {
  /** The daemon's clock, in steps of a second. */
  get now() {
    return now;
  },
  /**
   * When the daemon last said something. What does not change is not sent again, and is as
   * true as ever: status and moves have this age.
   */
  get at() {
    return heardMs;
  },
  get status() {
    return status;
  },
  /** The rows that were asked for, and when they were measured (`at_ms`). */
  get top() {
    return top?.top ?? null;
  },
  get topQuery() {
    return top?.query ?? null;
  },
  get migrations() {
    return migrations ?? NO_MOVES;
  },
  get knowsMigrations() {
    return migrations !== null;
  },
  get activity() {
    return activities;
  },
  /** Since when the daemon says nothing, or nothing while it does. */
  get awaySince() {
    return awaySince;
  },
  get version() {
    return version;
  },
  /** Counts the daemon's starts that were seen: what was asked before is asked again. */
  get generation() {
    return generation;
  },
  /** The daemon's time zone. */
  get zone() {
    return zone;
  },
};

let daemon = "";
let heardAt = 0;
let wanted: Query | null = firstRows;
let served = 0;
let asking = false;
let knocked = 0;

function daemonNow(): number {
  return clock.now(performance.now(), Date.now());
}

function heard(nowMs: number): void {
  clock.said(nowMs, performance.now());
  heardAt = performance.now();
  awaySince = null;
  now = nowMs;
  heardMs = nowMs;
}

function onEvent(event: Event): void {
  const data = event.data;
  heardAt = performance.now();
  switch (event.name) {
    case "hello":
      hello(data as Hello);
      break;
    case "status":
      status = data as Status;
      break;
    case "migrations":
      migrations = data as Migration[];
      break;
    case "top":
      if (wanted && event.query && covers(event.query, wanted)) {
        served = performance.now();
        if (!top) came();
        top = { top: data as Top, query: event.query };
      }
      break;
    case "activity":
      activity(data as Activity[]);
      break;
    case "tick":
      heard((data as Tick).now_ms);
      break;
  }
}

function hello(from: Hello): void {
  heard(from.now_ms);
  if (daemon && daemon !== from.daemon) {
    // Another daemon may have another page.
    if (version && version !== from.version) location.reload();
    top = null;
    generation += 1;
    activities = [];
  }
  daemon = from.daemon;
  version = from.version;
  if (zone === null) {
    void drawn.then(() => get<Explanation>(path`/v1/classes/${"migration"}/explanation`))
      .then((found) => (zone = found.time_zone ?? "UTC"))
      .catch(() => {});
  }
}

function activity(more: Activity[]): void {
  const known = new Set(activities.map((one) => one.seq));
  const fresh = more.filter((one) => !known.has(one.seq));
  if (fresh.length === 0) return;
  const all = [...fresh, ...activities].sort((a, b) => b.seq - a.seq);
  activities = all.slice(0, ACTIVITY_KEPT);
}

let stream: Stream | null = null;
let steps = 0;

/** A tab that was hidden has the figures of before, and they are as old as they are. */
function onSeen(): void {
  if (!document.hidden && heardMs !== null) now = Math.max(now, daemonNow());
}

/** Begins to listen. */
export function listen(): void {
  if (steps) return;
  heardAt = performance.now();
  steps = setInterval(step, STEP_MS);
  document.addEventListener("visibilitychange", onSeen);
  stream ??= new Stream(onEvent, onLink);
  stream.want(wanted);
  stream.start();
}

/** Listens no more: nobody is logged in. */
export function hush(): void {
  clearInterval(steps);
  steps = 0;
  document.removeEventListener("visibilitychange", onSeen);
  stream?.stop();
}

/** A connection that broke is not told at once: it may be there again after a second. */
function onLink(up: boolean): void {
  if (!up) heardAt = Math.min(heardAt, performance.now() - BROKEN_MS);
}

function step(): void {
  if (document.hidden) {
    heardAt = performance.now();
    return;
  }
  const silent = performance.now() - heardAt;
  if (silent > SILENT_MS && awaySince === null) awaySince = daemonNow() - silent;
  // Each second the daemon says the time; without its word figures grow old all the same.
  if (silent > QUIET_MS) now = daemonNow();
  if (awaySince !== null && performance.now() - knocked > KNOCK_MS) void knock();
  // Another tab's stream has other rows: this tab asks by itself.
  if (wanted && awaySince === null && performance.now() - served > 1_800 && !asking) void ask(wanted);
}

/**
 * Asks whether the session is still known. A daemon that was restarted knows it no more and
 * refuses the stream, and a browser does not tell a page why its stream was refused.
 */
async function knock(): Promise<void> {
  knocked = performance.now();
  try {
    await get("/v1/session");
  } catch (error) {
    if (error instanceof Refusal && error.status === 401 && steps) onLogout.call();
  }
}

async function ask(query: Query): Promise<void> {
  asking = true;
  try {
    const found = await get<Top>(`/v1/top?by=${query.by}&window_s=1`);
    if (query !== wanted) return;
    const parsed = parse(query.filter);
    const conditions = "conditions" in parsed ? parsed.conditions : [];
    const kept = found.rows.filter((row) => matches(conditions, row, inventory.disk(row.name)));
    const rows = sorted(kept, query.sort).slice(query.from, query.from + query.count);
    top = { top: { ...found, rows, matched: kept.length }, query };
    served = performance.now() - 800;
  } catch {
    // The banner says that the daemon is away.
  } finally {
    asking = false;
  }
}

/** Says which rows a screen shows. */
export function wantRows(query: Query | null): void {
  if (JSON.stringify(query) === JSON.stringify(wanted)) return;
  const other = !query || !wanted || query.by !== wanted.by || query.sort !== wanted.sort || query.filter !== wanted.filter;
  wanted = query;
  if (other) top = null;
  served = performance.now();
  stream?.want(query);
}
