/** What the console's page on capacity says if the fleet cannot be simulated. */
import { expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { SlotState } from "../../src/nodes/node-view.ts";
import type { NodeDetail } from "../../src/nodes/registry.ts";
import { quietNode } from "../surface/console-rig.ts";
import { addBusyMinute, faultsOf, openSignedIn, startVisitedConsole } from "./console-visits.ts";
import { goTo, press } from "./keyboard.ts";

let nodes: readonly NodeDetail[] = [];
const visited = await forThisFile(startVisitedConsole(() => nodes));

function nodeFor(model: string): NodeDetail {
  const node = quietNode("gpu-1");
  const served = asId<ModelId>(model);
  const slot = {
    ...{ name: asId<SlotName>("a"), models: [served], state: SlotState.ACTIVE, activeModel: served, maxConcurrent: 4 },
    ...{ running: 0, runningOfRouter: 0, inFlight: 0, unread: 0, waiting: 0, waiters: [], stateAgeMs: 0 },
  };
  return { ...node, view: { ...node.view, slots: [slot] } };
}

test("the page says what to do if no node is linked, and if no node serves the models of the week [H9]", async () => {
  await addBusyMinute(visited);
  await using tab = await openSignedIn(visited);
  const { page } = tab;
  await goTo(page, "Capacity");
  await press(page, /^Simulate the last week$/);
  await page
    .getByRole("alert")
    .filter({ hasText: "No node with a slot is linked to this router. Start an agent" })
    .waitFor();
  expect(await faultsOf(tab, "the capacity without nodes")).toEqual([]);
  nodes = [nodeFor("other")];
  await press(page, /^Simulate the last week$/);
  await page.getByRole("alert").filter({ hasText: "Give one of these models a slot" }).waitFor();
  expect(await faultsOf(tab, "the capacity without models")).toEqual([]);
  nodes = [nodeFor("small-24b")];
  await press(page, /^Simulate the last week$/);
  await page.getByText(/^Left out, because no linked node serves their models: 900 requests$/).waitFor();
  await page.getByText(/Credits sold for each GPU hour/).waitFor();
});
