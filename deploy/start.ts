/** `npm start`. The rest is loaded once it is known that this Node.js can read it. */
import { requireNode } from "@weiche/shared/node-version.ts";

requireNode("weiche");
await import("./demo/start.ts");
