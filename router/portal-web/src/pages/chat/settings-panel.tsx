/** The settings of a request: each is checked while it is typed, and an empty one is not sent. */
import { useEffect, useRef, type ReactNode } from "react";
import { Button } from "../../elements/button.tsx";
import { SelectField, TextArea, TextField } from "../../elements/field.tsx";
import { useTexts, type Messages } from "../../messages/messages.ts";
import {
  readSettings,
  settingOf,
  type Fault,
  type ReadSettings,
  type SettingName,
  type TypedSettings,
} from "./chat-settings.ts";
import type { Conversation } from "./conversation.ts";
import type { Model } from "./lane-head.tsx";
import { isRunning } from "./turns.ts";

interface SettingsPanelProps {
  readonly conversation: Conversation;
  readonly models: readonly Model[];
}

const formats = ["text", "json_object", "json_schema"] as const;

export function SettingsPanel({ conversation, models }: SettingsPanelProps) {
  const { t } = useTexts();
  const { settings, store, isFaultShown } = conversation;
  const { parts, faults } = readSettings(settings);
  const refused = refusedSetting(conversation);
  const panel = useRef<HTMLDetailsElement>(null);
  // A faulty setting stopped the message: it must be in sight.
  useEffect(() => {
    if (!isFaultShown || !panel.current) return;
    panel.current.open = true;
    panel.current.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [isFaultShown]);
  const change = (name: SettingName) => (event: { readonly target: { readonly value: string } }) =>
    store.keep({ settings: { ...settings, [name]: event.target.value } as TypedSettings, isFaultShown: false });
  const field = (name: Exclude<SettingName, "format">) => ({
    label: t.chat.settings[name],
    value: settings[name],
    onChange: change(name),
    error: faults[name]
      ? faultText(faults[name], t)
      : refused?.name === name
        ? t.chat.refused(refused.message)
        : undefined,
    autoComplete: "off",
    spellCheck: name === "system",
  });
  const set = namesOfSet(settings, parts, t);
  const without = models.filter(({ tools }) => tools === null).map(({ id }) => id);
  return (
    <details className="chat-settings" ref={panel}>
      <summary>
        {t.chat.settings.title}
        {set.length > 0 && <span className="soft">{`: ${set.join(", ")}`}</span>}
      </summary>
      <div className="form">
        <TextArea {...field("system")} rows={3} maxLength={100_000} />
        <div className="columns">
          <TextField
            {...field("temperature")}
            hint={t.chat.settings.temperatureHint}
            inputMode="decimal"
            maxLength={20}
          />
          <TextField {...field("maxTokens")} hint={t.chat.settings.maxTokensHint} inputMode="numeric" maxLength={20} />
        </div>
        <TextArea {...field("stop")} hint={t.chat.settings.stopHint} rows={1} maxLength={10_000} />
        <TextArea
          {...field("tools")}
          className="code"
          hint={without.length > 0 ? t.chat.settings.noTools(without.join(", ")) : t.chat.settings.toolsHint}
          rows={settings.tools === "" ? 2 : 8}
          maxLength={200_000}
        />
        <Example isShown={settings.tools === ""} onUse={() => change("tools")({ target: { value: toolsExample } })}>
          {t.chat.settings.toolsExample}
        </Example>
        <SelectField label={t.chat.settings.format} value={settings.format} onChange={change("format")}>
          {formats.map((format) => (
            <option key={format} value={format}>
              {t.chat.settings.formats[format]}
            </option>
          ))}
        </SelectField>
        {settings.format === "json_schema" && (
          <>
            <TextArea {...field("schema")} className="code" rows={settings.schema === "" ? 2 : 8} maxLength={200_000} />
            <Example
              isShown={settings.schema === ""}
              onUse={() => change("schema")({ target: { value: schemaExample } })}
            >
              {t.chat.settings.schemaExample}
            </Example>
          </>
        )}
      </div>
    </details>
  );
}

interface ExampleProps {
  readonly isShown: boolean;
  readonly onUse: () => void;
  readonly children: ReactNode;
}

function Example({ isShown, onUse, children }: ExampleProps) {
  if (!isShown) return null;
  return (
    <div className="actions">
      <Button kind="quiet" onClick={onUse}>
        {children}
      </Button>
    </div>
  );
}

/** The setting that the API refused, until another request is sent. */
function refusedSetting({ lanes }: Conversation) {
  for (const { turns } of lanes) {
    const last = turns.at(-1);
    if (last?.kind !== "answer" || isRunning(last) || !last.problem) continue;
    const name = settingOf(last.problem.param);
    if (name) return { name, message: last.problem.message };
  }
  return undefined;
}

function namesOfSet(typed: TypedSettings, parts: ReadSettings["parts"], { chat: { settings } }: Messages): string[] {
  return [
    parts.system !== undefined && settings.system,
    parts.temperature !== undefined && `${settings.temperature} ${typed.temperature}`,
    parts.max_tokens !== undefined && `${settings.maxTokens} ${typed.maxTokens}`,
    parts.stop !== undefined && settings.stop,
    parts.tools !== undefined && settings.tools,
    parts.response_format && settings.formats[parts.response_format.type],
  ].filter((name) => typeof name === "string");
}

function faultText(fault: Fault, { chat: { faults } }: Messages): string {
  switch (fault.kind) {
    case "json":
      return fault.line === undefined ? faults.json : faults.jsonAt(fault.line, fault.column!);
    case "tool":
      return faults.tool(String(fault.position));
    case "stops":
      return faults.stops(String(fault.max));
    case "number":
    case "whole":
    case "tools":
    case "object":
      return faults[fault.kind];
  }
}

const toolsExample = JSON.stringify(
  [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "Get the weather of a city.",
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      },
    },
  ],
  undefined,
  2,
);

const schemaExample = JSON.stringify(
  {
    type: "object",
    properties: { answer: { type: "string" }, confidence: { type: "number" } },
    required: ["answer", "confidence"],
    additionalProperties: false,
  },
  undefined,
  2,
);
