import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { guardOptions, migrate, sizeOption } from "../../src/model/commands.ts";
import { command, pieces, word } from "../../src/model/quote.ts";

const HOSTILE = ["a b", "$(reboot)", "`id`", "it's", "a;b", "--force x", "\u202egnp.exe", "a\nb", "\\", "'\u200b\\", "<script>", "*", "~", "!!", "é", "#x"];

test("a shell reads each quoted word as it was", () => {
  for (const name of HOSTILE) {
    const read = execFileSync("bash", ["--norc", "-c", `LC_ALL=C.UTF-8; printf %s ${word(name)}`], { encoding: "utf8", env: { LC_ALL: "C.UTF-8" } });
    assert.equal(read, name);
  }
});

test("what cannot be seen is written out in a command", () => {
  for (const name of HOSTILE) assert.doesNotMatch(word(name), /[\u0000-\u001f\u202a-\u202e\u200b]/);
});

test("harmless words are left as they are", () => {
  assert.equal(command("migration", "pause", 3), "sterna migration pause 3");
  assert.equal(word("web-1/vda"), "web-1/vda");
});

test("a move's command has the options that differ from what is usual", () => {
  assert.equal(migrate("db", "slow", { guard: { keep: 0.97 }, verify: true }), "sterna migrate db --to slow --keep 97%");
  const all = migrate("my db", "slow", { rate: 200 * 2 ** 20, guard: { p99_us: 5000, finish_by: "06:00" }, verify: false, keepSource: true });
  assert.equal(all, "sterna migrate 'my db' --to slow --rate 200M --no-verify --keep-source --p99 5ms --finish-by 06:00");
});

test("options are written in whole units, or exactly", () => {
  assert.deepEqual([2 ** 30, 3 * 2 ** 19, 1000].map(sizeOption), ["1G", "1536K", "1000"]);
  assert.deepEqual(guardOptions({ p99_us: 1500, idle_only: true, window: "22:00-06:00" }), ["--p99", "1500us", "--idle-only", "--window", "22:00-06:00"]);
});

test("commands in a hint are told from its text", () => {
  const found = pieces("make room; then `sterna migration resume 5`, or cancel it");
  assert.deepEqual(found.map((piece) => piece.isCommand), [false, true, false]);
  assert.equal(found[1]?.text, "sterna migration resume 5");
  assert.deepEqual(pieces("plain"), [{ text: "plain", isCommand: false }]);
});
