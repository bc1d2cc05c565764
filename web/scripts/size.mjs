// The gate for the first load: all files, in brotli.
import { readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { files } from "./compressed.mjs";

/** What a first load may take, and what it should. */
const LIMIT_KB = 120;
const TARGET_KB = 85;
/** The daemon embeds each file by itself. */
const FILES = 11;

const root = join(dirname(fileURLToPath(import.meta.url)), "../../crates/dashboard/dist");
const all = files(root);
const plain = all.filter((path) => !/\.(br|gz)$/.test(path));
let total = 0;
for (const path of plain) {
  const packed = all.includes(`${path}.br`) ? `${path}.br` : path;
  const size = statSync(packed).size;
  total += size;
  const raw = readFileSync(path).length;
  console.log(`${basename(path).padEnd(28)} ${kb(raw)} kB, on the wire ${kb(size)} kB`);
}
console.log(`first load: ${kb(total)} kB of ${LIMIT_KB} kB (target ${TARGET_KB} kB), ${all.length} files`);
if (total > LIMIT_KB * 1000 || all.length > FILES) {
  console.error(`size: more than ${LIMIT_KB} kB, or more than ${FILES} files`);
  process.exit(1);
}

function kb(bytes) {
  return (bytes / 1000).toFixed(1).padStart(6);
}
