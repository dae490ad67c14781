/** `npm start`. Loads the rest after a check that this Node.js can read it. */
import { requireNode } from "@weiche/shared/program/node-version.ts";

requireNode("weiche");
await import("./demo/start.ts");
