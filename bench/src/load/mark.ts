/**
 * What a text carries for the measurement: `~`, the time of sending in microseconds and the number of the sender, in digits
 * that JSON and XML leave as they are. It is read out of the raw bytes of a delivery; nothing is parsed.
 */

const tilde = 0x7e;
const timeDigits = 10;
const senderDigits = 5;
const textLength = 64;
const filler = ' lorem ipsum dolor sit amet consectetur adipiscing elit sed'.repeat(2);
/** Times are taken modulo this. */
export const wrap = 10 ** timeDigits;

export function markedText(microseconds: number, sender: number): string {
  const time = String(Math.floor(microseconds) % wrap).padStart(timeDigits, '0');
  const mark = `~${time}${String(sender).padStart(senderDigits, '0')}`;
  return mark + filler.slice(0, textLength - mark.length);
}

function digits(bytes: Buffer, at: number, count: number): number {
  let value = 0;
  for (let i = 0; i < count; i++) value = value * 10 + bytes[at + i]! - 48;
  return value;
}

/** Looks where the last mark was first: frames of one server look alike. */
export class MarkFinder {
  #hint = 0;

  /** The position of the mark, or -1. */
  find(bytes: Buffer, start: number, end: number): number {
    if (start + this.#hint < end && bytes[start + this.#hint] === tilde) return start + this.#hint;
    for (let at = start; at < end; at++) {
      if (bytes[at] !== tilde) continue;
      this.#hint = at - start;
      return at;
    }
    return -1;
  }
}

export const timeAt = (bytes: Buffer, mark: number): number => digits(bytes, mark + 1, timeDigits);
export const senderAt = (bytes: Buffer, mark: number): number =>
  digits(bytes, mark + 1 + timeDigits, senderDigits);
export const elapsed = (now: number, then: number): number => {
  const difference = (Math.floor(now) % wrap) - then;
  return difference < 0 ? difference + wrap : difference;
};
