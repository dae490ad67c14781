/** The model of a conversation, its reasoning, and its last request as code. */
import type { Answer } from "../../api/client.ts";
import { Button } from "../../elements/button.tsx";
import { useTexts, type Messages } from "../../messages/messages.ts";
import type { ChatBody } from "./chat-settings.ts";
import type { Lane } from "./turns.ts";

export type Model = Answer<"listModels">["items"][number];

interface LaneHeadProps {
  readonly at: number;
  readonly lane: Lane;
  readonly models: readonly Model[];
  readonly model: Model;
  readonly isRunning: boolean;
  readonly onChange: (change: Pick<Lane, "model" | "effort">) => void;
  readonly onCode: (body: ChatBody) => void;
}

export function LaneHead({ at, lane, models, model, isRunning, onChange, onCode }: LaneHeadProps) {
  const { t } = useTexts();
  const efforts = effortsOf(model);
  const { asked } = lane;
  return (
    <div className="filters">
      <select
        aria-label={at === 0 ? t.chat.model : t.chat.secondModel}
        value={model.id}
        disabled={isRunning}
        onChange={({ target }) => onChange({ model: target.value })}
      >
        {models.map(({ id }) => (
          <option key={id}>{id}</option>
        ))}
      </select>
      {efforts.length > 0 && (
        <select
          aria-label={at === 0 ? t.chat.reasoning : t.chat.secondReasoning}
          value={lane.effort ?? ""}
          onChange={({ target }) => onChange({ model: model.id, effort: target.value || undefined })}
        >
          {["", ...efforts].map((level) => (
            <option key={level} value={level}>
              {`${t.chat.reasoning}: ${level === "" ? t.chat.reasoningDefault(defaultOf(model, t)) : levelText(level, t)}`}
            </option>
          ))}
        </select>
      )}
      {asked && (
        <Button className="push" onClick={() => onCode(asked)}>
          {t.chat.code}
        </Button>
      )}
    </div>
  );
}

/** Returns the effort levels to choose from: none without reasoning, the usual ones if the model accepts any. */
export function effortsOf({ reasoning }: Model): readonly string[] {
  if (reasoning.mode === "unavailable") return [];
  return reasoning.efforts.length > 0 ? reasoning.efforts : ["none", "low", "medium", "high"];
}

function levelText(level: string, { chat }: Messages): string {
  const levels: Readonly<Record<string, string>> = chat.levels;
  return levels[level] ?? level;
}

function defaultOf({ reasoning }: Model, t: Messages): string {
  if (reasoning.mode === "optional") return t.chat.off;
  return reasoning.default ? levelText(reasoning.default, t) : t.chat.on;
}
