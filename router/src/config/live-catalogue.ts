/** The catalogue of the operator's file. It can be read again while the router runs. */
import { mayHost, rulesOf, type Catalogue, type ModelRules } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { loadCatalogue, type CatalogueFile } from "./config.ts";

export class LiveCatalogue {
  /** When the current catalogue was read, as wall time in ms. */
  readAtMs: number;
  /** False if the file was read again and had mistakes. */
  isNewest = true;
  readonly #file: string;
  readonly #clock: Clock;
  readonly #listeners: (() => void)[] = [];
  #take: (file: CatalogueFile) => Promise<void> = () => Promise.resolve();
  #current: CatalogueFile;

  /** Throws a `StartError` with the mistakes of the file. */
  constructor(file: string, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
    this.readAtMs = clock.now();
    this.#current = loadCatalogue(file);
  }

  readonly get = (): Catalogue => this.#current.catalogue;

  /** The digest of the file's content. */
  readonly digest = (): string => this.#current.digest;

  /** The catalogue's changelog for customers, newest first. */
  readonly changes = (): readonly ServiceChange[] => this.#current.changes;

  readonly models = (): readonly ModelId[] => [...this.get().keys()];

  /** Returns the rules of models for an agent, without models that are not in the catalogue. */
  readonly rulesOf = (models: readonly ModelId[]): readonly ModelRules[] =>
    models.flatMap((model) => this.get().get(model) ?? []).map(rulesOf);

  /** Returns whether the catalogue allows the node to host the model. */
  readonly mayHost = (node: NodeId, model: ModelId): boolean => mayHost(this.get(), node, model);

  /** Calls `take` with the current file now, and with each later file before it becomes current. Throws its errors. */
  async onRead(take: (file: CatalogueFile) => Promise<void>): Promise<void> {
    this.#take = take;
    await this.#taken(this.#current);
  }

  onReload(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Reads the file again. If it has mistakes, throws a `StartError` with them and keeps the current catalogue. */
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
