/** Example programs for the API, and LangChain's setting for embeddings. */
import { useRead } from "../../api/queries.ts";
import { CopyButton } from "../../elements/copy-button.tsx";
import { Loaded } from "../../elements/loaded.tsx";
import { exampleModel } from "../../elements/snippet/example-model.ts";
import { Snippet } from "../../elements/snippet/snippet.tsx";
import { embeddingsSnippet } from "../../elements/snippet/snippet-code.ts";
import { useHelp } from "../../messages/help.ts";
import { useTexts } from "../../messages/messages.ts";
import { useSession } from "../../session/session.ts";

export function ClientsCard() {
  const { t } = useTexts();
  const help = useHelp();
  const { apiUrl } = useSession();
  const models = useRead("listModels", {});
  return (
    <section className="card stack" aria-labelledby="clients">
      <h2 id="clients">{help.clients.title}</h2>
      <p className="prose">{help.clients.lead}</p>
      <Loaded read={models}>
        {({ items }) => {
          const model = exampleModel(items, null);
          const embeddings = items.find(({ category, unusable }) => category === "embeddings" && unusable === null);
          return (
            <>
              {model === undefined ? <p>{t.start.noModel}</p> : <Snippet apiUrl={apiUrl} model={model} />}
              {embeddings && <Embeddings apiUrl={apiUrl} model={embeddings.id} />}
            </>
          );
        }}
      </Loaded>
    </section>
  );
}

function Embeddings({ apiUrl, model }: { readonly apiUrl: string; readonly model: string }) {
  const { t } = useTexts();
  const help = useHelp();
  const { install, code } = embeddingsSnippet({ apiUrl, model });
  return (
    <>
      <h3>{help.clients.embeddings}</h3>
      <p className="prose">{help.clients.embeddingsLead}</p>
      <div className="snippet">
        <div className="snippet-head">
          <span className="tab">Python</span>
          <CopyButton text={code} shownIn="embeddings-code" />
        </div>
        <div className="snippet-code">
          {/* It scrolls sideways, which the keyboard needs a focus for. */}
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
          <pre id="embeddings-code" tabIndex={0}>
            {code}
          </pre>
          <p className="hint">
            <code>{t.start.install(install!)}</code>
          </p>
        </div>
      </div>
    </>
  );
}
