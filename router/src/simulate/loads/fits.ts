/**
 * Parameters of loads like those of public traces, fitted to their lengths and bursts. The traces are not part of this
 * project: Azure's of 2023 (AzurePublicDataset, CC-BY 4.0) and Mooncake's of FAST'25 (Apache-2.0).
 */
import type { Mixture } from "./draws.ts";

export interface Fit {
  readonly accounts: number;
  /** The coefficient of variation of the gaps between requests of one account. */
  readonly gapCv: number;
  readonly input: Mixture;
  readonly output: Mixture;
  /** The share of requests that continue a conversation of their account, if one is short enough. */
  readonly continuedShare: number;
}

export const fitNames = ["azure-chat", "azure-code", "mooncake-chat"] as const;

export const fits: Readonly<Record<(typeof fitNames)[number], Fit>> = {
  "azure-chat": {
    ...{ accounts: 30, gapCv: 1.5, continuedShare: 0 },
    input: {
      parts: [
        [0.041, 90, 1.35],
        [0.368, 334, 0.35],
        [0.412, 1_092, 0.1],
        [0.103, 2_500, 0.3],
        [0.076, 4_086, 0.03],
      ],
      max: 14_050,
    },
    output: {
      parts: [
        [0.138, 68, 0.96],
        [0.536, 100, 0.41],
        [0.054, 507, 0.14],
        [0.272, 404, 0.05],
      ],
      max: 1_000,
    },
  },
  "azure-code": {
    ...{ accounts: 2, gapCv: 13, continuedShare: 0 },
    input: {
      parts: [
        [0.315, 253, 1.29],
        [0.634, 1_941, 0.64],
        [0.051, 7_398, 0.03],
      ],
      max: 7_437,
    },
    output: {
      parts: [
        [0.184, 7, 0.16],
        [0.514, 13, 0.35],
        [0.302, 42, 0.93],
      ],
      max: 1_899,
    },
  },
  "mooncake-chat": {
    ...{ accounts: 100, gapCv: 2, continuedShare: 0.8 },
    input: {
      parts: [
        [0.099, 909, 0.03],
        [0.112, 1_363, 0.23],
        [0.499, 6_769, 0.75],
        [0.29, 18_631, 0.83],
      ],
      max: 126_195,
    },
    output: {
      parts: [
        [0.252, 34, 1.52],
        [0.315, 322, 0.62],
        [0.433, 432, 0.26],
      ],
      max: 2_000,
    },
  },
};
