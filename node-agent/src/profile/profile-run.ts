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
  | { readonly state: "stopped"; readonly model: ModelId; readonly known: Partial<EngineProfile> }
  | { readonly state: "failed"; readonly model: ModelId; readonly error: string };

/** What a measurement reports while it goes on. */
export interface ProfileEvents {
  readonly onProgress: (done: number, of: number, what: string) => void;
  /** Gets everything that has been measured so far. */
  readonly onKnown: (known: Partial<EngineProfile>) => void;
}

type Work = (model: ModelId, signal: EndController, events: ProfileEvents) => Promise<EngineProfile>;

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
    let known: Partial<EngineProfile> = {};
    const events: ProfileEvents = {
      onProgress: (done, of, what) => void (this.#state = { state: "running", model, done, of, what }),
      onKnown: (now) => void (known = now),
    };
    void this.#work(model, controller, events).then(
      (profile) => void (this.#state = { state: "done", model, profile }),
      (error: unknown) => {
        const failed = { state: "failed", model, error: (error as Error).message } as const;
        this.#state = controller.aborted ? { state: "stopped", model, known } : failed;
      },
    );
    return true;
  }

  /** Ends the running requests. The state becomes `stopped`. */
  stop(): void {
    this.#controller?.abort(new Error("the profile was stopped"));
  }
}
