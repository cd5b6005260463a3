import { ApiError } from '@parley/protocol';
import { channels } from '../node-bus.ts';
import type { NodeBus } from '../node-bus.ts';
import type { MediaAnswer, MediaRequest, MediaValue } from '../media-request.ts';

/**
 * How a process talks to the media node of a call: directly if it is the same process, otherwise by question and
 * answer over the bus. A question without an answer is `calls_unavailable`.
 */

type MediaHandler = (request: MediaRequest) => Promise<MediaValue>;

export type MediaLink = ReturnType<typeof createMediaLink>;

const timeoutMs = 8_000;
/** How many questions may wait for an answer. */
const mostWaiting = 10_000;

export function createMediaLink({ bus, node }: { bus: NodeBus; node: string }) {
  let handler: MediaHandler | null = null;
  const own = [channels.mediaNode(node), channels.mediaAnswers(node)];
  let last = 0;
  const waiting = new Map<number, (answer: MediaAnswer) => void>();
  const gone = () => new ApiError('calls_unavailable', { message: 'The media server does not answer.' });

  async function answer(request: MediaRequest): Promise<MediaAnswer> {
    try {
      if (!handler) throw gone();
      return { value: await handler(request) };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { code, message, retryAfterMs } = error;
      return { error: { code, message, retryAfterMs } };
    }
  }

  bus.on('mediaRequest', ({ id, from, request }) => {
    void answer(request)
      .catch((): MediaAnswer => ({
        error: { code: 'internal', message: 'The media server failed.', retryAfterMs: 1_000 },
      }))
      .then((result) => bus.publish('mediaAnswer', { id, result }, channels.mediaAnswers(from)));
  });
  bus.on('mediaAnswer', ({ id, result }) => waiting.get(id)?.(result));

  async function overBus(to: string, request: MediaRequest): Promise<MediaAnswer> {
    if (waiting.size >= mostWaiting) throw gone();
    const id = ++last;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<MediaAnswer>((resolve, reject) => {
        waiting.set(id, resolve);
        timer = setTimeout(() => reject(gone()), timeoutMs);
        bus.publish('mediaRequest', { id, from: node, request }, channels.mediaNode(to));
      });
    } finally {
      clearTimeout(timer);
      waiting.delete(id);
    }
  }

  return {
    ask: async (to: string, request: MediaRequest): Promise<MediaValue> => {
      if (to !== node && bus.alone) throw gone();
      const result = await (to === node ? answer(request) : overBus(to, request));
      if ('value' in result) return result.value;
      const { code, message, retryAfterMs } = result.error;
      throw new ApiError(code, { message, ...(retryAfterMs === null ? {} : { retryAfterMs }) });
    },
    /** From now on this process is a media node; null ends that. */
    serve: (next: MediaHandler | null): void => {
      handler = next;
    },
    start: () => bus.subscribe(own),
    stop: () => bus.unsubscribe(own),
  };
}
