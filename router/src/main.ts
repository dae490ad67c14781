/** `npm run router`. The rest is loaded once it is known that this Node.js can read it. */
import { requireNode } from "@weiche/shared/program/node-version.ts";

requireNode("weiche-router");
await import("./start.ts");
