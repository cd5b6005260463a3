import type { Account } from '../load/messages.ts';
import type { MediaLoad } from './media-load.ts';

/** One user in calls: signalling over REST and its socket as the SDK does it, media in the load generator. */

interface Transport {
  id: string;
  iceParameters: { usernameFragment: string; password: string };
  iceCandidates: { protocol: string; port: number }[];
}
interface Producer {
  id: string;
}
interface Opened {
  send: Transport;
  recv: Transport;
  producers: Producer[];
}
interface Frame {
  t: string;
  re?: number;
  d: Record<string, unknown>;
}

const receiving = {
  codecs: [
    { kind: 'audio', mimeType: 'audio/opus', clockRate: 48_000, channels: 2, preferredPayloadType: 100 },
    { kind: 'video', mimeType: 'video/VP8', clockRate: 90_000, preferredPayloadType: 101 },
  ],
  headerExtensions: [],
};

/** Speech, and a picture of 500 kbit/s. */
export const sources = {
  mic: { kind: 'audio', payloadType: 111, bytes: 80, perSecond: 50, clockRate: 48_000 },
  camera: { kind: 'video', payloadType: 96, bytes: 1_040, perSecond: 60, clockRate: 90_000 },
} as const;

const answerMs = 20_000;

let ssrc = 1_000;

export class Participant {
  readonly #url: string;
  readonly #account: Account;
  readonly #media: MediaLoad;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, { resolve: (d: never) => void; reject: (e: Error) => void }>();
  #last = 0;
  #session = '';
  #closed: Error | null = null;
  #opened: Opened | null = null;
  /** Told of a call that rings. */
  onRing: (callId: string) => void = () => undefined;

  private constructor(url: string, account: Account, media: MediaLoad) {
    this.#url = url;
    this.#account = account;
    this.#media = media;
    this.#socket = new WebSocket(`${url.replace('http', 'ws')}/v1?sdk=bench/1`, ['chat.v1']);
  }

  static async connect(url: string, account: Account, media: MediaLoad): Promise<Participant> {
    const one = new Participant(url, account, media);
    await one.#hello();
    return one;
  }

  get conversation(): string {
    return this.#account.rooms[0]!;
  }

  #hello(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.onopen = () =>
        this.#socket.send(JSON.stringify({ t: 'auth', d: { token: this.#account.secret } }));
      this.#socket.onerror = () => reject(new Error('the socket failed'));
      this.#socket.onclose = ({ code, reason }) => {
        const error = new Error(`the socket was closed: ${code} ${reason}`);
        reject(error);
        for (const one of this.#waiting.values()) one.reject(error);
        this.#closed = error;
      };
      this.#socket.onmessage = ({ data }) => {
        const { t, re, d } = JSON.parse(data as string) as Frame;
        if (t === 'hello') {
          this.#session = d['sessionId'] as string;
          resolve();
        } else if (t === 'hb') this.#socket.send('{"t":"hb"}');
        else if (t === 'call.incoming') this.onRing((d['call'] as { id: string }).id);
        else if (t === 'ack') this.#waiting.get(re!)?.resolve(d as never);
        else if (t === 'error') this.#waiting.get(re!)?.reject(new Error(JSON.stringify(d)));
      };
    });
  }

  #ask<T>(t: string, d: object): Promise<T> {
    const id = ++this.#last;
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(this.#closed);
      const late = () => reject(new Error(`${t}: no answer`));
      AbortSignal.timeout(answerMs).addEventListener('abort', late);
      this.#waiting.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ t, id, d }));
    }).finally(() => this.#waiting.delete(id));
  }

  async #http<T>(path: string, body?: object): Promise<T> {
    const answer = await fetch(`${this.#url}/v1/calls${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#account.secret}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(answerMs),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text.slice(0, 200)}`);
    return JSON.parse(text) as T;
  }

  async start(): Promise<string> {
    const body = { conversationId: this.conversation, kind: 'video' };
    return (await this.#http<{ id: string }>('', body)).id;
  }

  /** Until both transports are connected: the answer is how many milliseconds it took. */
  async join(callId: string): Promise<number> {
    const began = performance.now();
    const { media } = await this.#http<{ media: { device: string } }>(
      `/${callId}/join?sessionId=${this.#session}`,
    );
    const opened = await this.#ask<Opened>('call.open', {
      callId,
      device: media.device,
      rtpCapabilities: receiving,
    });
    this.#opened = opened;
    const dtlsParameters = {
      role: 'client',
      fingerprints: [{ algorithm: 'sha-256', value: this.#media.fingerprint.toUpperCase() }],
    };
    await Promise.all(
      [opened.send, opened.recv].map(async ({ id, iceParameters, iceCandidates }) => {
        await this.#ask('call.connect', { callId, transportId: id, dtlsParameters });
        await this.#media.connect(id, {
          ufrag: iceParameters.usernameFragment,
          password: iceParameters.password,
          port: iceCandidates.find((c) => c.protocol === 'udp')!.port,
        });
      }),
    );
    return performance.now() - began;
  }

  async send(callId: string): Promise<void> {
    for (const [source, { kind, payloadType, clockRate, ...pace }] of Object.entries(sources)) {
      const own = ++ssrc;
      await this.#ask('call.produce', {
        callId,
        source,
        kind,
        rtpParameters: {
          mid: String(own),
          codecs: [
            kind === 'audio'
              ? { mimeType: 'audio/opus', payloadType, clockRate, channels: 2, parameters: {} }
              : { mimeType: 'video/VP8', payloadType, clockRate, parameters: {} },
          ],
          encodings: [{ ssrc: own }],
          rtcp: { cname: 'bench' },
        },
      });
      await this.#media.send(this.#opened!.send.id, { ssrc: own, payloadType, clockRate, ...pace });
    }
  }

  /** Receives what was sent when it joined. */
  async receive(callId: string): Promise<void> {
    const { consumers } = await this.#ask<{ consumers: { id: string }[] }>('call.consume', {
      callId,
      producerIds: this.#opened!.producers.map((p) => p.id),
    });
    for (const { id } of consumers) await this.#ask('call.layers', { callId, consumerId: id, paused: false });
  }

  async leave(callId: string): Promise<void> {
    await this.#http(`/${callId}/leave`).catch(() => undefined);
    if (this.#opened)
      await Promise.all([this.#opened.send, this.#opened.recv].map((t) => this.#media.close(t.id)));
    this.#opened = null;
  }

  close(): void {
    this.#socket.close();
  }
}
