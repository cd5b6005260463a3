import { createHash, createHmac } from 'node:crypto';

export interface SigV4Options {
  method: 'GET' | 'PUT' | 'DELETE';
  /** Scheme, host and path, already encoded as encodePath does. */
  url: string;
  query?: Record<string, string>;
  /** Headers that the sender must send exactly; `host` is always signed. */
  headers?: Record<string, string>;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  now: Date;
  expiresIn: number;
}

/** AWS Signature Version 4 in the query string, payload unsigned (AWS, "Authenticating requests: query parameters"). */
export function presign(o: SigV4Options): string {
  const url = new URL(o.url);
  const timestamp = o.now.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const scope = `${timestamp.slice(0, 8)}/${o.region}/s3/aws4_request`;
  const headers = Object.entries({ ...o.headers, host: url.host })
    .map(([name, value]) => [name.toLowerCase(), value.trim().replace(/ +/g, ' ')] as const)
    .sort(byName);
  const signedHeaders = headers.map(([name]) => name).join(';');
  const query = Object.entries({
    ...o.query,
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${o.accessKeyId}/${scope}`,
    'X-Amz-Date': timestamp,
    'X-Amz-Expires': String(o.expiresIn),
    'X-Amz-SignedHeaders': signedHeaders,
  })
    .map(([name, value]) => [encode(name), encode(value)] as const)
    .sort(byName)
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const canonicalHeaders = headers.map(([name, value]) => `${name}:${value}\n`).join('');
  const canonical = [o.method, url.pathname, query, canonicalHeaders, signedHeaders, 'UNSIGNED-PAYLOAD'].join(
    '\n',
  );
  const digest = createHash('sha256').update(canonical).digest('hex');
  const key = [timestamp.slice(0, 8), o.region, 's3', 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${o.secretAccessKey}`,
  );
  const signature = createHmac('sha256', key)
    .update(['AWS4-HMAC-SHA256', timestamp, scope, digest].join('\n'))
    .digest('hex');
  return `${url.origin}${url.pathname}?${query}&X-Amz-Signature=${signature}`;
}

const byName = (a: readonly [string, string], b: readonly [string, string]) => (a[0] < b[0] ? -1 : 1);
const encode = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
