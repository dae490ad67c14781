/**
 * Loads the descriptors for gRPC reflection from files that buf wrote, because proto-loader's descriptors are broken.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ReflectionService } from "@grpc/reflection";
import { readLinkDescriptors } from "./node-link-codec.ts";

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

/** Returns a package definition. `ReflectionService` reads only the descriptors in it. */
export function describeServices(): PackageDefinition {
  const health = readFileSync(join(import.meta.dirname, "health.binpb"));
  const fileDescriptorProtos = [readLinkDescriptors(), health].flatMap(splitDescriptorSet);
  return { all: { format: "", type: {}, fileDescriptorProtos } } as unknown as PackageDefinition;
}

/** Reads a `FileDescriptorSet`: field 1, length-delimited, once per file. */
function splitDescriptorSet(set: Buffer): Buffer[] {
  const files: Buffer[] = [];
  for (let at = 0; at < set.length;) {
    at++; // the tag
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = set[at++]!;
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    files.push(set.subarray(at, at + length));
    at += length;
  }
  return files;
}
