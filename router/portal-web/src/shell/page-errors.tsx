/**
 * Catches unexpected errors of pages. The usual reason is that a newer portal has replaced a page's file. A reload mends
 * this.
 */
import { Component, type ReactNode } from "react";
import { Button } from "../elements/button.tsx";
import { TextsContext } from "../messages/messages.ts";

export class PageErrors extends Component<{ readonly children: ReactNode }, { readonly failed: boolean }> {
  static override readonly contextType = TextsContext;
  declare readonly context: React.ContextType<typeof TextsContext>;
  override readonly state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    const { shell } = this.context!.t;
    if (!this.state.failed) return this.props.children;
    return (
      <main className="alone">
        <p>{shell.newVersion}</p>
        <Button kind="primary" onClick={() => location.reload()}>
          {shell.reload}
        </Button>
      </main>
    );
  }
}
