/** Asks for the model to prewarm, and lists the affected requests. */
import { useState } from "react";
import { SelectField } from "../../elements/field.tsx";
import { FormDialog } from "../../elements/form.tsx";
import { useToast } from "../../elements/toast/toast.tsx";
import { useChange } from "../api.ts";
import { useConsoleTexts } from "../texts.ts";
import { TouchedRequests } from "../touched-requests.tsx";
import type { Lane } from "./lanes.ts";

export function PrewarmDialog({
  lane: { node, slot },
  onClose,
}: {
  readonly lane: Lane;
  readonly onClose: () => void;
}) {
  const { t, c, format } = useConsoleTexts();
  const { prewarmDialog: texts } = c.slots;
  const say = useToast();
  const change = useChange("prewarm");
  const others = slot.models.filter((model) => !slot.activeModels.includes(model));
  const [model, setModel] = useState(others[0] ?? "");
  const ask = () =>
    change.mutate(
      { body: { model, node: node.name } },
      {
        onSuccess({ state }) {
          say(texts[state](model, node.name));
          onClose();
        },
      },
    );
  return (
    <FormDialog
      title={texts.title(c.slots.name(node.name, slot.name))}
      submit={texts.confirm}
      change={change}
      onSubmit={ask}
      onClose={onClose}
    >
      <SelectField label={texts.model} value={model} onChange={({ target }) => setModel(target.value)} autoFocus>
        {others.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </SelectField>
      <ul className="touched">
        <li>
          {slot.running === 0 && slot.waiting === 0
            ? texts.idle
            : texts.busy(format.number(slot.running), slot.active ?? t.shell.unknown)}
        </li>
        {slot.waiting > 0 && <li>{texts.waits(format.number(slot.waiting))}</li>}
        {slot.active !== undefined && <li>{texts.after(slot.active)}</li>}
        <li>{texts.elsewhere}</li>
      </ul>
      <TouchedRequests node={node.name} slot={slot.name} />
    </FormDialog>
  );
}
