import { expect, test } from "vitest";
import { loadConsoleTexts } from "../texts.ts";
import { nodesLead } from "./nodes-lead.ts";

const [en, de] = [await loadConsoleTexts("en"), await loadConsoleTexts("de")];
const live = { state: "live", troubles: [] } as const;
const resting = { state: "maintenance", troubles: [] } as const;
const gone = { state: "gone", troubles: ["gone"] } as const;

test("nodes in maintenance are not among the well ones", () => {
  expect(nodesLead([live, live], en)).toBe("All nodes are well: 2.");
  expect(nodesLead([live, resting], en)).toBe("In maintenance: 1 of 2.");
  expect(nodesLead([resting], de)).toBe("In Wartung: 1 von 1. Kein Knoten nimmt Anfragen an.");
  expect(nodesLead([gone, resting, live], en)).toBe("Nodes that need somebody: 1 of 3. In maintenance: 1 of 3.");
  expect(nodesLead([], en)).toBe("No node has linked to this router yet.");
});
