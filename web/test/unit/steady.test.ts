import assert from "node:assert/strict";
import { test } from "node:test";
import { Steady } from "../../src/model/steady.ts";

test("a figure about its bound does not make the word flicker", () => {
  const steady = new Steady();
  const said = Array.from({ length: 60 }, (_, second) => steady.see("db", second * 1e3, second % 2 === 1));
  assert.deepEqual(new Set(said), new Set([false]));
});

test("a word comes after three seconds and goes after ten", () => {
  const steady = new Steady();
  const see = (second: number, isSo: boolean) => steady.see("db", second * 1e3, isSo);
  see(0, false);
  assert.deepEqual([1, 2, 3, 4].map((second) => see(second, true)), [false, false, false, true]);
  assert.equal(see(4, false), true, "a moment is said once");
  const after = Array.from({ length: 11 }, (_, at) => see(5 + at, false));
  assert.deepEqual(after, [...Array(10).fill(true), false]);
});

test("what was not seen for a while begins anew", () => {
  const steady = new Steady();
  steady.see("db", 0, false);
  assert.equal(steady.see("db", 60_000, true), true);
});
