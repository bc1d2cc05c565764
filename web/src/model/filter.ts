// The filter of tables: text in the name; `class:gold`, `on:fast`, `slow:5ms`, `busy:100`,
// separated by spaces; all must hold. The daemon filters what it streams by the same rules;
// the page does where it has the rows already.
import type { Disk, TopRow } from "../api/wire.ts";
import { parseResponse } from "./units.ts";

/** One condition. */
export type Condition =
  | { kind: "name"; text: string }
  | { kind: "class"; name: string }
  | { kind: "on"; name: string }
  | { kind: "slow"; us: number }
  | { kind: "busy"; iops: number };

/** Conditions, or words about the first that makes no sense. */
export type Parsed = { conditions: Condition[] } | { wrong: string };

/** Reads a filter. */
export function parse(text: string): Parsed {
  const conditions: Condition[] = [];
  for (const part of text.trim().split(/\s+/).filter(Boolean)) {
    const at = part.indexOf(":");
    const [key, value] = at < 0 ? ["", part] : [part.slice(0, at), part.slice(at + 1)];
    const condition = read(key, value, part);
    if (typeof condition === "string") return { wrong: condition };
    conditions.push(condition);
  }
  return { conditions };
}

function read(key: string, value: string, part: string): Condition | string {
  switch (key) {
    case "class":
    case "on":
      return value ? { kind: key, name: value } : `${key}: a name is missing, as in ${key === "on" ? "on:fast" : "class:gold"}`;
    case "slow": {
      const us = parseResponse(value);
      return us === null ? `slow: give a response time with its unit, as in slow:5ms` : { kind: "slow", us };
    }
    case "busy": {
      const iops = Number(value);
      return value && iops > 0 ? { kind: "busy", iops } : "busy: give IO/s, as in busy:100";
    }
    default:
      return { kind: "name", text: part.toLowerCase() };
  }
}

/** Whether all conditions hold for a row. `disk` is what is known of a disk of that name. */
export function matches(conditions: Condition[], row: TopRow, disk: Disk | undefined): boolean {
  return conditions.every((one) => {
    switch (one.kind) {
      case "name":
        return row.name.toLowerCase().includes(one.text);
      case "class":
        return disk?.class === one.name;
      case "on":
        return disk?.datastore === one.name;
      case "slow":
        return (row.load.p99_us ?? 0) >= one.us;
      case "busy":
        return row.load.read.iops + row.load.write.iops >= one.iops;
    }
  });
}

/** What rows are sorted by, as the stream calls it. */
export const SORTS = ["name", "iops", "rate", "p99", "max", "outstanding", "queue"] as const;
export type Sort = (typeof SORTS)[number];

/** The value that a row is sorted by. */
export function sortValue(row: TopRow, sort: Sort): number | string {
  const load = row.load;
  switch (sort) {
    case "name":
      return row.name;
    case "iops":
      return load.read.iops + load.write.iops;
    case "rate":
      return load.read.bytes_per_second + load.write.bytes_per_second;
    case "p99":
      return load.p99_us ?? -1;
    case "max":
      return load.max_us ?? -1;
    case "outstanding":
      return load.outstanding;
    case "queue":
      return load.queue_us ?? -1;
  }
}

/** Rows in an order: `-p99` is descending. Equal ones by name. */
export function sorted(rows: TopRow[], order: string): TopRow[] {
  const down = order.startsWith("-");
  const name = order.replace("-", "");
  const sort: Sort = SORTS.find((one) => one === name) ?? "iops";
  const by = (a: TopRow, b: TopRow) => {
    const [left, right] = [sortValue(a, sort), sortValue(b, sort)];
    const apart = left < right ? -1 : left > right ? 1 : 0;
    return (down ? -apart : apart) || (a.name < b.name ? -1 : 1);
  };
  return [...rows].sort(by);
}
