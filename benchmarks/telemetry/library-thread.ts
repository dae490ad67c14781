/** A thread that reads how the machine does by the library alone, as often as an agent reads it. */
import { readEveryMs } from "@weiche/node-agent/src/host/machine-telemetry.ts";
import { readWithLibrary } from "./library-readings.ts";

setInterval(() => void readWithLibrary(), readEveryMs);
await readWithLibrary();
