import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { freePort } from './process.ts';
import type { Running } from './process.ts';

interface Asset {
  body: Buffer;
  format?: string;
  width?: number;
  height?: number;
}

interface Account {
  cloud: string;
  apiKey: string;
  apiSecret: string;
}

class Refusal extends Error {
  status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Stands in for Cloudinary, which has no server to run: it refuses what the vendor's pages say the vendor refuses.
 * The rule stands beside each check (cloudinary.com/documentation: authentication_signatures, image_upload_api_reference,
 * admin_api, and the vendor's Node SDK for the download call).
 */
export async function startCloudinaryDouble(account: Account): Promise<Running & { endpoint: string }> {
  const assets = new Map<string, Asset>();
  const server = createServer((req, res) => {
    answer(account, assets, req, res).catch((error: unknown) => {
      // Errors are { error: { message } }.
      const status = error instanceof Refusal ? error.status : 500;
      json(res, status, { error: { message: error instanceof Error ? error.message : 'failed' } });
    });
  });
  const port = await freePort();
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    endpoint: `http://127.0.0.1:${port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(
  account: Account,
  assets: Map<string, Asset>,
  req: IncomingMessage,
  res: ServerResponse,
) {
  const url = new URL(req.url ?? '', 'http://localhost');
  const body = await buffer(req);
  const [, version, cloud, ...rest] = url.pathname.split('/').map(decodeURIComponent);
  if (version !== 'v1_1' || cloud !== account.cloud) throw new Refusal(401, 'Invalid cloud_name');
  const route = `${req.method} ${rest.length === 2 ? rest[1] : rest[0]}`;

  if (route === 'GET resources') {
    // Admin API: HTTP Basic with API key and secret.
    const expected = `Basic ${Buffer.from(`${account.apiKey}:${account.apiSecret}`).toString('base64')}`;
    if (req.headers.authorization !== expected) throw new Refusal(401, 'mismatched credentials');
    const [, resource, type, ...id] = rest;
    const asset = assets.get(`${resource}/${type}/${id.join('/')}`);
    if (!asset) throw new Refusal(404, `Resource not found - ${id.join('/')}`);
    const { body: stored, ...facts } = asset;
    return json(res, 200, {
      public_id: id.join('/'),
      resource_type: resource,
      type,
      bytes: stored.length,
      ...facts,
    });
  }

  const resource = rest[0] ?? '';
  const form = await formOf(req, body, url);
  const fields = checkSignature(account, form);
  const key = `${resource}/${fields['type'] ?? 'upload'}/${fields['public_id']}`;
  if (route === 'POST upload') {
    const file = form.get('file');
    if (!(file instanceof File)) throw new Refusal(400, 'Missing required parameter - file');
    // overwrite=false: an asset that is there stays, and the answer says so.
    const existing = fields['overwrite'] === 'false' && assets.has(key);
    if (!existing) assets.set(key, examine(resource, Buffer.from(await file.arrayBuffer())));
    return json(res, 200, { public_id: fields['public_id'], existing });
  }
  if (route === 'POST destroy') return json(res, 200, { result: assets.delete(key) ? 'ok' : 'not found' });
  if (route === 'GET download') return download(assets.get(key), resource, fields, req, res);
  throw new Refusal(404, 'no such call');
}

async function formOf(req: IncomingMessage, body: Buffer, url: URL): Promise<FormData> {
  if (req.method !== 'GET') {
    const headers = { 'content-type': req.headers['content-type'] ?? '' };
    return new Response(new Uint8Array(body), { headers }).formData();
  }
  const form = new FormData();
  for (const [name, value] of url.searchParams) form.append(name, value);
  return form;
}

/** Returns the signed fields. */
function checkSignature(account: Account, form: FormData): Record<string, string> {
  if (form.get('api_key') !== account.apiKey) throw new Refusal(401, 'Unknown API key');
  // "All parameters added to the method call should be included except: file, cloud_name, resource_type and your
  // api_key", sorted, name=value joined by "&", the API secret appended, SHA-1 or SHA-256 in hex.
  const excluded = ['file', 'cloud_name', 'resource_type', 'api_key', 'signature'];
  const fields = Object.fromEntries([...form].filter(([name]) => !excluded.includes(name))) as Record<
    string,
    string
  >;
  const names = Object.keys(fields).sort();
  const text = names.map((name) => `${name}=${fields[name]}`).join('&');
  const digests = ['sha1', 'sha256'].map((a) =>
    createHash(a).update(text).update(account.apiSecret).digest('hex'),
  );
  if (!digests.includes(String(form.get('signature'))))
    throw new Refusal(401, `Invalid Signature. String to sign - '${text}'.`);
  // "Signatures are valid for one hour" from their timestamp.
  const age = Date.now() / 1000 - Number(fields['timestamp']);
  if (!(age <= 3600)) throw new Refusal(400, 'Stale request - reported time is more than 1 hour ago');
  return fields;
}

/** image and video are decoded, so what is neither is refused; raw takes any file and knows nothing of it. */
function examine(resource: string, body: Buffer): Asset {
  if (resource === 'raw') return { body };
  if (resource === 'video') {
    if (body.toString('latin1', 4, 8) !== 'ftyp') throw new Refusal(400, 'Unsupported video format or file');
    return { body, format: 'mp4' };
  }
  if (resource !== 'image') throw new Refusal(400, `Invalid resource_type ${resource}`);
  if (body.toString('latin1', 1, 4) !== 'PNG') throw new Refusal(400, 'Invalid image file');
  return { body, format: 'png', width: body.readUInt32BE(16), height: body.readUInt32BE(20) };
}

function download(
  asset: Asset | undefined,
  resource: string,
  fields: Record<string, string>,
  req: IncomingMessage,
  res: ServerResponse,
) {
  // expires_at: "The date (UNIX time in seconds) for the URL expiration."
  if (Number(fields['expires_at'] ?? Infinity) <= Date.now() / 1000)
    throw new Refusal(401, 'the URL has expired');
  if (!asset) throw new Refusal(404, 'Resource not found');
  // The format of an image or video must be given; the stored one means the original.
  if (resource !== 'raw' && fields['format'] !== asset.format) throw new Refusal(400, 'Invalid format');
  const types: Record<string, string> = { png: 'image/png', mp4: 'video/mp4' };
  res.setHeader('content-type', types[asset.format ?? ''] ?? 'application/octet-stream');
  // attachment: the asset is downloaded under its public id instead of shown.
  const name = fields['public_id']?.split('/').at(-1);
  if (fields['attachment'] === 'true') res.setHeader('content-disposition', `attachment; filename="${name}"`);
  const range = /^bytes=(\d+)-(\d+)$/.exec(req.headers.range ?? '');
  if (!range) return void res.end(asset.body);
  const end = Math.min(Number(range[2]), asset.body.length - 1);
  res.writeHead(206, { 'content-range': `bytes ${range[1]}-${end}/${asset.body.length}` });
  res.end(asset.body.subarray(Number(range[1]), end + 1));
}

function json(res: ServerResponse, status: number, value: unknown) {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
