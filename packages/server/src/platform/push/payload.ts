import { createHash } from 'node:crypto';
import type { PushNotification } from './port.ts';

const ellipsis = '…';

/**
 * Encodes the notification in at most `maxBytes` of UTF-8. The body is shortened first, then the title, never inside
 * a code point. Returns undefined if even empty texts do not fit.
 */
export function fitNotification(
  notification: PushNotification,
  maxBytes: number,
  encode: (title: string, body: string) => string,
): string | undefined {
  const fits = (title: string, body: string): boolean => Buffer.byteLength(encode(title, body)) <= maxBytes;
  // A UTF-16 unit needs at least one byte, so longer texts are cut in any case.
  const title = clip(notification.title, maxBytes);
  const body = clip(notification.body, maxBytes);
  if (fits(title, body)) return encode(title, body);
  if (fits(title, ''))
    return encode(
      title,
      shorten(body, (text) => fits(title, text)),
    );
  if (fits('', ''))
    return encode(
      shorten(title, (text) => fits(text, '')),
      '',
    );
  return undefined;
}

function clip(text: string, maxUnits: number): string {
  if (text.length <= maxUnits) return text.toWellFormed();
  return (
    text
      .slice(0, maxUnits - 1)
      .replace(/[\uD800-\uDBFF]$/, '')
      .toWellFormed() + ellipsis
  );
}

/** The longest beginning of the text, with an ellipsis, that fits; empty if none does. */
function shorten(text: string, fits: (text: string) => boolean): string {
  const points = Array.from(text);
  const start = (count: number): string => (count === 0 ? '' : points.slice(0, count).join('') + ellipsis);
  let low = 0;
  let high = points.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(start(middle))) low = middle;
    else high = middle - 1;
  }
  return start(low);
}

/** The collapse key in at most `maxLength` base64url characters: unchanged if it fits, otherwise its hash. */
export function collapseId(key: string, maxLength: number): string {
  if (key.length <= maxLength && /^[\w-]+$/.test(key)) return key;
  return createHash('sha256').update(key).digest('base64url').slice(0, maxLength);
}

/** The kind of notification for which the app has its own actions, such as to answer. */
export const categoryOf = ({ call }: PushNotification): string | undefined => call && `call.${call}`;

export function isDataOnly(notification: PushNotification): boolean {
  return notification.title === '' && notification.body === '';
}

export function unixSeconds(now: number): number {
  return Math.floor(now / 1000);
}
