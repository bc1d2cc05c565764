// Each screen looks as it did when its picture was committed, at three sizes and in two themes.
// Letters are drawn otherwise by other fonts or another chromium, which says nothing of the page:
// a picture of letters tells whether this machine draws them as the one that took the pictures. If
// it does not, nothing is compared, and the test says so. `make web-baselines` takes them anew.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch } from "../support/browser.mjs";
import { all, kept, same, show, Studio } from "../support/pictures.mjs";

const OTHER_LETTERS = "NOT COMPARED: this machine draws letters otherwise than the one that took the pictures (other fonts or another chromium); `make web-baselines` takes them here";
let browser;
let studio;
let others = false;
before(async () => {
  browser = await launch();
  studio = await Studio.open(browser);
  others = !kept("letters")?.equals(await studio.letters());
});
after(async () => {
  await studio.close();
  await browser.close();
});

for (const view of all()) {
  test(`${view.name} looks as it did`, async (its) => {
    if (others) return its.skip(OTHER_LETTERS);
    for (const [name, today] of await studio.take(view)) {
      const before = kept(name);
      assert.ok(before, `there is no picture ${name}: \`make web-baselines\``);
      if (before.equals(today)) continue;
      const part = await studio.differs(before, today);
      if (same(part)) continue;
      assert.fail(`${name}: ${(part * 100).toFixed(2)} % of the pixels differ; today's is ${show(name, today)}. If it is as it should be: \`make web-baselines\``);
    }
  });
}
