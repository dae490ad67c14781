export const notices = {
  lead: (unread: string) => `${unread} unread.`,
  leadNone: "You have read everything.",
  readAll: "Mark all as read",
  read: "Mark as read",
  unread: "unread",
  empty: "No notices yet",
  emptyHint: "Here you learn of limits that are reached, keys that expire and models that change.",
  named: (name: string) => `“${name}”`,
  quota: (percent: string, until: string) => `${percent} of your credits are used; they renew on ${until}.`,
  usedUp: (until: string) => `Your credits are used up; calls get 429 until ${until}.`,
  ownUsedUp: (until: string) => `You have used all of your own limit; your calls get 401 until ${until}.`,
  askOwner: "Ask an Owner of your account to upgrade.",
  askAdmin: "Ask an Admin or Owner of your account to raise it.",
  keyLimit: (key: string, limit: string, until: string) =>
    `Key ${key} has used its ${limit} credits; its calls get 401 until ${until}.`,
  userLimit: (user: string, limit: string, until: string) =>
    `${user} has used all ${limit} credits; their calls get 401 until ${until}.`,
  keyExpiring: (key: string, at: string) => `Key ${key} works until ${at}; after that its calls get 401.`,
  trialEnding: (at: string) =>
    `Your trial ends on ${at}. Unless you have cancelled, the package is charged from then on.`,
  packageEnding: (name: string, at: string) => `${name} is cancelled and ends on ${at}; after that calls get 403.`,
  actions: {
    upgrade: "Upgrade",
    raise: "Raise the limit",
    regenerate: "Regenerate",
    package: "Package",
    changes: "Changes",
  },
  terms: (name: string, at: string, terms: string) => `${name} from ${at}: ${terms}. Running periods stay as they are.`,
  termsStay: (name: string, at: string, terms: string) =>
    `${name} stays as it is: ${terms}. What was announced for ${at} does not come.`,
  termsText: (price: string, credits: string, perMinute: string, parallel: string, hasSupport: boolean) =>
    `${price} net a month, ${credits} credits, ${perMinute} requests per minute, ${parallel} in parallel, ${hasSupport ? "with" : "without"} e-mail support`,
  modelNew: (model: string, status: string) => `Model ${model} is there: ${status}.`,
  modelGone: (model: string) => `Model ${model} is gone.`,
  modelStatus: (model: string, from: string, to: string) => `Model ${model} changed from ${from} to ${to}.`,
  factor: (model: string, from: string, to: string) => `Credit factor of ${model} changed from ${from} to ${to}.`,
  factorComing: (model: string, factor: string, at: string) => `Credit factor of ${model} becomes ${factor} on ${at}.`,
  factorStays: (model: string, factor: string) =>
    `Credit factor of ${model} stays at ${factor}: the announced change does not come.`,
};
