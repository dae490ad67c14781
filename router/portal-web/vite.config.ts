/**
 * Builds the browser applications, which are committed: the portal's into `built`, with `--mode console` the operators'
 * console into `built-console`. Run it with `npm run portal`.
 */
import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** docs/api.md, the source of the portal's page for API clients. */
const apiPage: Plugin = {
  name: "api-page",
  resolveId: (id) => (id === "virtual:api-page" ? `${join(import.meta.dirname, "../../docs/api.md")}?raw` : null),
};

export default defineConfig(({ mode }) => ({
  root: import.meta.dirname,
  plugins: [react(), apiPage],
  logLevel: "warn",
  build: {
    outDir: mode === "console" ? "built-console" : "built",
    rolldownOptions: { input: join(import.meta.dirname, mode === "console" ? "console.html" : "index.html") },
    emptyOutDir: true,
    target: "es2023",
    // Inlines nothing, because the content security policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
}));
