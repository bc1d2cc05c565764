// `npm run measure -- rows first`: figures of the page, one a line, as JSON. `--dist DIR` (more
// than once) measures other builds in turns; `--times N` repeats.
import { parseArgs } from "node:util";
import { load } from "./chrome.mjs";
import { cost, scrape } from "./costs.mjs";
import { day } from "./day.mjs";
import { first } from "./first.mjs";
import { fresh } from "./fresh.mjs";
import { rows } from "./rows.mjs";

const MEASURES = { first, fresh, day, rows, cost, scrape };
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { dist: { type: "string", multiple: true, default: [""] }, times: { type: "string" }, seconds: { type: "string" } },
});
const options = Object.fromEntries(["times", "seconds"].filter((one) => values[one]).map((one) => [one, Number(values[one])]));
for (const name of positionals.length > 0 ? positionals : Object.keys(MEASURES)) {
  const before = load();
  for (const line of await MEASURES[name](values.dist, options)) console.log(JSON.stringify(line));
  console.log(JSON.stringify({ measured: name, load: [before, load()] }));
}
