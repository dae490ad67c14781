import { expect, test } from "vitest";
import { Pool, waitersMax } from "./pool.ts";

const patient = new AbortController().signal;

test("a released item goes to the request that has waited longest", async () => {
  const pool = new Pool(["a"]);
  const first = await pool.acquire(patient);
  const order: string[] = [];
  const second = pool.acquire(patient).then(() => order.push("second"));
  const third = pool.acquire(patient).then(() => order.push("third"));
  expect([pool.lent.size, pool.waiting]).toEqual([1, 2]);
  pool.release(first);
  await second;
  expect(order).toEqual(["second"]);
  pool.release("a");
  await third;
  expect([pool.lent.size, pool.waiting]).toEqual([1, 0]);
});

test("a request that leaves the queue is removed at once", async () => {
  const pool = new Pool(["a"]);
  await pool.acquire(patient);
  const leaver = new AbortController();
  const left = pool.acquire(leaver.signal);
  const next = pool.acquire(patient);
  leaver.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  expect(pool.waiting).toBe(1);
  pool.release("a");
  expect(await next).toBe("a");
});

test("a request that has already left never gets an item", async () => {
  const pool = new Pool(["a"]);
  await expect(pool.acquire(AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
  expect(pool.lent.size).toBe(0);
});

test("the queue is limited", async () => {
  const pool = new Pool(["a"]);
  await pool.acquire(patient);
  const stop = new AbortController();
  const waiting = Array.from({ length: waitersMax }, () => pool.acquire(stop.signal));
  await expect(pool.acquire(patient)).rejects.toMatchObject({ status: 503 });
  stop.abort(new Error("enough"));
  expect(await Promise.allSettled(waiting)).toHaveLength(waitersMax);
  expect(pool.waiting).toBe(0);
});

test("a user may choose, and otherwise gets the item unused for longest", async () => {
  const pool = new Pool(["a", "b", "c"]);
  expect(await pool.acquire(patient, (free) => free.find((item) => item === "b")!)).toBe("b");
  pool.release("b");
  const rest = [await pool.acquire(patient), await pool.acquire(patient), await pool.acquire(patient)];
  expect(rest).toEqual(["a", "c", "b"]);
});
