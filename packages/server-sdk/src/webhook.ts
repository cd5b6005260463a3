import { createHmac, timingSafeEqual } from 'node:crypto';
import type { WebhookEvents } from '@parley/protocol';

/** `data` by event type: those of the catalogue, and that of `POST /v1/webhooks/{id}/test`. */
interface DataOf extends WebhookEvents {
  'webhook.test': { webhookId: string };
}

/**
 * A delivery; `event.type` determines the form of `event.data`. Later versions of the service may send further types:
 * ignore those that you do not know.
 */
export type WebhookEvent = {
  [Type in keyof DataOf]: {
    /** The same on every attempt and replay: use it to deduplicate. */
    id: string;
    type: Type;
    createdAt: string;
    /** The environment's id. */
    env: string;
    data: DataOf[Type];
  };
}[keyof DataOf];

export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

export interface VerifyOptions {
  now?: () => number;
  toleranceSeconds?: number;
}

export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

/** Far more than a rotation ever sends; further signatures in the header are ignored. */
const mostSignatures = 16;

function headerOf(headers: WebhookHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  const text = Array.isArray(value) ? value.join(' ') : value;
  if (!text) throw new WebhookVerificationError(`The header ${name} is missing.`);
  return text;
}

/**
 * Verifies a delivery (webhooks#signature) and returns its envelope. `rawBody` must be the body as received,
 * not parsed and printed again. Throws WebhookVerificationError.
 */
export function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
  options: VerifyOptions = {},
): WebhookEvent {
  const { now = Date.now, toleranceSeconds = 300 } = options;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  if (key.length === 0) throw new TypeError('secret must look like whsec_<base64>');
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature');

  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('The timestamp is not a number.');
  if (!(Math.abs(Math.floor(now() / 1000) - Number(timestamp)) <= toleranceSeconds)) {
    throw new WebhookVerificationError('The timestamp is too far from now.');
  }

  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(rawBody).digest();
  let matches = false;
  for (const signature of signatures.split(' ', mostSignatures)) {
    if (!signature.startsWith('v1,')) continue;
    const given = Buffer.from(signature.slice(3), 'base64');
    if (given.length === expected.length && timingSafeEqual(given, expected)) matches = true;
  }
  if (!matches) throw new WebhookVerificationError('No signature matches.');

  try {
    return JSON.parse(
      typeof rawBody === 'string' ? rawBody : Buffer.from(rawBody).toString('utf8'),
    ) as WebhookEvent;
  } catch {
    throw new WebhookVerificationError('The body is not JSON.');
  }
}
