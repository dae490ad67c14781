/** Loaded with `node --import`. Breaks a router on purpose: it writes usage records in the order of arrival, not sorted. */
import { registerHooks } from "node:module";

const sorted = "arrayText(column, sorted, periods)";

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith("/router/src/usage/usage-rows.ts")) return loaded;
    const source = Buffer.from(loaded.source as Uint8Array).toString();
    if (source.split(sorted).length !== 2)
      throw new Error(`usage-rows.ts does not contain this exactly once: ${sorted}`);
    return { ...loaded, source: source.replace(sorted, "arrayText(column, records, periods)") };
  },
});
