/** An events object of any kind, for tests. Each call is kept in `told` as `[event, ...arguments]`. */
export function toldEvents<Events>() {
  const told: [event: string, ...details: unknown[]][] = [];
  const keep =
    (event: string) =>
    (...details: unknown[]) =>
      void told.push([event, ...details]);
  return { told, events: new Proxy({}, { get: (_, name) => keep(String(name)) }) as Events };
}
