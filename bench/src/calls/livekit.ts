import { execFile } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { pause } from '../bench.ts';
import { start } from '../children.ts';
import type { Seat } from './crowd.ts';
import { own } from './media-load.ts';
import type { MediaLoad } from './media-load.ts';
import { sources } from './participant.ts';

/**
 * LiveKit's server, and participants for it: its signalling (protocol buffers over a socket, session descriptions) as far as the crowd needs
 * it, with the media of the same load generator. It runs on one core and on loopback alone; it knows no STUN server.
 */

const source = fileURLToPath(new URL('../../livekit-server', import.meta.url));
const port = 25_700;
const mediaPort = 25_701;
const key = 'bench';
const secret = randomBytes(32).toString('hex');
const readyMs = 30_000;
const answerMs = 20_000;

export interface LiveKit {
  pid: number;
  stop(): Promise<void>;
}

/** Builds it first: needs the Go tool chain, and its modules at the first time. */
export async function startLiveKit(directory: string): Promise<LiveKit> {
  const program = join(directory, 'livekit-server');
  const what = 'github.com/livekit/livekit-server/cmd/server';
  await promisify(execFile)('go', ['build', '-buildvcs=false', '-o', program, what], { cwd: source });
  const config = {
    port,
    bind_addresses: ['127.0.0.1'],
    keys: { [key]: secret },
    logging: { level: 'error' },
    rtc: {
      udp_port: mediaPort,
      tcp_port: 0,
      node_ip: '127.0.0.1',
      use_external_ip: false,
      use_ice_lite: true,
      enable_loopback_candidate: true,
      interfaces: { includes: ['lo'] },
      allow_tcp_fallback: false,
    },
  };
  const child = start(program, [], {
    env: { ...process.env, GOMAXPROCS: '1', LIVEKIT_CONFIG: JSON.stringify(config) },
  });
  const late = performance.now() + readyMs;
  while (!(await fetch(`http://127.0.0.1:${port}`).catch(() => null))?.ok) {
    if (performance.now() > late || child.process.exitCode !== null) {
      await child.stop('SIGKILL');
      throw new Error(`livekit-server did not get ready: ${child.tail()}`);
    }
    await pause(100);
  }
  return { pid: child.pid, stop: () => child.stop('SIGKILL') };
}

export function liveKitSeat(media: MediaLoad, room: string, identity: string): Seat {
  let participant: Participant;
  return {
    join: async () => {
      const began = performance.now();
      participant = new Participant(media, room, identity);
      await participant.joined;
      return performance.now() - began;
    },
    send: () => participant.send(),
    // The server subscribes everybody to everything.
    receive: () => Promise.resolve(),
  };
}

let ssrc = 1_000;

/** It has a connection that the server offers, to receive; one who sends offers another. */
class Participant {
  readonly #media: MediaLoad;
  readonly #identity: string;
  readonly #socket: WebSocket;
  readonly #answered = Promise.withResolvers<string>();
  #offered = false;
  /** Resolves when media can arrive. */
  readonly joined: Promise<void>;

  constructor(media: MediaLoad, room: string, identity: string) {
    this.#media = media;
    this.#identity = identity;
    const query = new URLSearchParams({
      access_token: token(room, identity),
      protocol: '15',
      auto_subscribe: '1',
    });
    this.#socket = new WebSocket(`ws://127.0.0.1:${port}/rtc?${query.toString()}`);
    this.#socket.binaryType = 'arraybuffer';
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.joined = promise;
    this.#answered.promise.catch(() => undefined);
    const fail = (why: string) => {
      reject(new Error(why));
      this.#answered.reject(new Error(why));
    };
    AbortSignal.timeout(answerMs).addEventListener('abort', () => fail('LiveKit: no answer'));
    this.#socket.onerror = () => fail('LiveKit: the socket failed');
    this.#socket.onclose = () => fail('LiveKit: the socket was closed');
    this.#socket.onmessage = ({ data }) => {
      const { number, value } = firstField(Buffer.from(data as ArrayBuffer));
      if (number === response.answer) this.#answered.resolve(sdpOf(value));
      if (number !== response.offer) return;
      const offer = sdpOf(value);
      this.#say(request.answer, 'answer', answerTo(offer, media.fingerprint));
      // Later ones name what was published meanwhile.
      if (this.#offered) return;
      this.#offered = true;
      this.#connect('receive', offer, true).then(resolve, reject);
    };
  }

