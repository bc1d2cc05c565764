// The live stream, one for all tabs of a browser: over HTTP/1.1 a browser has six connections,
// and a seventh stream would hang all tabs. The tab that holds a lock has the stream and tells
// the others over a BroadcastChannel. The lock is free as soon as its tab is closed, or hidden.
import { EVENTS, LOCK, taken, type Lead } from "./first.ts";
import { Wants, type Query } from "./wants.ts";

export type { Query } from "./wants.ts";

/** An event as the daemon sends it. `query` says which rows a `top` has. */
export interface Event {
  name: string;
  data: unknown;
  query: Query | null;
}

/** An event for another tab: its text is copied sooner than what the text means. */
type Passed = { name: string; text: string; query: Query | null };

type Message =
  | { kind: "event"; event: Passed }
  | { kind: "link"; up: boolean }
  | { kind: "want"; tab: string; query: Query | null }
  | { kind: "who" };

/** How long a change of what is wanted may settle: a scroll changes it many times. */
const SETTLE_MS = 120;
/** A screen that has just been drawn says what it shows before the stream is opened. */
const FIRST_MS = 5;
const AGAIN_MS = 1_000;

function drop(lead: Lead): void {
  lead.source.close();
  lead.release();
}

export class Stream {
  private readonly tab = Math.random().toString(36).slice(2);
  private readonly channel = new BroadcastChannel(LOCK);
  private readonly wants = new Wants();
  private readonly last = new Map<string, Passed>();
  private source: EventSource | null = null;
  private query: Query | null = null;
  private opened = "";
  private leaves: (() => void) | null = null;
  private asked: AbortController | null = null;
  private settle = 0;
  private again = 0;
  private stopped = true;

  constructor(
    private readonly onEvent: (event: Event) => void,
    private readonly onLink: (up: boolean) => void,
  ) {
    this.channel.onmessage = (message) => this.hear(message.data as Message);
    document.addEventListener("visibilitychange", () => this.turn());
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", () => this.turn());
  }

  /** Begins. */
  start(): void {
    this.stopped = false;
    this.turn();
  }

  /** Ends, until it is begun again. */
  stop(): void {
    this.stopped = true;
    this.leave();
  }

  /** Whether this tab has the stream. */
  get leads(): boolean {
    return this.leaves !== null;
  }

  /** Says which rows this tab shows; nothing if it shows none. */
  want(query: Query | null): void {
    this.query = query;
    if (document.hidden || this.stopped) return;
    this.wants.set(this.tab, query);
    if (this.leads) this.reopen();
    else this.say({ kind: "want", tab: this.tab, query });
  }

  /** Comes back, or goes, as the tab is seen or hidden. */
  private turn(): void {
    if (this.stopped) return;
    if (document.hidden) {
      this.leave();
      return;
    }
    this.wants.set(this.tab, this.query);
    this.say({ kind: "want", tab: this.tab, query: this.query });
    if (this.asked) return;
    const asked = new AbortController();
    this.asked = asked;
    if (!("locks" in navigator)) {
      this.lead(() => {});
      return;
    }
    const ask = () => navigator.locks.request(LOCK, { signal: asked.signal }, () => new Promise<void>((resolve) => this.lead(resolve))).catch(() => {});
    const early = taken("lead");
    if (!early) void ask();
    else
      void early.then((lead) => {
        if (!lead) return void ask();
        if (asked.signal.aborted) drop(lead);
        else this.lead(lead.release, lead);
      });
  }

  private leave(): void {
    this.asked?.abort();
    this.asked = null;
    this.say({ kind: "want", tab: this.tab, query: null });
    this.close();
    this.leaves?.();
    this.leaves = null;
    this.wants.clear();
  }

  private lead(resolve: () => void, early: Lead | null = null): void {
    if (document.hidden || this.stopped) {
      if (early) drop(early);
      else resolve();
      return;
    }
    this.leaves = resolve;
    this.wants.set(this.tab, this.query);
    this.say({ kind: "who" });
    if (this.query) this.open(early);
    else {
      early?.source.close();
      this.reopen();
    }
  }

  private hear(message: Message): void {
    switch (message.kind) {
      case "event":
        this.read(message.event);
        break;
      case "link":
        this.onLink(message.up);
        break;
      case "who":
        if (!document.hidden && !this.stopped) this.say({ kind: "want", tab: this.tab, query: this.query });
        break;
      case "want":
        if (!this.leads) break;
        if (this.wants.set(message.tab, message.query)) this.reopen();
        // A tab that has just come knows nothing yet.
        for (const event of this.last.values()) this.say({ kind: "event", event });
        break;
    }
  }

  private say(message: Message): void {
    this.channel.postMessage(message);
  }

  private reopen(): void {
    clearTimeout(this.settle);
    this.settle = setTimeout(() => this.open(), this.source ? SETTLE_MS : FIRST_MS);
  }

  /** Opens the stream, or takes over one that is open already. */
  private open(early: Lead | null = null): void {
    if (!this.leads) return;
    const query = this.wants.merged(this.tab);
    const address = `/v1/events?${this.wants.address(query)}`;
    if (this.source && address === this.opened && this.source.readyState !== EventSource.CLOSED) return;
    this.close();
    this.opened = address;
    const isSame = early?.address === address && early.source.readyState !== EventSource.CLOSED;
    if (early && !isSame) early.source.close();
    const source = isSame && early ? early.source : new EventSource(address);
    this.source = source;
    source.onopen = () => this.link(true);
    source.onerror = () => {
      this.link(false);
      // The browser tries again by itself, unless it was refused.
      if (source.readyState !== EventSource.CLOSED) return;
      clearTimeout(this.again);
      this.again = setTimeout(() => this.open(), AGAIN_MS);
    };
    for (const name of EVENTS) {
      source.addEventListener(name, (sent) => this.pass(name, (sent as MessageEvent<string>).data, query));
    }
    if (!isSame || !early) return;
    const said = early.said ?? [];
    early.said = null;
    if (source.readyState === EventSource.OPEN) this.link(true);
    for (const { name, text } of said) this.pass(name, text, query);
  }

  private pass(name: string, text: string, query: Query | null): void {
    const event = { name, text, query: name === "top" ? query : null };
    this.last.set(name, event);
    this.read(event);
    this.say({ kind: "event", event });
  }

  private read({ name, text, query }: Passed): void {
    this.onEvent({ name, data: JSON.parse(text), query });
  }

  private link(up: boolean): void {
    this.onLink(up);
    this.say({ kind: "link", up });
  }

  private close(): void {
    clearTimeout(this.settle);
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
    this.opened = "";
  }
}
