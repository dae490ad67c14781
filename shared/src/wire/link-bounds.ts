/**
 * Bounds of the messages in `node_control.proto`. Each end checks them before it decodes a message from the other end.
 * If a field of the protocol is missing here, `link-bounds.test.ts` fails.
 *
 * Each bound is at least the maximum that a valid agent or router sends. Their messages are bounded by their
 * configuration (`agent.yaml`: slots, engines; the catalogue: efforts, formats, instructions), or by the sender itself.
 */
import { many, message, number, one, text, type MessageBounds } from "./message-bounds.ts";

/** Maximum numbers of slots per node, and of engines per slot, in agent.yaml. */
export const slotsMax = 64;
export const enginesPerSlotMax = 256;
/** Maximum number of different models of a node in agent.yaml. */
export const modelsMax = 1_024;
/** Longest model id in agent.yaml, as in the catalogue. */
export const modelCharactersMax = 64;
/** Maximum number of records in a usage batch. */
export const batchRecordsMax = 1_000;
/** Maximum number of past switches per slot that an agent sends. */
export const pastSwitchesMax = 50;
/** Maximum number of engine failures per slot that an agent sends, and of output lines with each. */
export const failuresPerSlotMax = 4;
export const failureLinesMax = 8;
/** Maximum lengths of the reason of a failure and of one output line, in characters. */
export const failureReasonMax = 400;
export const failureWordsMax = 160;
/** Maximum number of GPUs that an agent sends, and of disks, interfaces, modules, file systems and sensors. */
export const machinePartsMax = 256;
/** Maximum length of a string in a machine report, in characters. */
export const machineWordMax = 200;
/** Maximum number of attempts in one `settled` message of a router. */
export const settledMax = 1_000;
/** Maximum number of routers whose addresses a router sends. */
export const routersMax = 64;
/** Maximum number of `reasoning.efforts` of a model in the catalogue, and the length of one in characters. */
export const effortsMax = 16;
export const effortCharactersMax = 32;
/** Maximum number of `images.formats` of a model in the catalogue. */
export const formatsMax = 16;
/** Maximum length of `instruction.default` and `instruction.template` in the catalogue, in characters. */
export const instructionCharactersMax = 1_024;

/** Long, because agents of 0.1.0 accept any model name in their agent.yaml. */
const modelBytes = 200;
/** `namePattern`: 63 characters. */
const nameBytes = 64;
/** UUIDs have 36. */
const idBytes = 64;
const versionBytes = 256;
/** A DNS name has 253 characters; a port follows. */
const addressBytes = 320;
/** Most UTF-8 bytes of a UTF-16 unit. A whole character has at most four. */
const bytesPerCharacter = 3;
const wordBytes = 4 * machineWordMax;
/** Large, because agents of 0.1.0 do not limit the parts of a machine. */
const partsMax = 2 * machinePartsMax;

const slotDescription = message(
  "SlotDescription",
  text(1, "name", nameBytes),
  many(enginesPerSlotMax, text(2, "models", modelBytes)),
  many(enginesPerSlotMax, text(3, "engines", modelBytes)),
);
const hello = message(
  "Hello",
  text(1, "node", nameBytes),
  text(2, "boot_id", idBytes),
  text(3, "agent_version", versionBytes),
  many(slotsMax, one(4, "slots", slotDescription)),
);

