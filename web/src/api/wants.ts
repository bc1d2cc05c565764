// Which rows the tabs of a browser want, and the one request of the stream that serves most.

/** A part of the table of `top`. */
export interface Query {
  by: "disk" | "class" | "datastore";
  sort: string;
  filter: string;
  from: number;
  count: number;
}

/** The slowest disks, as `Now` shows them. */
export const WORST: Query = { by: "disk", sort: "-p99", filter: "", from: 0, count: 10 };

/** Queries that differ only in the rows can be one. */
function kind(query: Query): string {
  return `${query.by}|${query.sort}|${query.filter}`;
}

/** Whether the rows of one query have those of another. */
export function covers(whole: Query, part: Query): boolean {
  return kind(whole) === kind(part) && whole.from <= part.from && whole.from + whole.count >= part.from + part.count;
}

export class Wants {
  private readonly tabs = new Map<string, Query | null>();

  /** A tab wants something else, or nothing. Says whether that changed anything. */
  set(tab: string, query: Query | null): boolean {
    const before = this.tabs.get(tab) ?? null;
    if (query) this.tabs.set(tab, query);
    else this.tabs.delete(tab);
    return JSON.stringify(before) !== JSON.stringify(query);
  }

  /** Forgets all tabs. */
  clear(): void {
    this.tabs.clear();
  }

  /**
   * What the stream asks for: the rows of this tab and of all tabs that want the same kind; if
   * this tab wants none, those that most tabs want. The others ask by themselves.
   */
  merged(own: string): Query | null {
    const all = [...this.tabs.values()].filter((one): one is Query => one !== null);
    const kinds = new Map<string, Query[]>();
    for (const query of all) kinds.set(kind(query), [...(kinds.get(kind(query)) ?? []), query]);
    const mine = this.tabs.get(own);
    const most = [...kinds.values()].sort((a, b) => b.length - a.length)[0];
    const chosen = mine ? kinds.get(kind(mine)) : most;
    if (!chosen?.[0]) return null;
    const from = Math.min(...chosen.map((one) => one.from));
    const to = Math.max(...chosen.map((one) => one.from + one.count));
    return { ...chosen[0], from, count: to - from };
  }

  /** The parameters of a stream with these rows. */
  address(query: Query | null): string {
    const params = new URLSearchParams({ topics: query ? "status,top,migrations,activity" : "status,migrations,activity" });
    if (query) {
      params.set("by", query.by);
      params.set("window_s", "1");
      params.set("sort", query.sort);
      if (query.filter) params.set("filter", query.filter);
      params.set("from", String(query.from));
      params.set("count", String(query.count));
    }
    return params.toString();
  }
}
