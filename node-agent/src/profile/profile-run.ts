/** The profile that an operator asked for: one at a time, with its progress and its result. */
import type { ModelId } from "@weiche/shared/ids.ts";
import { EndController } from "@weiche/shared/time/end-signal.ts";
import type { EngineProfile } from "./profile-file.ts";

/** What is measured, how it went on, and what came out of it. */
export type ProfileState =
  | { readonly state: "none" }
  | {
      readonly state: "running";
      readonly model: ModelId;
      readonly done: number;
      readonly of: number;
      readonly what: string;
    }
  | { readonly state: "done"; readonly model: ModelId; readonly profile: EngineProfile }
  | { readonly state: "failed"; readonly model: ModelId; readonly error: string };

type Work = (
  model: ModelId,
  signal: EndController,
  onProgress: (done: number, of: number, what: string) => void,
) => Promise<EngineProfile>;

export class ProfileRun {
  #state: ProfileState = { state: "none" };
  #controller: EndController | undefined;
  readonly #work: Work;

  constructor(work: Work) {
    this.#work = work;
  }

  get state(): ProfileState {
    return this.#state;
  }

  /** Returns false if another profile is running. */
  begin(model: ModelId): boolean {
    if (this.#state.state === "running") return false;
    const controller = new EndController();
    this.#controller = controller;
    this.#state = { state: "running", model, done: 0, of: 1, what: "start" };
    const onProgress = (done: number, of: number, what: string) =>
      void (this.#state = { state: "running", model, done, of, what });
    void this.#work(model, controller, onProgress).then(
      (profile) => void (this.#state = { state: "done", model, profile }),
      (error: unknown) => void (this.#state = { state: "failed", model, error: (error as Error).message }),
    );
    return true;
  }

  /** Ends the running requests. The state becomes `failed`. */
  stop(): void {
    this.#controller?.abort(new Error("the profile was stopped"));
  }
}