const slotSwitching = message("SlotSwitching", number(1, "age_ms"), text(2, "phase", nameBytes), number(3, "usual_ms"));
const pastSwitch = message(
  "PastSwitch",
  number(1, "ended_ago_ms"),
  text(2, "from_model", modelBytes),
  text(3, "model", modelBytes),
  ...["failed", "took_ms", "drain_ms", "stop_ms", "memory_ms", "start_ms", "probe_ms"].map((name, index) =>
    number(index + 4, name),
  ),
);
const slotHistory = message("SlotHistory", many(pastSwitchesMax, one(1, "switches", pastSwitch)));
const engineFailure = message(
  "EngineFailure",
  number(1, "number"),
  number(2, "ago_ms"),
  text(3, "model", modelBytes),
  text(4, "kind", nameBytes),
  text(5, "reason", bytesPerCharacter * failureReasonMax),
  many(failureLinesMax, text(6, "lines", bytesPerCharacter * failureWordsMax)),
);
const engineFailures = message("EngineFailures", many(failuresPerSlotMax, one(1, "failures", engineFailure)));
const modelWaiters = message(
  "ModelWaiters",
  text(1, "model", modelBytes),
  number(2, "waiting"),
  number(3, "next_served_ms"),
  number(4, "last_served_ms"),
);
const engineLoad = message(
  "EngineLoad",
  ...["running", "waiting", "kv_cache_use", "prefix_cache_hit_rate"].map((name, index) => number(index + 1, name)),
);
const slotLoad = message(
  "SlotLoad",
  text(1, "name", nameBytes),
  number(2, "state"),
  text(3, "active_model", modelBytes),
  text(4, "next_model", modelBytes),
  number(5, "running"),
  number(6, "running_of_router"),
  many(enginesPerSlotMax, one(7, "waiters", modelWaiters)),
  number(8, "oldest_running_ms"),
  number(9, "closes_in_ms"),
  number(10, "state_age_ms"),
  number(11, "max_concurrent"),
  one(12, "engine", engineLoad),
  number(13, "retry_in_ms"),
  number(14, "oldest_waiting_ms"),
  one(15, "switching", slotSwitching),
  one(16, "history", slotHistory),
  one(17, "failures", engineFailures),
);
const gpuLoad = message(
  "GpuLoad",
  number(1, "index"),
  number(2, "memory_total_bytes"),
  number(3, "memory_used_bytes"),
  number(4, "utilisation"),
  number(5, "temperature_celsius"),
  number(6, "power_watts"),
);
const hostLoad = message(
  "HostLoad",
  number(1, "cpu_use"),
  number(2, "memory_total_bytes"),
  number(3, "memory_available_bytes"),
  many(partsMax, one(4, "gpus", gpuLoad)),
);
const memoryModule = message(
  "MemoryModule",
  number(1, "size_bytes"),
  text(2, "type", wordBytes),
  number(3, "megatransfers"),
);
const disk = message(
  "Disk",
  text(1, "name", wordBytes),
  number(2, "size_bytes"),
  text(3, "kind", wordBytes),
  text(4, "model", wordBytes),
);
const networkInterface = message(
  "NetworkInterface",
  text(1, "name", wordBytes),
  number(2, "up"),
  number(3, "bits_per_second"),
  number(4, "mtu"),
);
const gpu = message(
  "Gpu",
  text(1, "bus_address", wordBytes),
  number(2, "index"),
  text(3, "vendor", wordBytes),
  text(4, "name", wordBytes),
  text(5, "driver", wordBytes),
  number(6, "memory_total_bytes"),
);
const machine = message(
  "Machine",
  text(1, "manufacturer", wordBytes),
  text(2, "model", wordBytes),
  text(3, "hypervisor", wordBytes),
  text(4, "processor", wordBytes),
  number(5, "processor_sockets"),
  number(6, "processor_cores"),
  number(7, "processor_threads"),
  text(8, "operating_system", wordBytes),
  text(9, "kernel", wordBytes),
  many(partsMax, one(10, "memory_modules", memoryModule)),
  many(partsMax, one(11, "disks", disk)),
  many(partsMax, one(12, "network_interfaces", networkInterface)),
  many(partsMax, one(13, "gpus", gpu)),
);
const fileSystem = message(
  "FileSystem",
  text(1, "mount", wordBytes),
  // `models`, `state` and `outbox`, and as many again for later versions.
  many(8, text(2, "holds", nameBytes)),
  number(3, "size_bytes"),
  number(4, "available_bytes"),
  number(5, "inodes"),
  number(6, "inodes_free"),
);
const temperature = message("Temperature", text(1, "part", nameBytes), number(2, "celsius"));
const machineReading = message(
  "MachineReading",
  number(1, "load_average_1"),
  number(2, "load_average_5"),
  number(3, "load_average_15"),
  number(4, "swap_total_bytes"),
  number(5, "swap_used_bytes"),
  many(partsMax, one(6, "file_systems", fileSystem)),
  number(7, "disk_read_bytes_per_second"),
  number(8, "disk_written_bytes_per_second"),
  number(9, "network_received_bytes_per_second"),
  number(10, "network_sent_bytes_per_second"),
  many(partsMax, one(11, "temperatures", temperature)),
  number(12, "cpu_frequency_limit_hertz"),
  number(13, "cpu_frequency_max_hertz"),
);
const outboxLoad = message("OutboxLoad", number(1, "records"), number(2, "oldest_ms"));
const loadReport = message(
  "LoadReport",
  number(1, "sequence"),
  many(slotsMax, one(2, "slots", slotLoad)),
  one(3, "host", hostLoad),
  number(4, "maintenance"),
  number(5, "admitting"),
  one(6, "machine", machine),
  one(7, "machine_reading", machineReading),
  one(8, "outbox", outboxLoad),
);

