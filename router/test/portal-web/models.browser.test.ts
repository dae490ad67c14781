/**
 * Tests the page Models in a real browser: each status, the present and future price of a model, and its present state.
 */
import { beforeAll, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { parseCatalogue } from "@weiche/shared/catalogue.ts";
import { asId } from "@weiche/shared/ids.ts";
import { stringify } from "yaml";
import { SlotState } from "../../src/nodes/node-view.ts";
import { startPortal, type Person } from "../surface/portal-rig.ts";
import { axeFindings, openTab, startBrowser } from "./browser.ts";
import { busyNodes } from "./busy-nodes.ts";

const model = (id: string, status: string, ...factors: readonly object[]) => ({
  ...{ id, status, category: "language", contextTokens: 32_768 },
  factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 2 }, ...factors],
});
const { catalogue } = parseCatalogue(
  stringify({
    models: [
      model("steady", "Verfügbar"),
      model("small-24b", "Auslaufend"),
      model("coder-next", "Beta", { validFrom: "2099-12-04T00:00:00+01:00", factor: 1.5 }),
      model("tomorrow", "Demnächst"),
    ],
  }),
);
/** A slot on which `steady` is active and the next one is on its way; the rest are as in `busyNodes`. */
const [busy] = busyNodes;
const switching = {
  ...busy!.slots[0]!,
  ...{ models: [asId("steady"), asId("small-24b")], activeModel: asId("steady"), nextModel: asId("small-24b") },
  state: SlotState.DRAINING_OPEN,
} as const;
const nodes = [{ ...busy!, slots: [switching, { ...busy!.slots[1]!, activeModel: asId("vl-embedding-2b") }] }];

let cleo: Person;

const browser = await forThisFile(startBrowser());
const portal = await forThisFile(
  startPortal({ parts: () => ({ catalogue: () => catalogue!, nodes: () => nodes as never }) }),
);
beforeAll(async () => {
  cleo = await portal.newUser(await portal.newAccount("ACME GmbH", { package: "Pro" }), "member");
});

test.each([
  [
    "en",
    [/^steady.* available 2 .*active Try it/, /^small-24b.* being retired 2 .*being activated Try it/],
    [
      /^coder-next.* Beta 2 ?1.5 from 4 Dec 2099 .*wakes on the first request Try it/,
      /^tomorrow.* announced .*not usable yet$/,
    ],
  ],
  [
    "de",
    [/^steady.* Verfügbar 2 .*aktiv Ausprobieren/, /^small-24b.* Auslaufend 2 .*wird aktiviert Ausprobieren/],
    [
      /^coder-next.* Beta 2 ?1,5 ab 04.12.2099 .*erwacht bei der ersten Anfrage Ausprobieren/,
      /^tomorrow.* Demnächst .*noch nicht nutzbar$/,
    ],
  ],
] as const)(
  "in %s, the page shows each model's status, factors and state, and announced models cannot be tried [H7]",
  async (...of) => {
    const [language, used, others] = of;
    await using tab = await openTab(browser, portal.origin, { cookie: cleo.cookie, language });
    const { page } = tab;
    await page.goto("/models");
    await page.getByRole("row").nth(4).waitFor();
    const rows = await page.getByRole("row").all();
    const texts = await Promise.all(
      rows.map(async (row) =>
        (await row.getByRole("cell").allTextContents())
          .map((cell) => cell.trim())
          .join(" ")
          .trim(),
      ),
    );
    for (const [index, wanted] of [...used, ...others].entries()) expect(texts[index + 1]).toMatch(wanted);
    expect(await axeFindings(page)).toEqual([]);
    tab.check();
  },
);
