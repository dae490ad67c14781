/**
 * The table of attacks. The tests run each for seconds. `npm run nightly` runs each longer and checks the gaps
 * between tokens of good streams. `npm run bench` reports these gaps.
 */
import type { Attack } from "./attack.ts";
import { failingEngine } from "./failing-engine.ts";
import { garbageFromNode } from "./garbage-node.ts";
import { hastyHandshakes } from "./hasty-node.ts";
import { heavyBodies } from "./heavy-bodies.ts";
import { manyAnswers } from "./many-answers.ts";
import { manyConnections } from "./many-connections.ts";
import { neverReading } from "./never-reading.ts";
import { oddHeaders } from "./odd-headers.ts";
import { pipelining } from "./pipelining.ts";
import { reconnecting } from "./reconnecting.ts";
import { shortChunks } from "./short-chunks.ts";
import { signIns } from "./sign-ins.ts";
import { slowExports } from "./slow-exports.ts";
import { slowReading } from "./slow-reading.ts";
import { strangers } from "./strangers.ts";
import { trickling } from "./trickling.ts";
import { unsentBodies } from "./unsent-bodies.ts";

export const attacks: readonly Attack[] = [
  pipelining,
  reconnecting,
  manyConnections,
  trickling,
  unsentBodies,
  shortChunks,
  signIns,
  heavyBodies,
  manyAnswers,
  neverReading,
  slowReading,
  slowExports,
  oddHeaders,
  strangers,
  garbageFromNode,
  hastyHandshakes,
  failingEngine,
];
