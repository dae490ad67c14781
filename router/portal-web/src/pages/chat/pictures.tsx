/** Images that a person adds to a message: checked before they are sent, and shown without an address of their own. */
import { useEffect, useRef } from "react";
import type { Picture } from "./turns.ts";

export interface PictureRules {
  /** In one request, which has those of earlier messages, too. */
  readonly max: number;
  readonly formats: readonly string[];
  /** The largest body that the API accepts. */
  readonly bodyBytes: number;
}

interface PictureFault {
  readonly kind: "format" | "broken" | "many" | "large";
  readonly name: string;
  readonly limit: number;
}

interface Added {
  readonly pictures: readonly Picture[];
  /** Why one of them was left out. */
  readonly fault?: PictureFault;
}

/** Room in a body for everything besides images. */
const textBytes = 1 << 20;

/** Reads files until one cannot be added. */
export async function addedPictures(
  files: readonly File[],
  before: { readonly kept: readonly Picture[]; readonly sent: readonly Picture[] },
  { max, formats, bodyBytes }: PictureRules,
): Promise<Added> {
  const pictures: Picture[] = [];
  const earlier = [...before.kept, ...before.sent];
  for (const file of files) {
    const fault = (kind: PictureFault["kind"], limit = 0): Added => ({
      pictures,
      fault: { kind, name: file.name, limit },
    });
    if (!formats.includes(file.type.replace("image/", ""))) return fault("format");
    if (earlier.length + pictures.length >= max) return fault("many", max);
    const used = [...earlier, ...pictures].reduce((sum, { url }) => sum + url.length, 0);
    if (used + (file.size * 4) / 3 > bodyBytes - textBytes) return fault("large", Math.floor(bodyBytes / 1e6));
    const isImage = await createImageBitmap(file).then(
      (bitmap) => (bitmap.close(), true),
      () => false,
    );
    if (!isImage) return fault("broken");
    pictures.push({ name: file.name, url: await dataUriOf(file) });
  }
  return { pictures };
}

function dataUriOf(file: File): Promise<string> {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result as string);
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}

const side = 48;

/** Drawn, because the content security policy allows no images with data URIs. */
export function Thumbnail({ url }: { readonly url: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let isGone = false;
    void createImageBitmap(blobOf(url)).then((bitmap) => {
      const context = canvas.current?.getContext("2d");
      if (isGone || !context) return;
      const scale = side / Math.min(bitmap.width, bitmap.height);
      const [width, height] = [bitmap.width * scale, bitmap.height * scale];
      context.drawImage(bitmap, (side - width) / 2, (side - height) / 2, width, height);
      bitmap.close();
    });
    return () => {
      isGone = true;
    };
  }, [url]);
  return <canvas ref={canvas} className="thumbnail" width={side} height={side} aria-hidden="true" />;
}

function blobOf(url: string): Blob {
  const bytes = Uint8Array.from(atob(url.slice(url.indexOf(",") + 1)), (character) => character.charCodeAt(0));
  return new Blob([bytes]);
}
