/** Shows code that calls the API, in a programming language that the reader chooses. The choice is remembered. */
import { Tabs } from "@base-ui/react/tabs";
import { useId, useState } from "react";
import { useTexts } from "../../messages/messages.ts";
import { CopyButton } from "../copy-button.tsx";
import { snippetKinds, snippetOf, type SnippetKind, type SnippetRequest } from "./snippet-code.ts";

interface SnippetProps {
  readonly apiUrl: string;
  readonly model: string;
  /** The request in the code. Defaults to an example. */
  readonly request?: SnippetRequest;
  /** A new key, to be set by the code itself. */
  readonly apiKey?: string;
}

export function Snippet(props: SnippetProps) {
  const { t } = useTexts();
  const id = useId();
  const kinds = snippetKinds.filter((one) => props.request === undefined || showsRequest(one));
  const [kind, setKind] = useState<SnippetKind>(() => kinds.find((one) => one === readKind()) ?? "curl");
  const { install, code } = snippetOf(kind, props);
  return (
    <Tabs.Root
      className="snippet"
      value={kind}
      onValueChange={(value: SnippetKind) => {
        localStorage.setItem("weiche.snippet", value);
        setKind(value);
      }}
    >
      <div className="snippet-head">
        <Tabs.List className="tabs" aria-label={t.start.kindsLabel}>
          {kinds.map((one) => (
            <Tabs.Tab key={one} value={one} className="tab">
              {t.start.kinds[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <CopyButton text={code} shownIn={id} />
      </div>
      <Tabs.Panel value={kind} className="snippet-code">
        {/* It scrolls sideways. To scroll with the keyboard, it must have the focus. */}
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
        <pre id={id} tabIndex={0}>
          {code}
        </pre>
        {kind === "settings" && <p className="hint">{t.start.settingsHint}</p>}
        {install && (
          <p className="hint">
            <code>{t.start.install(install)}</code>
          </p>
        )}
      </Tabs.Panel>
    </Tabs.Root>
  );
}

/** Settings have no request, and LangChain has words of its own for parameters. */
function showsRequest(kind: SnippetKind): boolean {
  return kind !== "settings" && kind !== "langchain";
}

function readKind(): SnippetKind {
  const kind = localStorage.getItem("weiche.snippet");
  return snippetKinds.find((one) => one === kind) ?? "curl";
}
