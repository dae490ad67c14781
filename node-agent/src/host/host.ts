/** CPU and memory of the host. Unknown values are absent, not 0. */
import { cpus, freemem, totalmem } from "node:os";

export interface HostReading {
  /** Share of CPU time in use since the previous reading, over all cores, 0 to 1. */
  readonly cpuUse?: number;
  readonly memoryTotalBytes?: number;
  /** Memory that is still available to programs, including caches. */
  readonly memoryAvailableBytes?: number;
}

export class HostReader {
  #before = { busy: 0, all: 0 };

  read(): HostReading {
    const now = cpuTimes();
    const { busy, all } = this.#before;
    this.#before = now;
    return {
      cpuUse: now.all > all ? (now.busy - busy) / (now.all - all) : undefined,
      memoryTotalBytes: totalmem(),
      memoryAvailableBytes: freemem(),
    };
  }
}

/** Returns CPU milliseconds since the host started, over all cores. */
function cpuTimes() {
  const times = { busy: 0, all: 0 };
  for (const { times: of } of cpus()) {
    const busy = of.user + of.nice + of.sys + of.irq;
    times.busy += busy;
    times.all += busy + of.idle;
  }
  return times;
}
