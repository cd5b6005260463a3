import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Page, RestOptions } from './options.ts';

/**
 * Public pages. Each is rendered and compressed once, and rendered again after 10 s at the earliest, so that a
 * request costs no more than sending bytes. A browser that already has the page gets 304.
 */

const renewMs = 10_000;
const encodings = ['br', 'gzip'] as const;

interface Rendered {
  etag: string;
  body: Buffer;
  br: Buffer;
  gzip: Buffer;
}

const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);

async function render(body: Buffer): Promise<Rendered> {
  const [br, gz] = await Promise.all([
    toBrotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
    toGzip(body, { level: 9 }),
  ]);
  const etag = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { etag, body, br, gzip: gz };
}

/** The page as it was at most `renewMs` ago; requests that arrive while it is rendered share the result. */
function kept(read: Page['body'], now: () => number): () => Promise<Rendered> {
  let known: Rendered | undefined;
  let looking: Promise<Rendered> | undefined;
  let lookedAt = -Infinity;
  const look = async (): Promise<Rendered> => {
    const body = Buffer.from(await read());
    if (!known?.body.equals(body)) known = await render(body);
    lookedAt = now();
    return known;
  };
  return () => {
    if (known && now() - lookedAt < renewMs) return Promise.resolve(known);
    return (looking ??= look().finally(() => (looking = undefined)));
  };
}

export function createPage(page: Page, now: () => number, isLocal: RestOptions['isLocal']) {
  const here = kept(page.body, now);
  const elsewhere = page.elsewhere && kept(page.elsewhere, now);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const current = elsewhere && !isLocal(request.raw) ? elsewhere : here;
    const { etag, ...forms } = await current();
    const accepted = String(request.headers['accept-encoding'] ?? '');
    const encoding = encodings.find((name) => accepts(accepted, name));
    // Each encoding is another representation, and has a tag of its own.
    const tag = `"${etag}${encoding ? `-${encoding}` : ''}"`;
    reply.headers({ ...page.headers, ETag: tag, Vary: 'Accept-Encoding' }).type(page.contentType);
    const seen = String(request.headers['if-none-match'] ?? '').split(/\s*,\s*/);
    if (seen.includes(tag) || seen.includes(`W/${tag}`)) return reply.code(304).send();
    if (encoding) reply.header('Content-Encoding', encoding);
    return reply.send(encoding ? forms[encoding] : forms.body);
  };
}

/** RFC 9110 12.5.3, as far as it is used: the encoding is named, and not with a weight of 0. */
const accepts = (header: string, name: string): boolean =>
  header
    .toLowerCase()
    .split(',')
    .some((part) => {
      const [coding, weight] = part.split(';').map((s) => s.trim());
      return coding === name && !/^q=0(\.0*)?$/.test(weight ?? '');
    });
