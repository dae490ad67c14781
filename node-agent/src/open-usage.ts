/** Opens the usage outbox and the delivery of its records to the routers. */
import { join } from "node:path";
import type { Core } from "./core.ts";
import { createUsageEvents } from "./metrics/link-events.ts";
import { UsageDelivery } from "./outbox/delivery.ts";
import { openOutboxDirectory } from "./outbox/outbox-disk.ts";
import { openOutbox, outboxLimits } from "./outbox/outbox.ts";
import { UnsettledAnswers } from "./outbox/unsettled-answers.ts";

export type OpenedUsage = Awaited<ReturnType<typeof openUsage>>;

export async function openUsage({ config, clock, log, metrics, opened }: Core) {
  const events = createUsageEvents(log, metrics);
  const directory = await openOutboxDirectory(join(config.stateDir, "outbox"));
  const outbox = opened.use(
    await openOutbox(directory, clock, events, { ...outboxLimits, keepMs: config.usageKeepMs }),
  );
  const unsettled = opened.use(new UnsettledAnswers({ clock, append: (record) => outbox.append(record), events }));
  const delivery = opened.use(new UsageDelivery(outbox, clock, events));
  return { outbox, unsettled, delivery };
}
