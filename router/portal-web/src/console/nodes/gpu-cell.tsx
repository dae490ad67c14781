/** The GPUs of a node: memory as a bar, use and temperature. */
import type { ConsoleNode } from "../../../../src/surface/contract/console.ts";
import { useConsoleTexts } from "../texts.ts";

type Gpu = NonNullable<ConsoleNode["host"]>["gpus"][number];

export function GpuCell({ gpus }: { readonly gpus: readonly Gpu[] }) {
  const { t } = useConsoleTexts();
  if (gpus.length === 0) return t.shell.unknown;
  return (
    <ul className="gpus">
      {gpus.map((gpu) => (
        <GpuRow key={gpu.index} gpu={gpu} />
      ))}
    </ul>
  );
}

const gigabyte = 1e9;
/** Above this temperature the node has the trouble `gpu-hot`. */
const hotCelsius = 85;

function GpuRow({ gpu }: { readonly gpu: Gpu }) {
  const { c, format } = useConsoleTexts();
  const { index, memoryTotalBytes, memoryUsedBytes, utilisation, temperatureCelsius } = gpu;
  const name = c.nodes.gpu(format.number(index));
  const gigabytes = (bytes: number) => format.number(Math.round(bytes / gigabyte));
  const memory =
    memoryUsedBytes !== undefined && memoryTotalBytes !== undefined
      ? c.nodes.gpuMemory(gigabytes(memoryUsedBytes), gigabytes(memoryTotalBytes))
      : undefined;
  const words = [memory, utilisation !== undefined && c.nodes.gpuUse(format.percent(utilisation))].filter(Boolean);
  const celsius = temperatureCelsius !== undefined && c.nodes.celsius(format.number(Math.round(temperatureCelsius)));
  return (
    <li className="number">
      <span>{name}</span>
      {memory && <meter aria-label={`${name}: ${memory}`} min={0} max={memoryTotalBytes} value={memoryUsedBytes} />}
      <small>
        {words.join(" · ")}
        {celsius && words.length > 0 && " · "}
        {celsius && <span className={temperatureCelsius! > hotCelsius ? "trouble" : undefined}>{celsius}</span>}
      </small>
    </li>
  );
}
