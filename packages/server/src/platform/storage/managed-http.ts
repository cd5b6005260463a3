import { access, link, mkdir, open, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ApiError } from '@parley/protocol';
import type { ErrorBody, ErrorCode } from '@parley/protocol';
import { readGrant } from './managed-url.ts';
import type { Grant } from './managed-url.ts';
import { lockUpload, pacemaker, slowest, TooSlow, Transfers } from './managed-transfers.ts';
import type { Slowest } from './managed-transfers.ts';
import { contentDisposition } from './port.ts';

export interface HandlerConfig {
  /**
   * The URL at which clients reach the handler, including its path; it has an origin of its own if the operator
   * configured one.
   */
  baseUrl: string;
  /**
   * The first signs URLs, and the signature of any is accepted: there are more than one while the master key is rotated.
   * Every process that serves the same directory has the same.
   */
  secrets: readonly Uint8Array[];
  now: () => Date;
  /** Returns a unique name for an unfinished file. */
  uniqueName: () => string;
  incoming: string;
  pathOf: (key: string) => string;
  /** Transfers that are slower are cut off. */
  slowest?: Slowest;
}

type Handler = HandlerConfig & { slowest: Slowest; transfers: Transfers };

/** Milliseconds for one transfer in either direction; a slower client must start again. */
const MAX_TRANSFER_MS = 15 * 60_000;
/**
 * Milliseconds for which the rest of a refused body is read, so that the client can read the answer; then the
 * connection is closed.
 */
const LINGER_MS = 1_000;

/**
 * The object endpoint of the managed storage: OPTIONS, PUT, GET and HEAD of signed URLs. `stamp` sets headers before
 * anything is answered.
 */
export function createManagedHandler(options: HandlerConfig) {
  const config: Handler = { slowest, ...options, transfers: new Transfers() };
  const prefix = `${new URL(config.baseUrl).pathname.replace(/\/+$/, '')}/`;

  return (
    req: IncomingMessage,
    res: ServerResponse,
    stamp: () => Promise<void> = () => Promise.resolve(),
  ): boolean => {
    const [path = '', query = ''] = (req.url ?? '').split('?', 2);
    if (!path.startsWith(prefix)) return false;
    setCommonHeaders(res);
    stamp()
      .catch(() => undefined)
      .then(() => answer(config, req, res, path.slice(prefix.length), query))
      .catch((error: unknown) => {
        // The disk failed, or the client went away or is too slow; the partial file is deleted already.
        if (res.headersSent) res.destroy();
        else if (error instanceof TooSlow) refuse(req, res, 408, 'The transfer is too slow.');
        else refuse(req, res, 500, 'The object could not be transferred.');
      });
    return true;
  };
}

const exposed =
  'ETag, Content-Length, Content-Range, Content-Disposition, Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After';

function setCommonHeaders(res: ServerResponse): void {
  // Everything stored here came from strangers: browsers must never sniff it, run it or frame it with rights.
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Content-Security-Policy', "sandbox; default-src 'none'");
  res.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
  res.setHeader('Referrer-Policy', 'no-referrer');
  // A signed URL is the credential, so pages of every origin may use the storage.
  res.setHeader('Access-Control-Allow-Origin', '*');
  res.setHeader('Access-Control-Expose-Headers', exposed);
}

async function answer(
  config: Handler,
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
  const grant = readGrant(config.secrets, key, query, config.now());
  if (grant === 'invalid') return refuse(req, res, 403, 'The signature does not match.');
  if (grant === 'expired') return refuse(req, res, 403, 'The URL has expired.');
  if (grant.op === 'put' ? req.method !== 'PUT' : req.method !== 'GET' && req.method !== 'HEAD')
    return refuse(req, res, 405, 'The URL was not signed for this method.');
  const end = config.transfers.begin(grant.op, key);
  if (!end) {
    res.setHeader('Retry-After', '5');
    return refuse(req, res, 503, 'Too many transfers are under way.');
  }
  try {
    await (grant.op === 'put' ? store(config, req, res, grant) : serve(config, req, res, grant));
  } finally {
    end();
  }
}

