import { createWriteStream } from 'node:fs';
import { access, link, mkdir, open, unlink } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { readGrant } from './managed-url.ts';
import type { Grant } from './managed-url.ts';
import { contentDisposition } from './port.ts';

interface HandlerConfig {
  baseUrl: string;
  secret: Uint8Array;
  origins?: '*' | string[];
  now: () => Date;
  uniqueName: () => string;
  incoming: string;
  pathOf: (key: string) => string;
}

/** One transfer, either way; a client slower than this starts again. */
const MAX_TRANSFER_MS = 15 * 60_000;

/** The object endpoint of the managed storage: OPTIONS, PUT, GET and HEAD of signed URLs. */
export function createManagedHandler(config: HandlerConfig) {
  const prefix = `${new URL(config.baseUrl).pathname.replace(/\/+$/, '')}/`;

  return (req: IncomingMessage, res: ServerResponse): boolean => {
    const [path = '', query = ''] = (req.url ?? '').split('?', 2);
    if (!path.startsWith(prefix)) return false;
    common(config, req, res);
    answer(config, req, res, path.slice(prefix.length), query).catch(() => {
      // A broken disk or a client that went away; what was half written is gone already.
      if (res.headersSent) res.destroy();
      else refuse(req, res, 500, 'the object could not be transferred');
    });
    return true;
  };
}

function common(config: HandlerConfig, req: IncomingMessage, res: ServerResponse): void {
  // Whatever is stored here came from a stranger: it is never sniffed, never run, never framed with rights.
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Content-Security-Policy', "sandbox; default-src 'none'");
  res.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
  res.setHeader('Referrer-Policy', 'no-referrer');
  const { origins = '*' } = config;
  const origin = req.headers.origin;
  if (origins !== '*') res.setHeader('Vary', 'Origin');
  if (origins === '*') res.setHeader('Access-Control-Allow-Origin', '*');
  else if (origin && origins.includes(origin)) res.setHeader('Access-Control-Allow-Origin', origin);
  res.setHeader('Access-Control-Expose-Headers', 'ETag, Content-Length, Content-Range, Content-Disposition');
}

async function answer(
  config: HandlerConfig,
  req: IncomingMessage,
  res: ServerResponse,
  key: string,
  query: string,
) {
  if (req.method === 'OPTIONS') {
    res.setHeader('Access-Control-Allow-Methods', 'GET, HEAD, PUT');
    res.setHeader('Access-Control-Allow-Headers', 'content-type, range');
    res.setHeader('Access-Control-Max-Age', '86400');
    res.writeHead(204).end();
    return;
  }
  const grant = readGrant(config.secret, key, query, config.now());
  if (grant === 'invalid') return refuse(req, res, 403, 'the signature does not match');
  if (grant === 'expired') return refuse(req, res, 403, 'the URL has expired');
  if (grant.op === 'put' && req.method === 'PUT') return store(config, req, res, grant);
  if (grant.op === 'get' && (req.method === 'GET' || req.method === 'HEAD'))
    return serve(config, req, res, grant);
  return refuse(req, res, 405, 'the URL was not signed for this method');
}

