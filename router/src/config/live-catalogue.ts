/** The catalogue of the operator's file, which may be read again while the router runs. */
import { mayHost, rulesOf, type Catalogue, type ModelRules } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { loadCatalogue, type CatalogueFile } from "./config.ts";

export class LiveCatalogue {
  /** When the current catalogue was read. Wall time in ms. */
  readAtMs: number;
  /** False: the file was read again, and was wrong. */
  isNewest = true;
  readonly #file: string;
  readonly #clock: Clock;
  readonly #listeners: (() => void)[] = [];
  #take: (file: CatalogueFile) => Promise<void> = () => Promise.resolve();
  #current: CatalogueFile;

  /** Throws a `StartError` with the mistakes if the file is wrong. */
  constructor(file: string, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
    this.readAtMs = clock.now();
    this.#current = loadCatalogue(file);
  }

  readonly get = (): Catalogue => this.#current.catalogue;

  /** The catalogue's changelog for customers, newest first. */
  readonly changes = (): readonly ServiceChange[] => this.#current.changes;

  readonly models = (): readonly ModelId[] => [...this.get().keys()];

  /** The rules of models for an agent. Models that are not in the catalogue are left out. */
  readonly rulesOf = (models: readonly ModelId[]): readonly ModelRules[] =>
    models.flatMap((model) => this.get().get(model) ?? []).map(rulesOf);

  /** Whether a node that says that it hosts the model is believed. */
  readonly mayHost = (node: NodeId, model: ModelId): boolean => mayHost(this.get(), node, model);

  /** `take`: called with the current file, and with each later one before it is taken over. Throws what it throws. */
  async onRead(take: (file: CatalogueFile) => Promise<void>): Promise<void> {
    this.#take = take;
    await this.#taken(this.#current);
  }

  onReload(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Throws a `StartError` with the mistakes if the file is wrong; the current catalogue stays then. */
  readonly reload = async (): Promise<void> => {
    this.isNewest = false;
    const read = loadCatalogue(this.#file);
    await this.#taken(read);
    this.#current = read;
    this.isNewest = true;
    this.readAtMs = this.#clock.now();
    for (const listener of this.#listeners) listener();
  };

  async #taken(read: CatalogueFile): Promise<void> {
    await this.#take(read).catch((error: unknown) => {
      throw error instanceof StartError ? new StartError(`${this.#file}: ${error.message}`) : error;
    });
  }
}
