/** Asks before a node is drained, and lists the affected requests. */
import type { ConsoleNode } from "../../../../src/surface/contract/console.ts";
import { FormDialog } from "../../elements/form.tsx";
import { useChange } from "../api.ts";
import { useConsoleTexts } from "../texts.ts";
import { TouchedRequests } from "../touched-requests.tsx";

interface DrainDialogProps {
  readonly node: ConsoleNode;
  readonly nodes: readonly ConsoleNode[];
  readonly onClose: () => void;
}

export function DrainDialog({ node, nodes, onClose }: DrainDialogProps) {
  const { t, c, format } = useConsoleTexts();
  const { drainDialog: texts } = c.nodes;
  const change = useChange("setMaintenance");
  const lost = modelsOnlyOf(node, nodes);
  const touched = node.slots.flatMap(({ name: slot, activeModels, running, waitingByModel }) => [
    ...(running > 0 ? [texts.runs(format.number(running), activeModels.join(", ") || t.shell.unknown, slot)] : []),
    ...Object.entries(waitingByModel).map(([model, waiting]) => texts.waits(format.number(waiting), model, slot)),
  ]);
  return (
    <FormDialog
      title={texts.title(node.name)}
      submit={texts.confirm}
      kind="danger"
      change={change}
      onSubmit={() => change.mutate({ body: { node: node.name, on: true } }, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>{texts.lead}</p>
      {touched.length === 0 ? (
        <p>{texts.nothing}</p>
      ) : (
        <ul className="touched">
          {touched.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      <TouchedRequests node={node.name} />
      {lost.length > 0 && <p className="problem">{texts.onlyHere(format.list(lost))}</p>}
    </FormDialog>
  );
}

/** Returns the models that no other live node has. */
function modelsOnlyOf(node: ConsoleNode, nodes: readonly ConsoleNode[]): readonly string[] {
  const others = nodes.filter(({ name, state }) => name !== node.name && state === "live");
  const elsewhere = new Set(others.flatMap(({ slots }) => slots.flatMap(({ models }) => models)));
  return [...new Set(node.slots.flatMap(({ models }) => models))].filter((model) => !elsewhere.has(model));
}
