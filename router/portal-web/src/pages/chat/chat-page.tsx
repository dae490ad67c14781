/** The playground: requests to models, with every parameter that an application could send. */
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import { Button, ButtonLink } from "../../elements/button.tsx";
import { Dialog } from "../../elements/dialog.tsx";
import { Empty } from "../../elements/empty.tsx";
import { useListState } from "../../elements/list-state.ts";
import { Loaded } from "../../elements/loaded.tsx";
import { Page } from "../../elements/page.tsx";
import { Snippet } from "../../elements/snippet/snippet.tsx";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";
import { Composer } from "./composer.tsx";
import { useConversation } from "./conversation.ts";
import { effortsOf, LaneHead, type Model } from "./lane-head.tsx";
import { LaneTurns } from "./lane-turns.tsx";
import { SettingsPanel } from "./settings-panel.tsx";
import type { ChatBody } from "./chat-settings.ts";
import "../../styles/chat.css";

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
  const { user } = useSession();
  const list = useListState();
  const conversation = useConversation(user.id);
  const { lanes, isRunning, store } = conversation;
  const [code, setCode] = useState<ChatBody>();
  /** A link may name the first model. A kept model may have gone. */
  const chosen = lanes.map((lane, at) => {
    const wanted = (at === 0 ? list.get("model") : undefined) ?? lane.model;
    const model = models.find(({ id }) => id === wanted) ?? models[0]!;
    const effort = effortsOf(model).find((one) => one === lane.effort);
    return { ...lane, model: model.id, effort, facts: model };
  });
  const hasTurns = lanes.some(({ turns }) => turns.length > 0);
  const other = models.find(({ id }) => id !== chosen[0]!.model);
  return (
    <div className="chat">
      <div className="chat-actions actions">
        {lanes.length === 1
          ? other && (
              <Button onClick={() => store.compare(other.id)} disabled={isRunning}>
                {t.chat.compare}
              </Button>
            )
          : null}
        {lanes.length > 1 && <Button onClick={store.endComparison}>{t.chat.endComparison}</Button>}
        {hasTurns && <Button onClick={store.clear}>{t.chat.clear}</Button>}
      </div>
      <SettingsPanel conversation={conversation} models={chosen.map(({ facts }) => facts)} />
      <div className={lanes.length > 1 ? "lanes two" : "lanes"}>
        {chosen.map(({ facts, ...lane }, at) => (
          // A lane has no identity besides its place.
          // oxlint-disable-next-line react/no-array-index-key
          <section
            key={at}
            className="chat-lane"
            aria-label={at === 0 ? t.chat.conversation : t.chat.secondConversation}
          >
            <LaneHead
              at={at}
              lane={lane}
              models={models}
              model={facts}
              isRunning={isRunning}
              onChange={(change) => {
                if (at === 0 && change.model) list.set({ model: change.model });
                store.setLane(at, change);
              }}
              onCode={setCode}
            />
            <LaneTurns at={at} lane={lane} store={store} isRunning={isRunning} />
          </section>
        ))}
      </div>
      <Composer
        conversation={conversation}
        models={chosen.map(({ facts }) => facts)}
        chosen={chosen.map(({ facts: _facts, ...lane }) => lane)}
      />
      {code && <CodeDialog body={code} onClose={() => setCode(undefined)} />}
    </div>
  );
}

function CodeDialog({ body, onClose }: { readonly body: ChatBody; readonly onClose: () => void }) {
  const { t } = useTexts();
  const { apiUrl } = useSession();
  return (
    <Dialog title={t.chat.codeTitle} wide onClose={onClose}>
      <p className="soft">{t.chat.codeLead}</p>
      <Snippet apiUrl={apiUrl} model={body.model} request={body} />
      <div className="actions end">
        <Button onClick={onClose}>{t.shell.close}</Button>
      </div>
    </Dialog>
  );
}
