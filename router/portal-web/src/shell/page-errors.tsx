/**
 * Catches unexpected errors of pages. The usual reasons are that a newer portal has replaced a page's file, which a reload
 * mends, and that the file cannot be fetched because the portal does not answer.
 */
import { Component, type ReactNode } from "react";
import { Button } from "../elements/button.tsx";
import { TextsContext } from "../messages/messages.ts";

interface State {
  readonly failed: boolean;
  /** Whether the portal answers. Undefined until it is known. */
  readonly isReachable?: boolean;
}

export class PageErrors extends Component<{ readonly children: ReactNode }, State> {
  static override readonly contextType = TextsContext;
  declare readonly context: React.ContextType<typeof TextsContext>;
  override readonly state: State = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override componentDidCatch() {
    void this.#look();
  }

  /** A reload without a network would leave the portal for the browser's own error page. */
  async #look(): Promise<boolean> {
    const isReachable = await fetch("/favicon.svg", { cache: "no-store" }).then(
      () => true,
      () => false,
    );
    this.setState({ isReachable });
    return isReachable;
  }

  override render() {
    const { shell, problems } = this.context!.t;
    const { failed, isReachable } = this.state;
    if (!failed) return this.props.children;
    if (isReachable === undefined) return null;
    const reload = async () => {
      if (await this.#look()) location.reload();
    };
    return (
      <main className="alone">
        <p role="alert">{isReachable ? shell.newVersion : problems.unreachable}</p>
        <Button kind="primary" onClick={() => void reload()}>
          {isReachable ? shell.reload : shell.retry}
        </Button>
      </main>
    );
  }
}
