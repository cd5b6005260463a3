/** A UUID v4. `crypto.randomUUID` is missing on pages without TLS and in some React Native engines. */
export function randomId(): string {
  if (typeof crypto !== 'undefined') {
    if (crypto.randomUUID) return crypto.randomUUID();
    return format(crypto.getRandomValues(new Uint8Array(16)));
  }
  return format(Uint8Array.from({ length: 16 }, () => Math.random() * 256));
}

function format(bytes: Uint8Array): string {
  bytes[6] = (bytes[6]! & 15) | 64;
  bytes[8] = (bytes[8]! & 63) | 128;
  const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The number of bytes of a string in UTF-8, without TextEncoder, which React Native lacks. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff)) bytes += 2;
    else if (unit > 0x7f) bytes += 1;
  }
  return bytes;
}
