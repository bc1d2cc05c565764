// `make web-baselines`: takes all pictures of the screens anew. Look at them before they are
// committed: `git diff --stat web/test/pictures`.
import { launch } from "./browser.mjs";
import { all, keep, Studio } from "./pictures.mjs";

const browser = await launch();
const studio = await Studio.open(browser);
keep("letters", await studio.letters());
let [count, bytes] = [0, 0];
for (const view of all()) {
  for (const [name, picture] of await studio.take(view)) {
    keep(name, picture);
    count += 1;
    bytes += picture.length;
  }
}
await studio.close();
await browser.close();
console.log(`${count} pictures, ${(bytes / 1e6).toFixed(2)} MB`);
