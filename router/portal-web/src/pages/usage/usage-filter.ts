/** To which model, key and user the usage page restricts itself, as its address says. Pure. */
const idPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface UsageFilter {
  readonly model?: string;
  readonly keyId?: string;
  readonly userId?: string;
}

/** Ids that are none are left out: an address can say anything. */
export function usageFilter(get: (name: string) => string | undefined): UsageFilter {
  const [model, key, user] = ["model", "key", "user"].map(get);
  return {
    ...(model && model.length <= 200 ? { model } : {}),
    ...(key && idPattern.test(key) ? { keyId: key } : {}),
    ...(user && idPattern.test(user) ? { userId: user } : {}),
  };
}
