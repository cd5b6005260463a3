import type { ClientOptions } from '@parley/client';
import { createWire } from '@parley/react/devtools';
import { nameOf } from './people.ts';
import type { ActionId } from './snippets.ts';
import { Value } from './store.ts';

/** What the page does by itself does not hide what somebody did just before. */
const byItself = new Set<ActionId>(['connect', 'read', 'presence', 'typing']);
const chosenMs = 6_000;

/** The network of one person: it can be cut, and everything that goes over it can be watched. */
export class Network {
  readonly offline = new Value(false);
  readonly wire = createWire();
  /** The person's last action that the network shows. */
  readonly action = new Value<{ id: ActionId; no: number } | null>(null);
  readonly #sockets = new Set<WebSocket>();
  readonly #wakes = new Set<() => void>();
  #count = 0;
  #chosenAt = 0;

  /** For `createClient`. */
  readonly options: Pick<ClientOptions, 'WebSocket' | 'fetch' | 'wake'> = {
    WebSocket: this.#socketClass(),
    fetch: (input, init) => this.#fetch(input, init),
    wake: (wake) => {
      this.#wakes.add(wake);
      const visible = (): void => {
        if (document.visibilityState === 'visible') wake();
      };
      window.addEventListener('online', wake);
      document.addEventListener('visibilitychange', visible);
      return () => {
        this.#wakes.delete(wake);
        window.removeEventListener('online', wake);
        document.removeEventListener('visibilitychange', visible);
      };
    },
  };

  /** Turns the network off or on. */
  cut = (offline: boolean): void => {
    if (offline === this.offline.get()) return;
    this.offline.set(offline);
    this.did('offline');
    if (!offline) return void this.#wakes.forEach((wake) => wake());
    for (const socket of this.#sockets) {
      // Like a dead network: nothing arrives any more, and there is no close frame.
      const closed = socket.onclose;
      socket.onclose = socket.onmessage = null;
      socket.close();
      closed?.call(socket, new CloseEvent('close', { code: 1006 }));
    }
    this.#sockets.clear();
    this.wire.note('none', { t: 'closed', code: 1006, why: 'no network' });
  };

  did = (id: ActionId): void => {
    // The caller joins their own call.
    if (id === 'answer' && this.action.get()?.id === 'call') return;
    const chosen = !byItself.has(id);
    if (chosen) this.#chosenAt = Date.now();
    else if (Date.now() - this.#chosenAt < chosenMs) return;
    this.action.set({ id, no: ++this.#count });
  };

  #socketClass(): NonNullable<ClientOptions['WebSocket']> {
    const network = this;
    return class extends WebSocket {
      constructor(url: string, protocols: string[]) {
        if (network.offline.get()) throw new Error('There is no network.');
        super(url, protocols);
        network.#sockets.add(this);
        this.addEventListener('message', ({ data }) => {
          if (network.#sockets.has(this)) network.wire.note('in', data);
        });
        this.addEventListener('close', ({ code, reason }) => {
          if (network.#sockets.delete(this)) network.wire.note('none', { t: 'closed', code, why: reason });
        });
      }
      override send(data: string): void {
        network.wire.note('out', data);
        const action = ofFrame(JSON.parse(data) as Record<string, unknown>);
        if (action) network.did(action);
        super.send(data);
      }
    };
  }

  async #fetch(input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
    if (this.offline.get()) throw new TypeError('There is no network.');
    const { pathname } = new URL(String(input), location.href);
    const action = ofRequest(init?.method ?? 'GET', pathname, init?.body);
    if (action) this.did(action);
    const response = await fetch(input, init);
    return response.ok && pathname.startsWith('/v1/users') ? named(response) : response;
  }
}

/** A page may not name users, that takes a secret key: the demo shows the names that its people would have. */
async function named(response: Response): Promise<Response> {
  interface User {
    id: string;
    name: string | null;
  }
  const body = (await response.json()) as User | { data: User[] };
  for (const user of 'data' in body ? body.data : [body]) user.name ||= nameOf(user.id);
  return Response.json(body, { status: response.status });
}

function ofFrame({ t, d }: Record<string, unknown>): ActionId | null {
  const data = (d ?? {}) as {
    replyTo?: string;
    attachments?: unknown;
    poll?: unknown;
    mentions?: unknown;
    state?: string;
    source?: string;
  };
  if (t === 'auth') return 'connect';
  if (t === 'message.send' && data.poll) return 'poll';
  if (t === 'message.send' && data.mentions) return 'mention';
  if (t === 'message.send') return data.replyTo ? 'reply' : data.attachments ? null : 'send'; // Its upload was shown.
  if (t === 'typing') return data.state === 'start' ? 'typing' : null;
  if (t === 'read') return 'read';
  if (t === 'presence.watch') return 'presence';
  if (t === 'call.produce') return data.source === 'screen' ? 'screen' : null;
  return null;
}

const requests: readonly [method: string, path: RegExp, id: ActionId][] = [
  ['PATCH', /^\/v1\/messages\//, 'edit'],
  ['DELETE', /^\/v1\/messages\/[^/]+$/, 'delete'],
  ['PUT', /\/pin$/, 'pin'],
  ['DELETE', /\/pin$/, 'pin'],
  ['PUT', /^\/v1\/messages\/[^/]+\/votes$/, 'vote'],
  ['POST', /\/poll\/close$/, 'vote'],
  ['POST', /^\/v1\/uploads$/, 'upload'],
  ['PUT', /\/notifications$/, 'level'],
  ['POST', /\/members$/, 'members'],
  ['DELETE', /\/members\//, 'members'],
  ['POST', /^\/v1\/calls$/, 'call'],
  ['POST', /^\/v1\/calls\/[^/]+\/join$/, 'answer'],
];
function ofRequest(method: string, path: string, body: unknown): ActionId | null {
  if (method === 'POST' && path === '/v1/conversations')
    return String(body).includes('"group"') ? 'group' : 'direct';
  if (path === '/v1/uploads' && String(body).includes('"waveform"')) return 'voice';
  return requests.find(([m, p]) => m === method && p.test(path))?.[2] ?? null;
}
