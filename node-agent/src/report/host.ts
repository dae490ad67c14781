/** What the host measures of itself. What cannot be read is absent, never 0. */
import { currentLoad, mem } from "systeminformation";

export interface HostReading {
  /** 0 to 1, over all cores, since the reading before. */
  readonly cpuUse?: number;
  readonly memoryTotalBytes?: number;
  /** What programs could still get, caches included. */
  readonly memoryAvailableBytes?: number;
}

export async function readHost(): Promise<HostReading> {
  const [load, memory] = await Promise.all([currentLoad().catch(() => undefined), mem().catch(() => undefined)]);
  return {
    cpuUse: load && Number.isFinite(load.currentLoad) ? load.currentLoad / 100 : undefined,
    memoryTotalBytes: memory?.total || undefined,
    memoryAvailableBytes: memory?.available || undefined,
  };
}