  async send(): Promise<void> {
    const tracks = Object.entries(sources).map(([name, pace]) => ({
      name,
      cid: `${this.#identity}-${name}`,
      ssrc: ++ssrc,
      ...pace,
    }));
    for (const { name, cid, kind } of tracks)
      this.#socket.send(
        field(
          request.addTrack,
          Buffer.concat([
            field(1, cid),
            field(2, name),
            field(3, kind === 'audio' ? 0 : 1),
            field(8, kind === 'audio' ? 2 : 1), // microphone or camera
            field(13, 1), // no redundant encoding
          ]),
        ),
      );
    const sections = tracks.map(({ cid, kind, payloadType, ssrc: id }, mid) => [
      `m=${kind} 9 UDP/TLS/RTP/SAVPF ${payloadType}`,
      ...ofMedia(String(mid), this.#media.fingerprint),
      'a=sendonly',
      'a=rtcp-mux',
      `a=rtpmap:${payloadType} ${codecs[kind]}`,
      `a=msid:${this.#identity} ${cid}`,
      `a=ssrc:${id} cname:bench`,
      `a=ssrc:${id} msid:${this.#identity} ${cid}`,
    ]);
    this.#say(request.offer, 'offer', description(['0', '1'], sections));
    await this.#connect('send', await this.#answered.promise, false);
    for (const { ssrc: id, payloadType, bytes, perSecond, clockRate } of tracks)
      await this.#media.send(`${this.#identity}-send`, {
        ssrc: id,
        payloadType,
        bytes,
        perSecond,
        clockRate,
      });
  }

  #say(number: number, type: string, sdp: string): void {
    this.#socket.send(field(number, Buffer.concat([field(1, type), field(2, sdp)])));
  }

  #connect(which: string, remote: string, dataChannels: boolean): Promise<void> {
    const of = (name: string): string => new RegExp(`^a=${name}:(\\S+)`, 'm').exec(remote)![1]!;
    return this.#media.connect(`${this.#identity}-${which}`, {
      ufrag: of('ice-ufrag'),
      password: of('ice-pwd'),
      port: mediaPort,
      dataChannels,
    });
  }
}

function token(room: string, identity: string): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const expires = Math.floor(Date.now() / 1_000) + 3_600;
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({
    iss: key,
    sub: identity,
    exp: expires,
    video: { room, roomJoin: true },
  })}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** Session descriptions (RFC 8866), as much of them as LiveKit reads. */

const codecs = { audio: 'opus/48000/2', video: 'VP8/90000' };

const description = (mids: string[], sections: string[][]): string =>
  [
    'v=0',
    'o=- 1 1 IN IP4 127.0.0.1',
    's=-',
    't=0 0',
    `a=group:BUNDLE ${mids.join(' ')}`,
    ...sections.flat(),
    '',
  ].join('\r\n');

/** The load generator speaks first in ICE and in DTLS. */
const ofMedia = (mid: string, fingerprint: string): string[] => [
  'c=IN IP4 0.0.0.0',
  `a=mid:${mid}`,
  `a=ice-ufrag:${own.ufrag}`,
  `a=ice-pwd:${own.password}`,
  `a=fingerprint:sha-256 ${fingerprint.toUpperCase()}`,
  'a=setup:active',
];

function answerTo(offer: string, fingerprint: string): string {
  const offered = offer
    .split(/^m=/m)
    .slice(1)
    .map((section) => ({ section, mid: /^a=mid:(\S+)/m.exec(section)![1]! }));
  const sections = offered.map(({ section, mid }) => {
    const common = ofMedia(mid, fingerprint);
    if (section.startsWith('application'))
      return ['m=application 9 UDP/DTLS/SCTP webrtc-datachannel', ...common, 'a=sctp-port:5000'];
    const kind = section.startsWith('audio') ? 'audio' : 'video';
    const type = new RegExp(`^a=rtpmap:(\\d+) ${codecs[kind]}`, 'im').exec(section)![1]!;
    return [
      `m=${kind} 9 UDP/TLS/RTP/SAVPF ${type}`,
      ...common,
      'a=recvonly',
      'a=rtcp-mux',
      `a=rtpmap:${type} ${codecs[kind]}`,
    ];
  });
  return description(
    offered.map(({ mid }) => mid),
    sections,
  );
}

/** Protocol buffers: messages of SignalRequest and SignalResponse (livekit_rtc.proto), each of which has one field. */

const request = { offer: 1, answer: 2, addTrack: 4 };
const response = { answer: 2, offer: 3 };

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
  return Buffer.from([...bytes, value]);
}

function field(number: number, value: number | string | Buffer): Buffer {
  if (typeof value === 'number') return Buffer.concat([varint(number << 3), varint(value)]);
  const bytes = Buffer.from(value as string);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

/** The value is empty where it is a number. */
function firstField(message: Buffer): { number: number; value: Buffer; rest: Buffer } {
  let at = 0;
  const read = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++]!;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const tag = read();
  const length = (tag & 7) === 2 ? read() : 0;
  return { number: tag >>> 3, value: message.subarray(at, at + length), rest: message.subarray(at + length) };
}

/** Of a SessionDescription: its type is the first field, its text the second. */
const sdpOf = (value: Buffer): string => firstField(firstField(value).rest).value.toString();
