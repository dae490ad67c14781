/** Writes a LoRA adapter with random weights for a Qwen3 model in the layout of Hugging Face. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRandom } from "@weiche/shared/random.ts";
import { safetensors, type Tensor } from "./safetensors.ts";

interface Shape {
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly head_dim: number;
  readonly hidden_size: number;
}

const rank = 8;
/** Large enough that the model answers differently. */
const scale = 1;

/** `modelDirectory`: the model's. `directory`: made if it is not there. Changes the queries of each layer. */
export function writeLora(modelDirectory: string, directory: string): void {
  const model = JSON.parse(readFileSync(join(modelDirectory, "config.json"), "utf8")) as Shape;
  const random = createRandom(1);
  const tensor = (name: string, shape: readonly [number, number]): Tensor => {
    const values = Float32Array.from({ length: shape[0] * shape[1] }, () => (2 * random.next() - 1) * scale);
    return { name, shape, values };
  };
  const queries = model.num_attention_heads * model.head_dim;
  const tensors = Array.from({ length: model.num_hidden_layers }, (_, layer) => {
    const name = `base_model.model.model.layers.${layer}.self_attn.q_proj`;
    return [
      tensor(`${name}.lora_A.weight`, [rank, model.hidden_size]),
      tensor(`${name}.lora_B.weight`, [queries, rank]),
    ];
  }).flat();
  const config = { peft_type: "LORA", task_type: "CAUSAL_LM", r: rank, lora_alpha: rank, target_modules: ["q_proj"] };
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "adapter_config.json"), `${JSON.stringify({ ...config, bias: "none" }, null, 2)}\n`);
  writeFileSync(join(directory, "adapter_model.safetensors"), safetensors(tensors));
}
