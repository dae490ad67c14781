/**
 * Builds the browser applications, which are committed: the portal's into `built`, with `--mode console` the operators'
 * console into `built-console`. Run it with `npm run portal`.
 */
import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig(({ mode }) => ({
  root: import.meta.dirname,
  plugins: [react()],
  logLevel: "warn",
  build: {
    outDir: mode === "console" ? "built-console" : "built",
    rolldownOptions: { input: join(import.meta.dirname, mode === "console" ? "console.html" : "index.html") },
    emptyOutDir: true,
    target: "es2023",
    // Everything is a file of its own: the content security policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
}));