async function store(
  config: Handler,
  req: IncomingMessage,
  res: ServerResponse,
  grant: Grant & { op: 'put' },
) {
  const length = req.headers['content-length'];
  if (length === undefined) return refuse(req, res, 411, 'A Content-Length is required.');
  if (Number(length) > grant.size)
    return refuse(req, res, 413, `The URL was signed for ${grant.size} bytes.`);
  if (Number(length) !== grant.size)
    return refuse(req, res, 400, `The URL was signed for ${grant.size} bytes.`);
  if (req.headers['content-type'] !== grant.type)
    return refuse(req, res, 400, `The URL was signed for ${grant.type}.`);
  const path = config.pathOf(grant.key);
  if (await exists(path)) return refuse(req, res, 409, 'The object is there already.');

  const temporary = join(config.incoming, config.uniqueName());
  const file = await open(temporary, 'wx', 0o600);
  let unlock: (() => Promise<void>) | null = null;
  try {
    unlock = await lockUpload(config.incoming, grant.key, temporary, config.slowest, config.now);
    if (!unlock) {
      res.setHeader('Retry-After', String(Math.ceil((2 * config.slowest.ms) / 1000)));
      return refuse(req, res, 409, 'Another upload of the object is under way.');
    }
    await receive(config, req, grant.size, file);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    // Unlike a rename, a link never replaces a file: of two uploads of one object the first stays.
    await link(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return refuse(req, res, 409, 'The object is there already.');
  } finally {
    await file.close().catch(() => undefined);
    await unlink(temporary).catch(() => undefined);
    await unlock?.();
  }
  res.writeHead(201, { 'Content-Length': 0 }).end();
}

async function receive(config: Handler, req: IncomingMessage, size: number, file: FileHandle) {
  const pace = pacemaker(config.slowest);
  try {
    const signal = AbortSignal.any([pace.signal, AbortSignal.timeout(MAX_TRANSFER_MS)]);
    await pipeline(exactly(req, size, pace.moved), file.createWriteStream({ flush: true }), { signal });
  } catch (error) {
    throw pace.signal.aborted ? pace.signal.reason : error;
  } finally {
    pace.stop();
  }
}

/** The parser enforces the Content-Length of a request; this enforces the signed size in any case. */
async function* exactly(req: IncomingMessage, size: number, moved: (bytes: number) => void) {
  let seen = 0;
  // Destroying the request would close its connection, and the answer would be lost.
  for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    seen += chunk.length;
    moved(chunk.length);
    if (seen > size) throw new RangeError('more bytes than signed for');
    yield chunk;
  }
  if (seen !== size) throw new RangeError('fewer bytes than signed for');
}

async function serve(
  config: Handler,
  req: IncomingMessage,
  res: ServerResponse,
  grant: Grant & { op: 'get' },
) {
  const file = await open(config.pathOf(grant.key)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (!file) return refuse(req, res, 404, 'Object not found.');
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
      return refuse(req, res, 416, 'The range cannot be satisfied.');
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
      const pace = pacemaker(config.slowest);
      const body = file.createReadStream({ start, end, autoClose: false });
      body.on('data', (chunk) => pace.moved(chunk.length));
      const signal = AbortSignal.any([pace.signal, AbortSignal.timeout(MAX_TRANSFER_MS)]);
      await pipeline(body, res, { signal }).finally(pace.stop);
    }
  } finally {
    await file.close();
  }
}

/** RFC 9110 14.2: one range is served; for an unknown form, or several ranges, the whole object is sent. */
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

const codes: Partial<Record<number, ErrorCode>> = {
  403: 'forbidden',
  404: 'not_found',
  413: 'file_too_large',
  500: 'internal',
  503: 'storage_unavailable',
};

/** The body has the form of errors#body; the status may be more specific than its code. */
function refuse(req: IncomingMessage, res: ServerResponse, status: number, message: string): void {
  const { code, row, retryAfterMs } = new ApiError(codes[status] ?? 'invalid_request');
  const requestId = String(res.getHeader('Request-Id') ?? '');
  const wait = retryAfterMs === null ? {} : { retryAfterMs };
  const body = JSON.stringify({
    error: { type: row.type, code, message, requestId, ...wait },
  } satisfies ErrorBody);
  // The unread body is drained so that the client can read this answer, but only for a short time.
  const timer = setTimeout(() => !req.complete && req.destroy(), LINGER_MS);
  res.once('close', () => req.complete && clearTimeout(timer));
  res.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  });
  res.end(req.method === 'HEAD' ? undefined : body);
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
