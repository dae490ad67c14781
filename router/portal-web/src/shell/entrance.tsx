/** The frame of the pages before sign-in. */
import type { ReactNode } from "react";
import { Mark } from "../elements/icons.tsx";
import { Page } from "../elements/page.tsx";
import { PreferenceSwitches } from "./preference-switches.tsx";

export function Entrance({ title, lead, children }: { title: string; lead?: ReactNode; children?: ReactNode }) {
  return (
    <div className="entrance">
      <main className="card">
        <p className="brand">
          <Mark /> Weiche
        </p>
        <Page title={title} lead={lead}>
          {children}
        </Page>
      </main>
      <footer>
        <PreferenceSwitches />
      </footer>
    </div>
  );
}
