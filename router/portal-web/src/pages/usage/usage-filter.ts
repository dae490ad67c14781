/** Reads the model, key and user of the usage page from its address. Pure. */
const idPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

interface UsageFilter {
  readonly model?: string;
  readonly keyId?: string;
  readonly userId?: string;
}

/** Ignores malformed ids, because an address may contain any text. */
export function usageFilter(get: (name: string) => string | undefined): UsageFilter {
  const [model, key, user] = ["model", "key", "user"].map(get);
  return {
    ...(model && model.length <= 200 ? { model } : {}),
    ...(key && idPattern.test(key) ? { keyId: key } : {}),
    ...(user && idPattern.test(user) ? { userId: user } : {}),
  };
}
