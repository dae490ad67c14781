/** The catalogue of the operator's file, which may be read again while the router runs. */
import { mayHost, rulesOf, type Catalogue, type ModelRules } from "@weiche/shared/catalogue.ts";
import type { ServiceChange } from "@weiche/shared/changelog.ts";
import type { ModelId, NodeId } from "@weiche/shared/ids.ts";
import { loadCatalogue, type CatalogueFile } from "./config.ts";

export class LiveCatalogue {
  readonly #file: string;
  readonly #listeners: (() => void)[] = [];
  #current: CatalogueFile;

  /** Throws a `StartError` with the mistakes if the file is wrong. */
  constructor(file: string) {
    this.#file = file;
    this.#current = loadCatalogue(file);
  }

  /** As it is now. */
  readonly get = (): Catalogue => this.#current.catalogue;

  /** What customers are told of it, the youngest first. */
  readonly changes = (): readonly ServiceChange[] => this.#current.changes;

  readonly models = (): readonly ModelId[] => [...this.get().keys()];

  /** What an agent must know of these models; those that are not in the catalogue are left out. */
  readonly rulesOf = (models: readonly ModelId[]): readonly ModelRules[] =>
    models.flatMap((model) => this.get().get(model) ?? []).map(rulesOf);

  /** Whether a node that says that it hosts the model is believed. */
  readonly mayHost = (node: NodeId, model: ModelId): boolean => mayHost(this.get(), node, model);

  onReload(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Throws a `StartError` with the mistakes if the file is wrong; the catalogue of before stays then. */
  readonly reload = (): void => {
    this.#current = loadCatalogue(this.#file);
    for (const listener of this.#listeners) listener();
  };
}
