import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verify, type KeyObject } from 'node:crypto';
import type { PushEndpoints } from '../../../src/platform/push/port.ts';
import type { PushCredentials } from '../../../src/platform/push/credentials.ts';

/** What a device would be told, whatever the vendor's words for it are. */
export interface Delivered {
  token: string;
  title: string | undefined;
  body: string | undefined;
  badge: number | undefined;
  collapse: string;
  data: Record<string, string>;
  priority: string;
  ttlSeconds: number;
  /** Of a call: what a device of Apple gets. */
  apple?: { type: string; priority: string; topic?: string; category: unknown; alert: unknown };
}

export interface Trouble {
  status: number;
  retryAfter?: string;
}

/** A local server that checks what the vendor checks. */
export interface Vendor {
  credentials: PushCredentials;
  /** Well formed, but not the ones the vendor knows. */
  wrongCredentials: PushCredentials;
  endpoints: PushEndpoints;
  goodToken: string;
  deadToken: string;
  /** Longest collapse id the vendor takes. */
  maxCollapse: number;
  delivered: Delivered[];
  /** The rules that requests broke; must stay empty where the adapter is right. */
  violations: string[];
  /** Every proof of identity that came: one per token made, not per push. */
  proofs: Set<string>;
  /** How long a proof may be used; undefined where it is a fixed secret. */
  proofLifeMs: number | undefined;
  /** Answers to give before the next good ones. */
  trouble: Trouble[];
  /** Ends every open connection. */
  drop(): void;
  close(): Promise<void>;
}

/** A request broke a rule of the vendor. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, rule: string) {
    super(rule);
    this.status = status;
    this.code = code;
  }
}

export function rule(holds: unknown, status: number, code: string, text: string): asserts holds {
  if (!holds) throw new Refusal(status, code, text);
}

export interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

/** An HTTP/1.1 server on a free port; a refused request is answered by `refused`. */
export async function serve(
  handle: (request: IncomingMessage, body: Buffer) => Answer,
  refused: (refusal: Refusal) => Answer,
): Promise<{ origin: string; drop(): void; close(): Promise<void> }> {
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const answer = answerOf(() => handle(request, Buffer.concat(chunks)), refused);
      response.writeHead(answer.status, answer.headers);
      response.end(answer.body === undefined ? undefined : JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    drop: () => server.closeAllConnections(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function answerOf(handle: () => Answer, refused: (refusal: Refusal) => Answer): Answer {
  try {
    return handle();
  } catch (error) {
    if (error instanceof Refusal) return refused(error);
    return { status: 500, body: { error: String(error) } };
  }
}

export interface Jwt {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
}

/** RFC 7515: the signature is over the first two parts; undefined where anything is wrong. */
export function verifyJwt(token: string, alg: 'ES256' | 'RS256', key: KeyObject): Jwt | undefined {
  const [header = '', claims = '', signature = '', ...rest] = token.split('.');
  const valid = verify(
    'sha256',
    Buffer.from(`${header}.${claims}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
  const read = (part: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
  if (!valid || rest.length > 0 || read(header).alg !== alg) return undefined;
  return { header: read(header), claims: read(claims) };
}

export function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

export function hasOnly(value: unknown, keys: readonly string[]): boolean {
  return Object.keys(record(value)).every((key) => keys.includes(key));
}

export function troubleAnswer({ status, retryAfter }: Trouble, body: unknown = {}): Answer {
  return { status, headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter }, body };
}
