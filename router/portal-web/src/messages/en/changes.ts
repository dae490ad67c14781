export const changes = {
  lead: "What changes about models and their factors. Each request is billed with the factor that holds at its time.",
  ahead: "announced",
  empty: "No change yet",
  emptyHint: "New models, models that are retired and new factors are announced here.",
};
