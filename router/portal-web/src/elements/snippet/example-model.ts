/** The model that examples of code call. Pure. */
interface Listed {
  readonly id: string;
  readonly category: string;
  readonly unusable: string | null;
}

/** A model that answers a chat of this key; one that can be used now, if there is any. */
export function exampleModel(models: readonly Listed[], allowed: readonly string[] | null): string | undefined {
  const chats = models.filter(
    ({ id, category, unusable }) =>
      category !== "embeddings" &&
      !["announced", "not-allowed"].includes(unusable ?? "") &&
      (allowed?.includes(id) ?? true),
  );
  return (chats.find(({ unusable }) => unusable === null) ?? chats[0])?.id;
}
