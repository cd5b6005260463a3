import type { BeforeSend, BeforeSendAnswer } from '@parley/protocol';
import { verifyWebhook, WebhookVerificationError } from './webhook.ts';
import type { VerifyOptions, WebhookHeaders } from './webhook.ts';

/** What the before-send hook is asked. */
export interface BeforeSendEvent {
  id: string;
  type: 'message.before_send';
  createdAt: string;
  /** The environment's id. */
  env: string;
  /** True if nobody sent the message: somebody tries the hook. */
  test?: boolean;
  data: BeforeSend;
}

/** Nothing means `{ action: 'allow' }`. */
export type BeforeSendDecision = BeforeSendAnswer | void;

export interface HookOptions extends VerifyOptions {
  /** `whsec_…`, as it was shown when the hook was set. */
  secret: string;
  /** Decides on a message. What it throws is answered with 500, which Parley counts as a failure of the hook. */
  beforeSend: (
    message: BeforeSend,
    event: BeforeSendEvent,
  ) => BeforeSendDecision | Promise<BeforeSendDecision>;
  /** Gets what `beforeSend` threw; without it, it is written to the console. */
  onError?: (error: unknown) => void;
}

/** What is used of a request of Node's http server. Node's own type would oblige every project to install `@types/node`. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  headers: Record<string, string | string[] | undefined>;
}

/** What is used of an answer of Node's http server. */
export interface NodeResponse {
  writeHead(status: number, headers: Record<string, string>): { end(body?: string): unknown };
}

/** Answers requests of Node's http server, and those of the fetch standard. */
export interface HookHandler {
  (request: NodeRequest, response: NodeResponse): Promise<void>;
  (request: Request): Promise<Response>;
}

/** Far more than a message and its conversation can have. */
const largest = 1_048_576;

class TooLarge extends Error {}

async function bodyOf(chunks: AsyncIterable<Uint8Array> | null): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks ?? []) {
    size += chunk.length;
    if (size > largest) throw new TooLarge('The body is too large.');
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}

/**
 * Makes the handler of a synchronous hook: it verifies the signature, asks `beforeSend`, and answers. Give it the
 * request as it came: a body that was read or parsed before cannot be verified.
 */
export function hookHandler(options: HookOptions): HookHandler {
  const { secret, beforeSend, onError = console.error } = options;

  async function decide(
    chunks: AsyncIterable<Uint8Array> | null,
    headers: WebhookHeaders,
  ): Promise<{ status: number; body?: string }> {
    try {
      const body = await bodyOf(chunks);
      const event = verifyWebhook(body, headers, secret, options) as unknown as BeforeSendEvent;
      if (event.type !== 'message.before_send')
        return { status: 404, body: 'This hook decides on messages.' };
      const decision = await beforeSend(event.data, event);
      return decision ? { status: 200, body: JSON.stringify(decision) } : { status: 204 };
    } catch (error) {
      if (error instanceof WebhookVerificationError) return { status: 401, body: error.message };
      if (error instanceof TooLarge) return { status: 413, body: error.message };
      onError(error);
      return { status: 500, body: 'The hook failed.' };
    }
  }

  const typeOf = (status: number): Record<string, string> => ({
    'content-type': status === 200 ? 'application/json' : 'text/plain',
  });
  const handle = async (request: NodeRequest | Request, response?: NodeResponse) => {
    if (response) {
      const node = request as NodeRequest;
      const { status, body } = await decide(node, node.headers);
      response.writeHead(status, body === undefined ? {} : typeOf(status)).end(body);
      return;
    }
    const { headers, body: stream } = request as Request;
    const { status, body } = await decide(stream as AsyncIterable<Uint8Array> | null, headers);
    return new Response(body ?? null, { status, headers: body === undefined ? {} : typeOf(status) });
  };
  return handle as HookHandler;
}
