/** The service's models in deploy/catalogue.yaml and its packages equal the service's tables. */
import { expect, test } from "vitest";
import { asId, type ModelId } from "@weiche/shared/ids.ts";
import { servicePackages } from "@weiche/shared/packages.ts";
import { catalogue } from "../api/api-harness.ts";

/** Category, context window, factor in thousandths, images, reasoning. */
test.each<[model: string, category: string, contextTokens: number, factor: bigint, images: number, reasoning: string]>([
  ["small-24b", "language", 32_768, 2_000n, 0, "unavailable"],
  ["general-3.8-27b", "language", 32_768, 1_500n, 0, "default-on"],
  ["general-4-31b", "language", 32_768, 1_500n, 4, "optional"],
  ["coder-next", "coding", 32_768, 1_000n, 0, "unavailable"],
  ["vl-embedding-2b", "embeddings", 8_192, 250n, 0, "unavailable"],
])("the model %s is as in the service's table [S2.1]", (model, category, contextTokens, factor, images, reasoning) => {
  const entry = catalogue.get(asId<ModelId>(model))!;
  expect(entry).toMatchObject({ category, status: "Beta", contextTokens, reasoning: { mode: reasoning } });
  expect([entry.factors.at(-1)!.factor, entry.images?.max ?? 0]).toEqual([factor, images]);
});

test("general-3.8-27b reasons with xhigh by default [S7.8]", () => {
  expect(catalogue.get(asId<ModelId>("general-3.8-27b"))!.reasoning).toMatchObject({ default: "xhigh" });
});

test("general-4-31b accepts any reasoning effort [S7.9]", () => {
  expect(catalogue.get(asId<ModelId>("general-4-31b"))!.reasoning.efforts).toEqual([]);
});

test("there are five models; one makes embeddings of 64 to 2048 dimensions, 2048 by default [S2.1]", () => {
  expect(catalogue.size).toBe(5);
  const { embeddings } = catalogue.get(asId<ModelId>("vl-embedding-2b"))!;
  expect(embeddings).toMatchObject({ dimensions: { min: 64, max: 2_048, default: 2_048 }, inputTokens: 8_192 });
  expect(embeddings!.instruction!.default).toBe("Represent the user's input.");
});

/** Euros, millions of credits, requests per minute, parallel requests, e-mail support. */
test.each<[name: string, number, bigint, number, number, boolean]>([
  ["Starter", 7, 5n, 30, 5, false],
  ["Pro", 35, 80n, 60, 10, true],
  ["Business", 129, 320n, 150, 20, true],
  ["Business Plus", 249, 650n, 150, 20, true],
])(
  "the package %s is as in the service's table [S16.1]",
  (name, euros, millions, requestsPerMinute, parallelRequests, emailSupport) => {
    const { trial, versions } = servicePackages.find((one) => one.name === name)!;
    expect(trial).toBe(name === "Starter");
    expect(versions).toMatchObject([
      {
        ...{ priceCents: euros * 100, creditsPerMonth: millions * 1_000_000n },
        ...{ requestsPerMinute, parallelRequests, emailSupport, trialDays: 30 },
      },
    ]);
  },
);
