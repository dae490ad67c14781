import { expect, test } from "vitest";
import fc from "fast-check";
import { RunningRequests } from "./running-requests.ts";
import type { Running, Ticket } from "./slot-state.ts";

interface Version {
  readonly value: RunningRequests;
  readonly model: ReadonlyMap<Ticket, Running>;
}

const step = fc.record({ of: fc.nat(), ticket: fc.nat(5), adds: fc.boolean() });

test("is a value: every version stays what it was, whichever of them another is made of", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const versions: Version[] = [{ value: RunningRequests.none(), model: new Map() }];
      for (const [sinceMs, { of, ticket, adds }] of steps.entries()) {
        const { value, model } = versions[of % versions.length]!;
        const request = { routerId: "r", places: 1 + (sinceMs % 3), sinceMs };
        const after = new Map(model);
        if (adds) after.set(ticket, request);
        else after.delete(ticket);
        versions.push({ value: adds ? value.with(ticket, request) : value.without(ticket), model: after });
        expect(isSame(versions[of % versions.length]!)).toBe(true);
      }
      expect(versions.every(isSame)).toBe(true);
      expect(versions.toReversed().every(isSame)).toBe(true);
    }),
  );
});

function isSame({ value, model }: Version): boolean {
  const tickets = [...value.tickets()];
  const times = (values: Iterable<Running>) => [...values].map(({ sinceMs }) => sinceMs).toSorted((a, b) => a - b);
  return (
    value.size === model.size &&
    value.places === model.values().reduce((sum, { places }) => sum + places, 0) &&
    tickets.length === model.size &&
    tickets.every((ticket) => value.has(ticket) && model.has(ticket)) &&
    String(times(value.values())) === String(times(model.values()))
  );
}
