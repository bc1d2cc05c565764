// Builds `src/early.ts` as a file of its own, which the page asks for before everything else: the
// rest is one file, so that there are few.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { build } from "vite";

/** The Vite plugin. */
export function early() {
  let root = "";
  let name = "";
  return {
    name: "early",
    apply: "build",
    configResolved(config) {
      root = config.root;
    },
    async buildStart() {
      const built = await build({
        configFile: false,
        root,
        logLevel: "error",
        build: { write: false, target: "es2022", modulePreload: false, rolldownOptions: { input: join(root, "src/early.ts"), output: { format: "iife" } } },
      });
      const [{ code }] = built.output;
      const hash = createHash("sha256").update(code).digest("base64url").slice(0, 8);
      name = `assets/early-${hash}.js`;
      this.emitFile({ type: "asset", fileName: name, source: code });
    },
    transformIndexHtml: {
      order: "post",
      // After what holds for all requests, and before the style, for which a browser would have it wait.
      handler: (html) => html.replace("<title>", `<script src="/${name}"></script>\n    <title>`),
    },
  };
}
