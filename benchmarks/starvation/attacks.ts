/** The table of attacks. `npm test` runs each for seconds, `npm run nightly` for longer and with the limits on gaps, `npm run bench` reports the gaps. */
import type { Attack } from "./attack.ts";
import { heavyBodies } from "./heavy-bodies.ts";
import { manyAnswers } from "./many-answers.ts";
import { manyConnections } from "./many-connections.ts";
import { neverReading } from "./never-reading.ts";
import { pipelining } from "./pipelining.ts";
import { reconnecting } from "./reconnecting.ts";
import { signIns } from "./sign-ins.ts";
import { slowReading } from "./slow-reading.ts";
import { trickling } from "./trickling.ts";
import { unsentBodies } from "./unsent-bodies.ts";

export const attacks: readonly Attack[] = [
  pipelining,
  reconnecting,
  manyConnections,
  trickling,
  unsentBodies,
  signIns,
  heavyBodies,
  manyAnswers,
  neverReading,
  slowReading,
];
