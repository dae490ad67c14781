/** HTML pages for some refusals. They contain no part of the request, so that no client can inject text. */
type PageStatus = 403 | 413 | 503;

/** Reasons for a page. `retry`: the same request may succeed later. */
export const pageRefusals = {
  path_not_supported: { status: 403, retry: false },
  body_too_large: { status: 413, retry: false },
  address_limit: { status: 503, retry: true },
} as const satisfies Record<string, { status: PageStatus; retry: boolean }>;

export type PageRefusalKind = keyof typeof pageRefusals;

const titles: Record<PageStatus, string> = {
  403: "403 Forbidden",
  413: "413 Content Too Large",
  503: "503 Service Temporarily Unavailable",
};

/** Advice to the client. SDKs show the page as the message of their error. */
const advice: Partial<Record<PageStatus, string>> = {
  403:
    "This path or method is not supported. Use /v1/chat/completions instead of /v1/responses; " +
    "there are also /v1/completions, /v1/embeddings and /v1/models.",
};

export function htmlPage(status: PageStatus): string {
  const title = titles[status];
  const body = `<h1>${title}</h1>${advice[status] === undefined ? "" : `<p>${advice[status]}</p>`}`;
  return `<!doctype html>\n<html lang="en">\n<head><title>${title}</title></head>\n<body>${body}</body>\n</html>\n`;
}

/** Refuses a request with a page instead of the API's error body. */
export class PageRefusal extends Error {
  readonly kind: PageRefusalKind;
  readonly status: PageStatus;
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: PageRefusalKind, retryAfterSeconds?: number) {
    const { status } = pageRefusals[kind];
    super(titles[status]);
    this.kind = kind;
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}
