// Puts a .br and a .gz beside each text file that was built. Both depend on nothing but the
// file's bytes, so that the same sources give the same files everywhere.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** What pays for itself: an icon of some hundred bytes does not, nor does a script of two packets. */
const COMPRESSED = /\.(html|js|css)$/;
const SMALL_SCRIPT = 2_500;

/** The files below a directory. */
export function files(directory) {
  return readdirSync(directory)
    .sort()
    .flatMap((name) => {
      const path = join(directory, name);
      return statSync(path).isDirectory() ? files(path) : [path];
    });
}

function brotli(bytes) {
  return brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
}

function gzip(bytes) {
  const packed = gzipSync(bytes, { level: 9 });
  // The header names the system that packed it: 255 is "unknown".
  packed[9] = 255;
  return packed;
}

/** The Vite plugin. */
export function compressed() {
  let directory = "";
  return {
    name: "compressed",
    apply: "build",
    configResolved(config) {
      directory = join(config.root, config.build.outDir);
    },
    closeBundle() {
      for (const path of files(directory).filter((path) => COMPRESSED.test(path))) {
        const bytes = readFileSync(path);
        if (path.endsWith(".js") && bytes.length < SMALL_SCRIPT) continue;
        writeFileSync(`${path}.br`, brotli(bytes));
        writeFileSync(`${path}.gz`, gzip(bytes));
      }
    },
  };
}
