/** The known failures of a slot's engines, with their last output lines, until an operator acknowledges them. */
import { Button } from "../../elements/button.tsx";
import { ProblemBox } from "../../elements/problem-box.tsx";
import { useToast } from "../../elements/toast/toast.tsx";
import { useChange } from "../api.ts";
import { useConsoleTexts } from "../texts.ts";
import type { Lane } from "./lanes.ts";

interface SlotFailuresProps {
  readonly lane: Lane;
  readonly name: string;
  readonly nowMs: number;
}

export function SlotFailures({ lane: { node, slot, atMs }, name, nowMs }: SlotFailuresProps) {
  const { c, format } = useConsoleTexts();
  const say = useToast();
  const change = useChange("acknowledgeFailures");
  if (slot.failures.length === 0) return null;
  const since = Math.max(0, (nowMs - atMs) / 1000);
  const acknowledge = () =>
    change.mutate({ body: { node: node.name } }, { onSuccess: () => say(c.slots.acknowledged(node.name)) });
  return (
    <div className="failures">
      <ul>
        {slot.failures.map(({ model, kind, reason, lines, seconds }) => (
          <li key={model ?? ""}>
            <strong>{c.slots.failures[kind](model, format.duration(Math.floor(seconds + since)))}</strong> {reason}
            {lines.length > 0 && (
              <details>
                <summary>{c.slots.output}</summary>
                <pre>{lines.join("\n")}</pre>
              </details>
            )}
          </li>
        ))}
      </ul>
      <Button busy={change.isPending} onClick={acknowledge} aria-label={`${c.slots.acknowledge} ${name}`}>
        {c.slots.acknowledge}
      </Button>
      {change.error && <ProblemBox problem={change.error} />}
    </div>
  );
}
