import assert from "node:assert/strict";
import { test } from "node:test";
import type { Disk, TopRow } from "../../src/api/wire.ts";
import { covers, Wants } from "../../src/api/wants.ts";
import { matches, parse, sorted } from "../../src/model/filter.ts";

function row(name: string, iops: number, p99: number | null): TopRow {
  const side = { iops: iops / 2, bytes_per_second: iops * 4096 };
  return { name, load: { window_s: 1, read: side, write: side, outstanding: 1, in_flight: 1, p99_us: p99 } } as TopRow;
}

function found(filter: string, rows: TopRow[], disks: Record<string, Partial<Disk>> = {}): string[] {
  const parsed = parse(filter);
  assert.ok("conditions" in parsed, JSON.stringify(parsed));
  return rows.filter((one) => matches(parsed.conditions, one, disks[one.name] as Disk | undefined)).map((one) => one.name);
}

const ROWS = [row("db", 900, 8000), row("web", 90, 600), row("old", 0, null)];

test("all conditions must hold", () => {
  assert.deepEqual(found("", ROWS), ["db", "web", "old"]);
  assert.deepEqual(found("busy:100", ROWS), ["db"]);
  assert.deepEqual(found("slow:0.5ms", ROWS), ["db", "web"]);
  assert.deepEqual(found("slow:5ms WEB", ROWS), []);
  assert.deepEqual(found("on:fast class:gold", ROWS, { db: { datastore: "fast", class: "gold" }, web: { datastore: "fast" } }), ["db"]);
});

test("a filter that makes no sense is told with a right form", () => {
  for (const wrong of ["slow:5", "slow:", "busy:x", "busy:-1", "class:", "on:"]) {
    const parsed = parse(wrong);
    assert.ok("wrong" in parsed && /as in|give/.test(parsed.wrong), wrong);
  }
});

test("a colon in a name is only text", () => {
  assert.deepEqual(found("a:b", [row("xa:b", 1, 1)]), ["xa:b"]);
});

test("rows are sorted by a figure, and equal ones by name", () => {
  assert.deepEqual(sorted(ROWS, "-p99").map((one) => one.name), ["db", "web", "old"]);
  assert.deepEqual(sorted(ROWS, "iops").map((one) => one.name), ["old", "web", "db"]);
  assert.deepEqual(sorted([row("b", 1, 1), row("a", 1, 1)], "-iops").map((one) => one.name), ["a", "b"]);
});

test("one stream asks for the rows of all tabs that want the same kind", () => {
  const wants = new Wants();
  const query = { by: "disk", sort: "-p99", filter: "", from: 0, count: 40 } as const;
  wants.set("a", query);
  wants.set("b", { ...query, from: 100 });
  wants.set("c", { ...query, sort: "name" });
  assert.deepEqual(wants.merged("a"), { ...query, from: 0, count: 140 });
  assert.deepEqual(wants.merged("c"), { ...query, sort: "name" });
  assert.ok(covers(wants.merged("a")!, { ...query, from: 60, count: 20 }));
  assert.ok(!covers(wants.merged("a")!, { ...query, from: 130, count: 20 }));
  assert.match(wants.address(query), /topics=status%2Ctop%2Cmigrations%2Cactivity&by=disk&window_s=1&sort=-p99&from=0&count=40/);
});

test("a tab without rows gives way to those that have some", () => {
  const wants = new Wants();
  wants.set("b", { by: "class", sort: "name", filter: "", from: 0, count: 10 });
  assert.equal(wants.merged("a")?.by, "class");
  assert.equal(wants.set("b", null), true);
  assert.equal(wants.set("b", null), false);
  assert.equal(wants.merged("a"), null);
  assert.equal(wants.address(null), "topics=status%2Cmigrations%2Cactivity");
});
