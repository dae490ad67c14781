/** Keeps what a person works on in this tab until it is closed. Another person who signs in here gets nothing of it. */
const prefix = "weiche.tab.";

/** Whether the person signed out. What pages keep as they close is not kept then. */
let isOver = false;

export function keptInTab<T>(userId: string, name: string) {
  const key = `${prefix}${userId}.${name}`;
  return {
    read(): T | undefined {
      try {
        return JSON.parse(sessionStorage.getItem(key) ?? "null") ?? undefined;
      } catch {
        return undefined;
      }
    },
    /** Returns false if the browser has no room for it. Then nothing is kept. */
    write(value: T): boolean {
      if (isOver) return true;
      try {
        sessionStorage.setItem(key, JSON.stringify(value));
        return true;
      } catch {
        sessionStorage.removeItem(key);
        return false;
      }
    },
  };
}

/** Forgets what others than this person have kept. */
export function forgetOthers(userId: string): void {
  const own = `${prefix}${userId}.`;
  for (const key of Object.keys(sessionStorage))
    if (key.startsWith(prefix) && !key.startsWith(own)) sessionStorage.removeItem(key);
}

/** Forgets everything, because the person signs out. */
export function forgetAll(): void {
  isOver = true;
  forgetOthers("");
}
