// The last minutes of figures that a table shows, for its sparklines. It begins when a row is
// first on screen.

/** How many seconds a sparkline shows. */
export const KEPT = 120;

export class History {
  private readonly rows = new Map<string, { atMs: number; values: (number | null)[] }>();

  /** A row's newest figure. */
  add(name: string, atMs: number, value: number | null): void {
    let row = this.rows.get(name);
    if (!row) this.rows.set(name, (row = { atMs: 0, values: [] }));
    if (atMs <= row.atMs) return;
    // In place: 500 rows would leave a megabyte behind each second.
    row.values.push(value);
    if (row.values.length > KEPT) row.values.shift();
    row.atMs = atMs;
  }

  /** What was before the row came on screen. */
  seed(name: string, values: (number | null)[]): void {
    const row = this.rows.get(name) ?? { atMs: 0, values: [] };
    row.values = [...values, ...row.values].slice(-KEPT);
    this.rows.set(name, row);
  }

  /** A row's figures, oldest first. */
  of(name: string): (number | null)[] {
    return this.rows.get(name)?.values ?? [];
  }

  /** Whether a row is known. */
  has(name: string): boolean {
    return this.rows.has(name);
  }

  /** Forgets rows that were not on screen for a while. */
  prune(nowMs: number): void {
    for (const [name, row] of this.rows) {
      if (row.atMs > 0 && nowMs - row.atMs > KEPT * 1e3) this.rows.delete(name);
    }
  }
}
