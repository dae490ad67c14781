/** The table of attacks. `npm test` runs each for seconds, `npm run nightly` for longer and with the limits on gaps. */
import type { Attack } from "./attack.ts";
import { heavyBodies } from "./heavy-bodies.ts";
import { pipelining } from "./pipelining.ts";
import { reconnecting } from "./reconnecting.ts";
import { signIns } from "./sign-ins.ts";

export const attacks: readonly Attack[] = [pipelining, reconnecting, signIns, heavyBodies];
