import { expect, test } from "vitest";
import { tellingLine } from "./telling-line.ts";

/** Last output lines of engines that failed to start, and the line that explains the failure. */
const starts: [engine: string, lines: string, telling: string][] = [
  [
    "llama-server 0.5.0 without its model",
    `0.00.036.770 E gguf_init_from_file: failed to open GGUF file '/m.gguf' (No such file or directory)
0.00.036.819 E llama_model_load: error loading model: llama_model_loader: failed to load model from /m.gguf
0.00.036.844 E llama_model_load_from_file_impl: failed to load model
0.00.036.884 E srv    load_model: failed to load model, '/m.gguf'
0.00.036.902 I srv    operator(): operator(): cleaning up before exit...
0.00.037.459 E srv  llama_server: exiting due to model loading error`,
    "0.00.036.770 E gguf_init_from_file: failed to open GGUF file '/m.gguf' (No such file or directory)",
  ],
  [
    "llama-server 0.5.0 with another file",
    `0.00.091.151 E gguf_init_from_reader: invalid magic characters: '# We', expected 'GGUF'
0.00.091.176 E llama_model_load: error loading model: llama_model_loader: failed to load model from /m.gguf
0.00.091.221 I srv    operator(): operator(): cleaning up before exit...
0.00.091.300 E srv  llama_server: exiting due to model loading error`,
    "0.00.091.151 E gguf_init_from_reader: invalid magic characters: '# We', expected 'GGUF'",
  ],
  ["llama-server 0.5.0 with a wrong flag", "error: invalid argument: --modell", "error: invalid argument: --modell"],
  [
    "vLLM 0.32.0 without its model",
    `Traceback (most recent call last):
  File "/opt/vllm/transformers/utils/hub.py", line 595, in cached_files
    raise OSError(f"{e}") from e
OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/m'. Use \`repo_type\` argument if needed.`,
    "OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/m'. Use `repo_type` argument if needed.",
  ],
  [
    "vLLM whose validator names a page",
    `(APIServer pid=7) pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
(APIServer pid=7)   Value error, User-specified max_model_len (4096) is greater than the derived max_model_len [type=value_error]
(APIServer pid=7)     For further information visit https://errors.pydantic.dev/2.12/v/value_error`,
    "Value error, User-specified max_model_len (4096) is greater than the derived max_model_len [type=value_error]",
  ],
  [
    "vLLM whose core failed",
    `(EngineCore_DP0 pid=9) ERROR 11-23 01:00:00 [core.py:843] EngineCore failed to start.
(EngineCore_DP0 pid=9) ERROR 11-23 01:00:00 [core.py:843] Traceback (most recent call last):
(EngineCore_DP0 pid=9) ERROR 11-23 01:00:00 [core.py:843]   File "/opt/vllm/v1/worker.py", line 1, in init
(EngineCore_DP0 pid=9) ERROR 11-23 01:00:00 [core.py:843]     raise ValueError(
(EngineCore_DP0 pid=9) ERROR 11-23 01:00:00 [core.py:843] ValueError: Free memory on device cuda:0 (1.0/79.2 GiB) is less than desired
(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}
/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects
  warnings.warn('resource_tracker: There appear to be %d '`,
    "ValueError: Free memory on device cuda:0 (1.0/79.2 GiB) is less than desired",
  ],
  [
    "vLLM whose core a signal ended without a message",
    `(APIServer pid=7) INFO 11-23 01:00:00 [loader.py:1] Loading weights took 1 seconds
(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -4}
/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked`,
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -4}",
  ],
  ["a program that reports no error", "loading\nbye\n", "bye"],
  ["a program without output", "", ""],
];

test.each(starts)("the line that explains the failure is found for %s", (_engine, lines, telling) => {
  expect(tellingLine(lines.split("\n"))).toBe(telling);
});
