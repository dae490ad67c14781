/** Makes a release's bill of materials: CycloneDX 1.6 in JSON. */
import type { Arch } from "./lock-file.ts";
import { insideBinaries, thirdParties } from "./third-party.ts";

/**
 * Returns the bill. It has no serial number, so that the same release has the same text. `made`: the commit's instant.
 */
export function billOfMaterials(version: string, made: Date, arch: Arch): string {
  const own = {
    type: "application",
    "bom-ref": `weiche@${version}`,
    name: "weiche",
    version,
    licenses: spdx("Apache-2.0"),
  };
  const ofArch = thirdParties().filter(({ arches }) => arches.includes(arch));
  const packages = ofArch.map((one) => ({
    type: "library",
    "bom-ref": purlOf(one.name, one.version),
    name: one.name,
    version: one.version,
    licenses: spdx(one.license),
    purl: purlOf(one.name, one.version),
    hashes: [{ alg: "SHA-512", content: Buffer.from(one.integrity.replace(/^sha512-/, ""), "base64").toString("hex") }],
    properties: one.parts.map((value) => ({ name: "weiche:part", value })),
  }));
  const binaries = insideBinaries().map((one) => ({
    type: "library",
    "bom-ref": `${one.name}@${one.version}`,
    name: one.name,
    version: one.version,
    licenses: spdx(one.license),
    externalReferences: [{ type: "website", url: one.source }],
    properties: [{ name: "weiche:brought-by", value: one.package }],
  }));
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { timestamp: made.toISOString(), component: own },
    components: [...packages, ...binaries],
    dependencies: [{ ref: own["bom-ref"], dependsOn: [...packages, ...binaries].map((one) => one["bom-ref"]) }],
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

function purlOf(name: string, version: string): string {
  return `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;
}

function spdx(expression: string): readonly object[] {
  if (/[( ]/.test(expression)) return [{ expression: expression.replaceAll(" and ", " AND ") }];
  return [{ license: expression.startsWith("LicenseRef-") ? { name: expression } : { id: expression } }];
}
