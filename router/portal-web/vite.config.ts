/**
 * Builds the browser applications, which are committed: the portal's into `built`, with `--mode console` the operators'
 * console into `built-console`. Run it with `npm run portal`. `npm run portal:dev` serves the sources, and passes calls on
 * to a running router.
 */
import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** docs/api.md, the source of the portal's page for API clients. */
const apiPage: Plugin = {
  name: "api-page",
  resolveId: (id) => (id === "virtual:api-page" ? `${join(import.meta.dirname, "../../docs/api.md")}?raw` : null),
};

/** Serves the console's document at each page's path. */
const consoleDocument: Plugin = {
  name: "console-document",
  configureServer({ middlewares }) {
    middlewares.use((request, _response, next) => {
      if (request.headers.accept?.includes("text/html")) request.url = "/console.html";
      next();
    });
  },
};

/** The listener of the running router. The router admits changes only if it sees the host of their page. */
function routerOf(mode: string): string {
  const { WEICHE_PORTAL_LISTEN = "127.0.0.1:8081", WEICHE_CONSOLE_LISTEN = "127.0.0.1:8082" } = process.env;
  return `http://${mode === "console" ? WEICHE_CONSOLE_LISTEN : WEICHE_PORTAL_LISTEN}`;
}

export default defineConfig(({ mode }) => ({
  root: import.meta.dirname,
  plugins: [react(), apiPage, ...(mode === "console" ? [consoleDocument] : [])],
  server: { proxy: { "^/(api/|openapi.json)": { target: routerOf(mode), changeOrigin: false } } },
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
