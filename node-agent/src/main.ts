/**
 * `npm run node-agent`. Checks the version of Node.js before it loads the rest, which an older version cannot parse.
 */
import { requireNode } from "@weiche/shared/program/node-version.ts";

requireNode("weiche-node-agent");
await import("./start.ts");
