/** Chooses the model for code examples. Pure. */
interface Listed {
  readonly id: string;
  readonly category: string;
  readonly unusable: string | null;
}

/** Returns a model that this key may chat with, preferably one that is usable now. */
export function exampleModel(models: readonly Listed[], allowed: readonly string[] | null): string | undefined {
  const chats = models.filter(
    ({ id, category, unusable }) =>
      category !== "embeddings" &&
      !["announced", "not-allowed"].includes(unusable ?? "") &&
      (allowed?.includes(id) ?? true),
  );
  return (chats.find(({ unusable }) => unusable === null) ?? chats[0])?.id;
}
