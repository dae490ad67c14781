/** Shows the time of a page's data, and whether it is live. */
import type { ConsolePage } from "../../../src/surface/contract/console.ts";
import { Skeleton } from "../elements/loaded.tsx";
import type { Live, LiveItem } from "./live.ts";
import { useConsoleTexts } from "./texts.ts";

function LiveMark({ live: { state, asOf } }: { readonly live: Live<ConsolePage> }) {
  const { c, format } = useConsoleTexts();
  const time = asOf && format.second(asOf);
  if (!time) return <p className="live-mark soft">{c.live.connecting}</p>;
  // Not an alert, because it changes every second, and a screen reader would read every change.
  if (state === "live")
    return (
      <p className="live-mark soft number">
        <i aria-hidden="true" /> {c.live.live(time)}
      </p>
    );
  return (
    <p className="problem" role="alert">
      {state === "failed" ? c.live.failed(time) : c.live.stale(time)}
    </p>
  );
}

interface LiveItemsProps<Page extends ConsolePage> {
  readonly live: Live<Page>;
  readonly children: (items: ReadonlyMap<string, LiveItem<Page>>) => React.ReactNode;
}

/** Shows the items once the first have arrived. */
export function LiveItems<Page extends ConsolePage>({ live, children }: LiveItemsProps<Page>) {
  return (
    <>
      <LiveMark live={live} />
      {live.items ? children(live.items) : <Skeleton />}
    </>
  );
}
