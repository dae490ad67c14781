/** Opens the usage outbox, and its delivery to the routers. */
import { join } from "node:path";
import type { Core } from "./core.ts";
import { createUsageEvents } from "./link-events.ts";
import { UsageDelivery } from "./outbox/delivery.ts";
import { openOutboxDirectory } from "./outbox/outbox-disk.ts";
import { openOutbox, type Outbox } from "./outbox/outbox.ts";
import { UnsettledAnswers } from "./outbox/unsettled-answers.ts";

export interface UsageParts {
  readonly outbox: Outbox;
  readonly unsettled: UnsettledAnswers;
  readonly delivery: UsageDelivery;
}

export async function openUsage({ config, clock, log, metrics, opened }: Core): Promise<UsageParts> {
  const events = createUsageEvents(log, metrics);
  const directory = await openOutboxDirectory(join(config.stateDir, "outbox"));
  const outbox = opened.use(await openOutbox(directory, clock, events));
  const append: Outbox["append"] = (record) => outbox.append(record);
  const unsettled = opened.use(new UnsettledAnswers({ clock, append, events }));
  const delivery = opened.use(new UsageDelivery(outbox, clock, events));
  return { outbox, unsettled, delivery };
}