async function store(
  config: HandlerConfig,
  req: IncomingMessage,
  res: ServerResponse,
  grant: Grant & { op: 'put' },
) {
  const length = req.headers['content-length'];
  if (length === undefined) return refuse(req, res, 411, 'a Content-Length is required');
  if (Number(length) > grant.size) return refuse(req, res, 413, `the URL was signed for ${grant.size} bytes`);
  if (Number(length) !== grant.size)
    return refuse(req, res, 400, `the URL was signed for ${grant.size} bytes`);
  if (req.headers['content-type'] !== grant.type)
    return refuse(req, res, 400, `the URL was signed for ${grant.type}`);
  const path = config.pathOf(grant.key);
  if (await exists(path)) return refuse(req, res, 409, 'the object is there already');

  const temporary = join(config.incoming, config.uniqueName());
  try {
    const file = createWriteStream(temporary, { flags: 'wx', mode: 0o600, flush: true });
    await pipeline(req, exactly(grant.size), file, { signal: AbortSignal.timeout(MAX_TRANSFER_MS) });
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    // A link, unlike a rename, never replaces: of two uploads of one object the first stays.
    await link(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return refuse(req, res, 409, 'the object is there already');
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
  res.writeHead(201, { 'Content-Length': 0 }).end();
}

/** The parser holds a request to its Content-Length; this holds the file to the signed size whatever comes. */
function exactly(size: number) {
  return async function* (source: AsyncIterable<Buffer>) {
    let seen = 0;
    for await (const chunk of source) {
      seen += chunk.length;
      if (seen > size) throw new RangeError('more bytes than signed for');
      yield chunk;
    }
    if (seen !== size) throw new RangeError('fewer bytes than signed for');
  };
}

async function serve(
  config: HandlerConfig,
  req: IncomingMessage,
  res: ServerResponse,
  grant: Grant & { op: 'get' },
) {
  const file = await open(config.pathOf(grant.key)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (!file) return refuse(req, res, 404, 'no such object');
  try {
    const { size, mtime, mtimeMs } = await file.stat();
    const etag = `"${Math.trunc(mtimeMs).toString(36)}-${size.toString(36)}"`;
    const maxAge = Math.max(0, Math.floor((grant.expires - config.now().getTime()) / 1000));
    res.setHeader('ETag', etag);
    res.setHeader('Last-Modified', mtime.toUTCString());
    res.setHeader('Accept-Ranges', 'bytes');
    res.setHeader('Cache-Control', `private, max-age=${maxAge}, immutable`);
    if (req.headers['if-none-match'] === etag) {
      res.writeHead(304).end();
      return;
    }
    const ifRange = req.headers['if-range'];
    const current = ifRange === undefined || ifRange === etag || ifRange === mtime.toUTCString();
    const range = current ? parseRange(req.headers.range, size) : null;
    if (range === 'unsatisfiable') {
      res.setHeader('Content-Range', `bytes */${size}`);
      return refuse(req, res, 416, 'no such range');
    }
    const { start, end } = range ?? { start: 0, end: size - 1 };
    if (range) res.setHeader('Content-Range', `bytes ${start}-${end}/${size}`);
    res.writeHead(range ? 206 : 200, {
      'Content-Type': grant.type,
      'Content-Disposition': contentDisposition(grant.disposition, grant.name),
      'Content-Length': end - start + 1,
    });
    if (req.method === 'HEAD' || size === 0) res.end();
    else {
      const body = file.createReadStream({ start, end, autoClose: false });
      await pipeline(body, res, { signal: AbortSignal.timeout(MAX_TRANSFER_MS) });
    }
  } finally {
    await file.close();
  }
}

/** RFC 9110 14.2: one range is served; a form we do not know, or several ranges, mean the whole object. */
function parseRange(
  header: string | undefined,
  size: number,
): { start: number; end: number } | null | 'unsatisfiable' {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (!match || (!match[1] && !match[2])) return null;
  const [first, last] = [match[1] ?? '', match[2] ?? ''];
  const start = first ? Number(first) : Math.max(0, size - Number(last));
  const end = first && last ? Math.min(Number(last), size - 1) : size - 1;
  if (first && last && Number(last) < start) return null;
  return start >= size || (!first && Number(last) === 0) ? 'unsatisfiable' : { start, end };
}

function refuse(req: IncomingMessage, res: ServerResponse, status: number, why: string): void {
  // The unread body is drained so that the client can read this answer, unless it is endless.
  const length = Number(req.headers['content-length'] ?? (req.headers['transfer-encoding'] ? Infinity : 0));
  if (length > 32 * 1024 * 1024) res.setHeader('Connection', 'close');
  res.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(why),
  });
  res.end(req.method === 'HEAD' ? undefined : why);
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
