/** Builds the portal's browser application into `built`, which is committed. Run it with `npm run portal`. */
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  logLevel: "warn",
  build: {
    outDir: "built",
    emptyOutDir: true,
    target: "es2023",
    // Everything is a file of its own: the content security policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