const usageRecord = message(
  "UsageRecord",
  text(1, "request_id", idBytes),
  number(2, "attempt"),
  text(3, "account_id", idBytes),
  text(4, "user_id", idBytes),
  text(5, "key_id", idBytes),
  text(6, "model", modelBytes),
  ...["factor_millicredits", "prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens"].map(
    (name, index) => number(index + 7, name),
  ),
  ...["source", "outcome", "duration_ms", "first_token_ms"].map((name, index) => number(index + 12, name)),
  // 16 bytes today.
  text(16, "grant", idBytes),
  number(17, "tokens_max"),
  number(18, "estimated_tokens"),
);
const usageBatch = message("UsageBatch", number(1, "batch_id"), many(batchRecordsMax, one(2, "records", usageRecord)));

/** The agent's messages. */
export const linkRequestBounds: MessageBounds = message(
  "LinkRequest",
  one(1, "hello", hello),
  one(2, "load_report", loadReport),
  one(3, "usage_batch", usageBatch),
);

const reasoningRules = message(
  "ReasoningRules",
  number(1, "mode"),
  many(effortsMax, text(2, "efforts", bytesPerCharacter * effortCharactersMax)),
  text(3, "default_effort", bytesPerCharacter * effortCharactersMax),
  number(4, "template_kwargs_accepted"),
);
const imageRules = message(
  "ImageRules",
  number(1, "max"),
  many(formatsMax, text(2, "formats", nameBytes)),
  number(3, "tokens_per_image"),
);
const embeddingRules = message(
  "EmbeddingRules",
  number(1, "dimensions_min"),
  number(2, "dimensions_max"),
  number(3, "dimensions_default"),
  number(4, "input_tokens"),
  text(5, "instruction_default", bytesPerCharacter * instructionCharactersMax),
  text(6, "instruction_template", bytesPerCharacter * instructionCharactersMax),
);
const modelRules = message(
  "ModelRules",
  text(1, "id", modelBytes),
  number(2, "category"),
  number(3, "context_tokens"),
  one(4, "reasoning", reasoningRules),
  number(5, "tools_enforced"),
  one(6, "images", imageRules),
  one(7, "embeddings", embeddingRules),
  number(8, "tokens_per_byte"),
);
const desiredState = message(
  "DesiredState",
  number(1, "generation"),
  number(2, "maintenance"),
  many(modelsMax, text(3, "prewarm_models", modelBytes)),
  number(4, "acknowledged_failure"),
);
const knownRouter = message("KnownRouter", text(1, "router_id", idBytes), text(2, "address", addressBytes));
const routerList = message("RouterList", many(routersMax, one(1, "routers", knownRouter)));
const models = many(modelsMax, one(1, "models", modelRules));
const welcome = message(
  "Welcome",
  text(1, "router_id", idBytes),
  text(2, "data_address", addressBytes),
  { ...models, number: 3 },
  one(4, "desired_state", desiredState),
  text(5, "router_version", versionBytes),
  one(6, "routers", routerList),
);
const attempt = message("Attempt", text(1, "request_id", idBytes), number(2, "attempt"));

/** The router's messages. */
export const linkResponseBounds: MessageBounds = message(
  "LinkResponse",
  one(1, "welcome", welcome),
  one(2, "usage_ack", message("UsageAck", number(1, "batch_id"))),
  one(3, "model_rules_changed", message("ModelRulesChanged", models)),
  one(4, "desired_state", desiredState),
  one(5, "goodbye", message("Goodbye")),
  // Routers of 0.1.0 send all attempts of 50 ms in one message.
  one(6, "settled", message("Settled", many(8 * settledMax, one(1, "attempts", attempt)))),
  one(7, "heartbeat", message("Heartbeat", text(1, "ledger", versionBytes))),
  one(8, "routers_changed", routerList),
);
