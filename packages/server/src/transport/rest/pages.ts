import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Page, RestOptions } from './options.ts';

/**
 * Public pages. Each is rendered and compressed again after 10 s at the earliest, so that a request costs no more than
 * sending bytes. A browser that already has the page gets 304.
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

async function render(read: Page['body']): Promise<Rendered> {
  const body = Buffer.from(await read());
  const [br, gz] = await Promise.all([
    toBrotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
    toGzip(body, { level: 9 }),
  ]);
  const etag = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { etag, body, br, gzip: gz };
}

/** Callers who ask at the same time, or soon after, share one answer. One that failed is asked for again. */
export function remembered<T>(ask: () => Promise<T>, ms: number, now: () => number): () => Promise<T> {
  let asked: { at: number; answer: Promise<T> } | undefined;
  return () => {
    if (asked && now() - asked.at < ms) return asked.answer;
    const answer = ask();
    answer.catch(() => (asked = undefined));
    asked = { at: now(), answer };
    return answer;
  };
}

export function createPage(page: Page, now: () => number, isLocal: RestOptions['isLocal']) {
  const keep = (read: Page['body']) => remembered(() => render(read), renewMs, now);
  const here = keep(page.body);
  const elsewhere = page.elsewhere && keep(page.elsewhere);
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
