import { ApiError } from '@parley/protocol';
import type { ErrorCode } from '@parley/protocol';
import type { Bus } from '../../platform/bus/port.ts';

/**
 * How a process talks to the media node of a call: directly if it is the same process, otherwise by question and
 * answer over the bus. A question without an answer is `calls_unavailable`.
 */

export interface MediaRequest {
  method: string;
  env: number;
  call: number;
  user: number;
  d: Record<string, unknown>;
}

export type MediaHandler = (request: MediaRequest) => Promise<unknown>;

export interface MediaLink {
  ask(node: string, request: MediaRequest): Promise<unknown>;
  /** From now on this process is a media node; null ends that. */
  serve(handler: MediaHandler | null): void;
  start(): Promise<void>;
  stop(): void;
}

const timeoutMs = 8_000;
/** How many questions may wait for an answer. */
const mostWaiting = 10_000;

type Answer =
  { value: unknown } | { error: { code: ErrorCode; message: string; retryAfterMs: number | null } };

export function createMediaLink({ bus, node }: { bus: Bus; node: string }): MediaLink {
  let handler: MediaHandler | null = null;
  let last = 0;
  const waiting = new Map<number, (answer: Answer) => void>();
  const gone = () => new ApiError('calls_unavailable', { message: 'The media server does not answer.' });

  async function answer(request: MediaRequest): Promise<Answer> {
    try {
      if (!handler) throw gone();
      return { value: (await handler(request)) ?? null };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { code, message, retryAfterMs } = error;
      return { error: { code, message, retryAfterMs } };
    }
  }

  bus.listen({
    message: (channel, payload) => {
      if (channel === `m:${node}`) {
        const { id, from, request } = JSON.parse(payload.slice(1)) as {
          id: number;
          from: string;
          request: MediaRequest;
        };
        void answer(request)
          .catch((): Answer => ({
            error: { code: 'internal', message: 'The media server failed.', retryAfterMs: 1_000 },
          }))
          .then((result) => bus.publish(`r:${from}`, `R${JSON.stringify({ id, result })}`));
      } else if (channel === `r:${node}`) {
        const { id, result } = JSON.parse(payload.slice(1)) as { id: number; result: Answer };
        waiting.get(id)?.(result);
      }
    },
    restored: () => undefined,
  });

  async function overBus(to: string, request: MediaRequest): Promise<Answer> {
    if (waiting.size >= mostWaiting) throw gone();
    const id = ++last;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Answer>((resolve, reject) => {
        waiting.set(id, resolve);
        timer = setTimeout(() => reject(gone()), timeoutMs);
        bus.publish(`m:${to}`, `M${JSON.stringify({ id, from: node, request })}`);
      });
    } finally {
      clearTimeout(timer);
      waiting.delete(id);
    }
  }

  return {
    ask: async (to, request) => {
      if (to !== node && bus.alone) throw gone();
      const result = await (to === node ? answer(request) : overBus(to, request));
      if ('value' in result) return result.value;
      const { code, message, retryAfterMs } = result.error;
      throw new ApiError(code, { message, ...(retryAfterMs === null ? {} : { retryAfterMs }) });
    },
    serve: (next) => {
      handler = next;
    },
    start: () => bus.subscribe([`m:${node}`, `r:${node}`]),
    stop: () => bus.unsubscribe([`m:${node}`, `r:${node}`]),
  };
}
