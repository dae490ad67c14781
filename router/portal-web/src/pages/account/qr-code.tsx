/** A QR code as one path of SVG: an image from a data: address or a style of its own would break the content security policy. */
import encodeQR from "qr";

/** Width of the blank margin in modules. Some cameras need it. */
const border = 4;

export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const modules = encodeQR(text, "raw", { border });
  const path = modules.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : []))).join("");
  return (
    // An img would need a data: address, which the policy forbids.
    // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role
    <svg className="qr-code" viewBox={`0 0 ${modules.length} ${modules.length}`} role="img" aria-label={label}>
      <path d={path} />
    </svg>
  );
}
