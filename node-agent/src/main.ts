/** `npm run node-agent`. The rest is loaded once it is known that this Node.js can read it. */
import { requireNode } from "@weiche/shared/program/node-version.ts";

requireNode("weiche-node-agent");
await import("./start.ts");
