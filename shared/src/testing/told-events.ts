/** Makes an events object of any kind. It records each call in `told` as `[event, ...arguments]`. */
export function toldEvents<Events>() {
  const told: [event: string, ...details: unknown[]][] = [];
  const keep =
    (event: string) =>
    (...details: unknown[]) =>
      void told.push([event, ...details]);
  return { told, events: new Proxy({}, { get: (_, name) => keep(String(name)) }) as Events };
}
