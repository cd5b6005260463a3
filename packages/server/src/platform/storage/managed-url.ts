import { createHmac } from 'node:crypto';
import { sameString } from '../secrets.ts';

/** What a signed URL of the managed storage allows: one upload of one exact object, or reading one object until `expires`. */
export type Grant =
  | { op: 'put'; key: string; expires: number; type: string; size: number }
  | {
      op: 'get';
      key: string;
      expires: number;
      type: string;
      name: string;
      disposition: 'inline' | 'attachment';
    };

const mac = (secret: Uint8Array, key: string, query: string) =>
  createHmac('sha256', secret).update(`${key}\n${query}`).digest('base64url');

/** The signature covers the key and the query as written, so that nothing can be added, removed or changed. */
export function signGrant(baseUrl: string, secret: Uint8Array, grant: Grant): string {
  const { key, ...rest } = grant;
  const query = new URLSearchParams(
    Object.entries(rest).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return `${baseUrl}/${key}?${query}&sig=${mac(secret, key, query)}`;
}

/** The grant in a request's key and query, or the reason why there is none. */
export function readGrant(
  secrets: readonly Uint8Array[],
  key: string,
  query: string,
  now: Date,
): Grant | 'invalid' | 'expired' {
  const [, signed = '', sig = ''] = /^(.*)&sig=([\w-]+)$/.exec(query) ?? [];
  if (!secrets.some((secret) => sameString(mac(secret, key, signed), sig))) return 'invalid';
  // The signature is valid, so from here on the values are our own.
  const q = new URLSearchParams(signed);
  const get = (name: string) => q.get(name) ?? '';
  const expires = Number(get('expires'));
  if (now.getTime() >= expires) return 'expired';
  if (get('op') === 'put') return { op: 'put', key, expires, type: get('type'), size: Number(get('size')) };
  const disposition = get('disposition') === 'inline' ? 'inline' : 'attachment';
  return { op: 'get', key, expires, type: get('type'), name: get('name'), disposition };
}
