/** The page of slots: a lane for each slot, with its present state and its last hour. */
import { useState } from "react";
import { Empty } from "../../elements/empty.tsx";
import { Page } from "../../elements/page.tsx";
import { LiveItems } from "../live-mark.tsx";
import { useClock, useLive } from "../live.ts";
import { useConsoleTexts } from "../texts.ts";
import { PrewarmDialog } from "./prewarm-dialog.tsx";
import { lanesOf } from "./lanes.ts";
import { SlotLane } from "./slot-lane.tsx";

export default function SlotsPage() {
  const { c, format } = useConsoleTexts();
  const live = useLive("slots");
  const nowMs = useClock();
  const [wanted, setWanted] = useState<string>();
  const lanes = lanesOf(live.items);
  const failed = lanes.filter(({ slot }) => slot.state === "failed").length;
  const calm = lanes.filter(({ slot }) => ["active", "empty", "failed"].includes(slot.state)).length;
  const count = format.number(lanes.length);
  const { lead } = c.slots;
  const answer =
    lanes.length === 0
      ? lead.none
      : failed > 0
        ? lead.failed(format.number(failed), count)
        : calm < lanes.length
          ? lead.switching(format.number(lanes.length - calm), count)
          : lead.calm(count);
  const chosen = lanes.find(({ key }) => key === wanted);
  return (
    <Page title={c.pages.slots} lead={live.items && answer}>
      <LiveItems live={live}>
        {() =>
          lanes.length === 0 ? (
            <Empty title={lead.none} hint={c.nodes.emptyHint} />
          ) : (
            lanes.map((lane) => (
              <SlotLane key={lane.key} lane={lane} nowMs={nowMs} onPrewarm={() => setWanted(lane.key)} />
            ))
          )
        }
      </LiveItems>
      {chosen && <PrewarmDialog lane={chosen} onClose={() => setWanted(undefined)} />}
    </Page>
  );
}
