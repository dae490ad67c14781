import { expect, test } from "vitest";
import { checkOut } from "./committed-code.ts";

test("the error for a commit missing in a shallow clone names the command that fetches it", async () => {
  await expect(checkOut("0123456789abcdef")).rejects.toThrow(
    "commit 0123456789abcdef is not in this clone; a shallow one gets it with: git fetch --unshallow",
  );
});
