/** Starts `npm run router`. Checks the Node.js version first, because an older one cannot load the other modules. */
import { requireNode } from "@weiche/shared/program/node-version.ts";

requireNode("weiche-router");
await import("./start.ts");
