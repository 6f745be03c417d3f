// Builds the front end into the Python package: four files with fixed names, and a note of the sources they came from.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig } from "vite";

const here = import.meta.dirname;
const out = join(here, "../src/headwater/web/static");

/** The digest that tests/house/test_bundle.py computes too: of each source its path, a zero byte and its content. */
function digest(): string {
  const inSrc = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(here, join(entry.parentPath, entry.name)));
  const names = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "public/icon.svg"];
  const hash = createHash("sha256");
  for (const name of [...names, ...inSrc].sort()) {
    hash.update(name).update("\0").update(readFileSync(join(here, name))).update("\0");
  }
  return hash.digest("hex");
}

export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: out,
    emptyOutDir: true,
    modulePreload: false,
    target: "es2022",
    rollupOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]" },
    },
  },
  plugins: [
    { name: "note-sources", closeBundle: () => writeFileSync(join(out, "sources.sha256"), `${digest()}\n`) },
  ],
});
