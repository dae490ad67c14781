/** HTML pages for refusals in front of the API. They repeat nothing of the request. */
export type PageStatus = 403 | 413 | 503;

/** Why a client gets a page, and whether the same request may succeed later. */
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

export function htmlPage(status: PageStatus): string {
  const title = titles[status];
  return `<!doctype html>\n<html lang="en">\n<head><title>${title}</title></head>\n<body><h1>${title}</h1></body>\n</html>\n`;
}

/** Thrown where a request is refused with a page instead of the API's error body. */
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
