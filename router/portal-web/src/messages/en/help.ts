export const help = {
  lead: "How programs call the API, what its errors mean and which limits hold.",
  address: {
    title: "Base address",
    lead: "Existing clients of the chat-completions convention work once base address, API key and model name are exchanged. Every request carries the key in the header Authorization: Bearer; a body is JSON with Content-Type: application/json.",
    description: "The API as an OpenAPI document",
  },
  reference: {
    link: "For API clients: errors, limits and the portal's API in detail",
    lead: "What a program can meet when it calls the API, in detail.",
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
      means:
        "Input and max_tokens together do not fit the model's context window. The message names the numbers; the type is ContextWindowExceededError.",
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
    account: (users: string, changes: string) =>
      `An account has at most ${users} users. A person may make ${changes} changes at once, and one a second after that.`,
    retry:
      "`retry-after` is at most 60 seconds for limits of the account. Whoever must wait longer gets 60 seconds again: two retries of an official client cover two minutes.",
    evaluation:
      "Quotas and limits are compared with usage about once a minute, so single requests can pass beyond them.",
  },
  streaming: {
    title: "Streaming",
    rules: {
      events:
        'Each event is a line that begins with `data: ` and holds a chunk; the end is `data: [DONE]`. `stream_options: {"include_usage": true}` adds a last chunk with the counts of tokens and empty `choices`.',
      broken:
        "A stream that breaks off ends with an event whose data is an `error` object, and without `[DONE]`: take an answer without `[DONE]` for incomplete.",
      wait: "While a request waits for its model nothing is sent, so that a refusal can still be a status. The first byte can take as long as a switch of models: let the client wait for it, up to the longest request.",
      place: "A stream holds its place among the parallel requests of the account until its last chunk.",
      leave: "Close the connection to end an answer that nobody needs: the engine stops.",
    },
  },
  costs: {
    title: "What a request costs",
    rules: {
      tokens:
        "The tokens of input and output, times the model's factor at the time of the request. Embeddings cost their input alone. A stream costs the same as an answer in one piece.",
      failed:
        "An answer that fails on our side (`500`, `503`, a stream that we break) costs nothing. A stream costs what was sent if the engine cannot continue it because of what the model wrote. An answer in one piece that fails costs nothing.",
      left: "An answer that the client leaves costs its input and what was generated by then. What the engine had not counted is estimated, and the usage page shows how much.",
      twice:
        "A request that is sent twice is answered twice, and costs twice if both are answered: there is no idempotency key.",
      moved:
        "The service itself sends a request to a second server only if the first one was lost or full before the first byte. At most one of them costs anything.",
    },
  },
  schemas: {
    title: "What a JSON Schema may cost",
    lead: "An engine makes a grammar of the schemas of a request, those of its tools included, and tries its vocabulary against it for each token. A schema that would hold up the streams of others is refused with 400 and the path of the place in `param`; nothing else of the schema is quoted, except the tool's name. The bounds hold for all schemas of a request together, except that ways to go on are counted place by place. Every model takes what is within both columns.",
    columns: {
      what: "What is counted",
      others: "llama-server and others",
      vllm: "vLLM",
    },
    rows: {
      size: "size when everything is written out: about 100 for a property, its own length for a value of an `enum`, ten for each time that a character, an item (`maxItems`) or a part of a pattern may be repeated; with vLLM 30 for a part of a pattern, 2,000 for a number with bounds and for a `format`",
      repetition:
        "count of a repetition in the `pattern` of an answer, or of a tool that must be called (`a{2,128}`); vLLM fails above it. Where it counts characters, `maxLength` does the same",
      choices:
        "ways to go on at one place of the answer: two for each property that need not be there, one for each alternative of a union, for each value of an `enum` as far as it begins differently",
      ways: "ways in which a `pattern` can match one text of 64 characters. `^(a+)+$` and `^(-|--)*$` have no bound and are refused; an address of mail has 65",
      tools: "tools",
      levels: "levels, references followed",
      name: "characters of a property's name",
    },
    bySize: "by its size",
    rules: {
      within:
        "Within these are 128 tools with 20 properties each, 5,000 required properties, 1,000 words in the `enum` of an answer, and trees by `$ref`.",
      beyond:
        "Not within them, with llama-server and the embedded engine: an object with more than 21 properties that are not in `required` (name them there and let them be null), and with llama-server an `enum` of more than 48 values in a tool.",
      light:
        "A tool that the model need not call (`tool_choice` is `auto`) may go beyond them. The model sees its whole schema, but arguments are held only to the type of what costs too much. Such a tool has at most 64 properties with llama-server and 500 with other engines, and no reference leads into a `oneOf` that costs too much. A refusal names the tool.",
      union:
        'A union that contains itself needs a first required property that tells its objects apart (`"kind": {"const": "…"}`).',
      reference: "A schema contains itself by a plain `$ref`, not by one within `allOf`.",
    },
  },
  changes: "Changelog of models and factors",
};
