/**
 * Reduces a line of a serving engine's output to known words. Engines quote requests in their errors (llama-server
 * prints each schema that it refuses, and its grammar), so no line is kept unchanged.
 */

/** Words that explain why an engine fails. If one occurs in a quoted request, nothing else of the request is kept. */
const words = [
  ...["ArithmeticError", "AssertionError", "AttributeError", "BrokenPipeError", "ConnectionError", "EngineDeadError"],
  ...["FileNotFoundError", "ImportError", "IndexError", "KeyError", "KeyboardInterrupt", "MemoryError", "OSError"],
  ...["ModuleNotFoundError", "NotImplementedError", "OutOfMemoryError", "PermissionError", "RuntimeError"],
  ...[
    "SystemExit",
    "TimeoutError",
    "TypeError",
    "UnicodeDecodeError",
    "ValueError",
    "AcceleratorError",
    "DistBackendError",
  ],
  ...["Traceback (most recent call last)", "EngineCore encountered an issue", "EngineCore encountered a fatal error"],
  ...["died unexpectedly", "Engine core initialization failed", "terminate called after throwing an instance of"],
  ...["std::bad_alloc", "std::runtime_error", "GGML_ASSERT", "GGML_ABORT", "ggml_abort", "CUDA error", "ROCm error"],
  ...["Vulkan error", "NCCL error", "NCCL WARN", "cudaMalloc failed", "an illegal memory access was encountered"],
  ...["unspecified launch failure", "device-side assert triggered", "uncorrectable ECC error", "out of memory"],
  ...["no kernel image is available", "driver shutting down", "unable to allocate", "failed to allocate"],
  ...["not enough memory", "No available memory", "Segmentation fault", "Illegal instruction", "Bus error", "Killed"],
  ...["got exception", "decode() failed", "Compute error", "failed to find free space in the KV cache"],
  ...["failed to parse grammar", "error parsing grammar", "JSON schema conversion was incomplete"],
  ...["Shutting down", "Application shutdown complete", "Received SIGTERM", "cleaning up before exit"],
];
const known = new RegExp(words.map((word) => `(?<!\\w)${RegExp.escape(word)}(?!\\w)`).join("|"), "g");
const level = /(?<!\w)(?:CRITICAL|ERROR|FATAL|WARNING)(?!\w)/;
const time = /(?<!\d)\d\d-\d\d \d\d:\d\d:\d\d(?!\d)/;

/** Returns the known words of a line in order, with its level and time, or undefined if it has none. */
export function knownWords(line: string): string | undefined {
  const found = line.match(known);
  if (!found) return undefined;
  const head = [level.exec(line)?.[0], time.exec(line)?.[0]].filter((part) => part !== undefined);
  return [...head, [...new Set(found)].join(" … ")].join(" ");
}
