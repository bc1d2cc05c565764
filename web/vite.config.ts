import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
// @ts-expect-error a script without types
import { compressed } from "./scripts/compressed.mjs";
// @ts-expect-error a script without types
import { early } from "./scripts/early.mjs";

// The daemon embeds what is built here. Its policy permits no inline script, style or image
// of another origin, so nothing is inlined; and there are fewer than twelve files.
export default defineConfig({
  plugins: [svelte(), early(), compressed()],
  build: {
    outDir: "../crates/dashboard/dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rolldownOptions: { output: { codeSplitting: false } },
    reportCompressedSize: false,
  },
});
