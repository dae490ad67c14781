export const help = {
  lead: "How programs call the API, what its errors mean and which limits hold.",
  address: {
    title: "Base address",
    lead: "Existing clients of the chat-completions convention work once base address, API key and model name are exchanged. Every request carries the key in the header Authorization: Bearer; a body is JSON with Content-Type: application/json.",
    description: "The API as an OpenAPI document",
  },
  clients: {
    title: "Clients",
    lead: "These programs run as they stand, with the key in the environment.",
    embeddings: "Embeddings with LangChain in Python",
    embeddingsLead:
      "Set check_embedding_ctx_length=False. Without it LangChain sends numbers of another model's tokens instead of your texts, which the API answers with 400.",
  },
  errors: {
    title: "When an answer is an error",
    lead: "Let your program go by the HTTP status and by error.code. The message is for people and may change. Some refusals come before the API and have an HTML page instead of JSON.",
    columns: { status: "Status and code", means: "What it means", todo: "What to do", retry: "Try again" },
    page: "HTML page, no JSON",
    yes: "yes",
    no: "no",
  },
  refusals: {
    invalid_request: {
      means: "The request is not valid; param names the place.",
      todo: "Correct the request: the model's name, a parameter, an image given as a link.",
    },
    context_window_exceeded: {
      means: "Input and max_tokens together do not fit the model's context window. The message names the numbers.",
      todo: "Send less history, or ask for fewer tokens.",
    },
    invalid_api_key: {
      means:
        "The key is missing, wrong, revoked or expired, its user or account is blocked, or the limit of the key or its user is reached.",
      todo: "See the key's state on the page Keys. Raise the limit, or use another key.",
    },
    no_package: { means: "The account has no active package.", todo: "An Owner orders one on the page Package." },
    key_model_access_denied: {
      means: "The key or its user may not call this model. The message lists those it may.",
      todo: "Call one of these, or have the restriction changed.",
    },
    path_not_supported: {
      means: "The API has no such path, or not with this method.",
      todo: "Check the address. Assistants, files, batches, images and audio are not offered.",
    },
    body_too_large: { means: "The request is too large, mostly because of images.", todo: "Send less at once." },
    insufficient_quota: {
      means: "The credits of this billing period are used up. The header x-should-retry is false.",
      todo: "An Owner upgrades the package, which helps at once, or you wait for the next period.",
    },
    rate_limit_exceeded: {
      means: "Too many requests a minute or too many at the same time, over all keys of the account.",
      todo: "Wait as many seconds as the header retry-after says, or until running requests have ended.",
    },
    internal: { means: "Something went wrong here.", todo: "Try again with growing pauses." },
    engine_died: {
      means: "The model's engine ended while it worked on the request.",
      todo: "Try again. If it happens again with the same request, change the request.",
    },
    request_barred: {
      means: "This very request made the engine fail more than once, so it is not carried out for a while.",
      todo: "Change the request. The header x-should-retry is false.",
    },
    address_limit: {
      means: "Too many requests from one network address.",
      todo: "Spread your requests out; see the limits below.",
    },
    model_switching: {
      means: "The server is changing to another model.",
      todo: "Try again after the seconds in retry-after.",
    },
    model_unavailable: {
      means: "The model did not start.",
      todo: "Try again after the seconds in retry-after, or call another model.",
    },
    overloaded: {
      means: "Too many requests wait for the model.",
      todo: "Try again after the seconds in retry-after.",
    },
    no_node_available: { means: "No server for this model is reachable.", todo: "Try again with growing pauses." },
    maintenance: { means: "The model or its server is being maintained.", todo: "Try again later." },
    timeout: {
      means: "The answer did not begin within the time that a request may take.",
      todo: "Stream long answers, or ask for fewer tokens.",
    },
  },
  retries: {
    title: "Trying again",
    rules: {
      backoff: "On 500, 502, 503 and 504: with growing pauses, such as 1, 2, 4 and 8 seconds.",
      after: "On 429 with code rate_limit_exceeded: after the seconds in the header retry-after.",
      never: "Not on 400, 401, 403, 404, 413 and 422, nor on 429 with code insufficient_quota.",
      libraries: "The official openai packages do all of this by themselves.",
      cut: "An answer that ends with finish_reason length and without content used max_tokens up, usually for reasoning: ask for more tokens.",
    },
  },
  limits: {
    title: "Limits",
    address: (burst: string, perSecond: string) =>
      `One network address may send ${burst} requests at once, and ${perSecond} a second in the long run. Beyond that the answer is 503 with an HTML page.`,
    package: "Requests a minute, parallel requests and credits are shared by all keys of the account:",
    context: "The context window, images and dimensions depend on the model:",
    body: (megabytes: string) => `A request has at most ${megabytes} MB.`,
    duration: (seconds: string) => `A request takes at most ${seconds} seconds. Stream long answers.`,
    keys: (count: string) => `A user has at most ${count} active keys.`,
    evaluation:
      "Quotas and limits are compared with usage about once a minute, so single requests can pass beyond them.",
  },
  changes: "Changelog of models and factors",
};
