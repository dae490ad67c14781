/** The chat page: a conversation with a model, as an application would have it. */
import { useEffect, useRef, useState } from "react";
import type { Answer } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { Button, ButtonLink } from "../../elements/button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { Empty } from "../../elements/empty.tsx";
import { useListState } from "../../elements/list-state.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { Snippet } from "../../elements/snippet/snippet.tsx";
import { useTexts, type Messages } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";
import { Composer } from "./composer.tsx";
import { useConversation } from "./conversation.ts";
import { TurnView } from "./turn.tsx";

type Model = Answer<"listModels">["items"][number];

export default function ChatPage() {
  const { t } = useTexts();
  const read = useRead("listModels", {});
  return (
    <Page title={t.shell.pages.chat} lead={t.chat.lead}>
      <Loaded read={read}>
        {({ items }) => {
          const models = items.filter(({ category, unusable }) => category !== "embeddings" && unusable === null);
          return models.length > 0 ? (
            <Chat models={models} />
          ) : (
            <Empty title={t.chat.noModel} hint={t.chat.noModelHint}>
              <ButtonLink to="/models">{t.shell.pages.models}</ButtonLink>
            </Empty>
          );
        }}
      </Loaded>
    </Page>
  );
}

function Chat({ models }: { readonly models: readonly Model[] }) {
  const { t } = useTexts();
  const { apiUrl, user } = useSession();
  const list = useListState();
  const conversation = useConversation(user.id);
  const { turns, isRunning, settings, asked, keep } = conversation;
  const wanted = list.get("model") ?? settings?.model;
  const model = models.find(({ id }) => id === wanted) ?? models[0]!;
  const [showsCode, setShowsCode] = useState(false);
  const efforts = effortsOf(model);
  const reasoningEffort = efforts.find((one) => one === settings?.reasoningEffort);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (turns.length > 0) end.current?.scrollIntoView({ block: "end" });
  }, [turns]);
  return (
    <div className="chat">
      <div className="filters">
        <select
          aria-label={t.chat.model}
          value={model.id}
          disabled={isRunning}
          onChange={({ target }) => {
            list.set({ model: target.value });
            keep({ settings: { ...settings, model: target.value } });
          }}
        >
          {models.map(({ id }) => (
            <option key={id}>{id}</option>
          ))}
        </select>
        {efforts.length > 0 && (
          <select
            aria-label={t.chat.reasoning}
            value={reasoningEffort ?? ""}
            onChange={({ target }) =>
              keep({ settings: { model: model.id, ...(target.value && { reasoningEffort: target.value }) } })
            }
          >
            {["", ...efforts].map((level) => (
              <option key={level} value={level}>
                {`${t.chat.reasoning}: ${level === "" ? t.chat.reasoningDefault(defaultOf(model, t)) : levelText(level, t)}`}
              </option>
            ))}
          </select>
        )}
        <div className="actions push">
          {asked && <Button onClick={() => setShowsCode(true)}>{t.chat.code}</Button>}
          {turns.length > 0 && <Button onClick={conversation.clear}>{t.chat.clear}</Button>}
        </div>
      </div>
      <ol className="turns" aria-label={t.chat.conversation} aria-live="polite" aria-busy={isRunning}>
        {turns.map((turn, index) => (
          // Turns are only added at the end.
          // oxlint-disable-next-line react/no-array-index-key
          <TurnView key={index} turn={turn} />
        ))}
      </ol>
      <Composer
        isRunning={isRunning}
        text={conversation.draft}
        onType={(draft) => keep({ draft })}
        onStop={conversation.stop}
        onSend={(text) => conversation.send(text, { model: model.id, ...(reasoningEffort && { reasoningEffort }) })}
      />
      <div ref={end} />
      {showsCode && asked && (
        <Dialog title={t.chat.codeTitle} wide onClose={() => setShowsCode(false)}>
          <Snippet apiUrl={apiUrl} model={asked.model} request={asked} />
          <div className="actions end">
            <Button onClick={() => setShowsCode(false)}>{t.shell.close}</Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

/** Returns the effort levels to choose from: none without reasoning, the usual ones if the model accepts any. */
function effortsOf({ reasoning }: Model): readonly string[] {
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
