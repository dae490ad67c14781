/**
 * Shows the progress of a node's drain: running requests, as a share of the most since the drain began.
 */
import { useState } from "react";
import type { ConsoleNode } from "../../../../src/surface/contract/console.ts";
import { useConsoleTexts } from "../texts.ts";

export function DrainProgress({ node: { name, state, slots } }: { readonly node: ConsoleNode }) {
  const { c, format } = useConsoleTexts();
  const [seen, setSeen] = useState(0);
  const running = slots.reduce((sum, slot) => sum + slot.running, 0);
  const most = state === "maintenance" ? Math.max(seen, running) : 0;
  if (most !== seen) setSeen(most);
  if (state !== "maintenance") return null;
  if (running === 0) return <small className="reason">{c.nodes.drained}</small>;
  const text = c.nodes.draining(format.number(running), format.number(most));
  const ages = slots.flatMap(({ oldestRunningSeconds }) => oldestRunningSeconds ?? []);
  return (
    <>
      <progress aria-label={`${name}: ${text}`} max={most} value={most - running} />
      <small className="reason number">
        {text}
        {ages.length > 0 && `, ${c.slots.oldestRunning(format.duration(Math.max(...ages)))}`}
      </small>
    </>
  );
}
