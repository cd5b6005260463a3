import { createClient } from '../../src/index.ts';
import { ParleyError } from '../../src/errors.ts';
import type { Client } from '../../src/index.ts';
import type { AckData } from '../../src/types.ts';
import { createCalls } from '../../src/calls/index.ts';
import type { CallHandle, CallState, Calls, JoinOptions } from '../../src/calls/index.ts';

/** Runs in the browser: the SDK, and what tests ask it. */

let client: Client;
let calls: Calls;
let call: CallHandle | null = null;
/** The states that the call has entered since they were forgotten, also those that are over before anybody asks. */
const states = new Set<CallState>();
const incoming: CallHandle[] = [];
const errors: string[] = [];
const unsupported: string[] = [];

interface Inbound extends RTCStats {
  kind: string;
  framesDecoded?: number;
  codecId?: string;
  frameHeight?: number;
  totalAudioEnergy?: number;
  trackIdentifier: string;
}

/** Frames of this kind that fail from now on. */
let failing: { t: string; left: number } | null = null;
/** A codec that this browser says it does not know. */
let unknown: string | null = null;
/** How many frames of each kind were sent. */
const frames = new Map<string, number>();
/** From the ports of the media server to those of a proxy before it. */
let offset = 0;

/** Between the SDK and its socket: what a test breaks, and where it leads. */
function meddle({ wire }: Client): void {
  const request = wire.request.bind(wire);
  wire.request = async (t, ...rest) => {
    if (t === 'call.open' && unknown)
      forget(rest[0] as unknown as { rtpCapabilities: Capabilities }, unknown);
    frames.set(t, (frames.get(t) ?? 0) + 1);
    if (failing?.t === t && failing.left-- > 0) throw new ParleyError('timeout');
    const answer = await request(t, ...rest);
    const { send, recv } = answer as AckData<'call.open'>;
    if (t === 'call.open' && offset !== 0)
      for (const transport of [send, recv])
        if (transport)
          transport.iceCandidates = transport.iceCandidates
            .filter((c) => c['protocol'] === 'udp')
            .map((c) => ({ ...c, port: (c['port'] as number) + offset }));
    return answer;
  };
}

interface Capabilities {
  codecs: { mimeType: string; preferredPayloadType?: number; parameters?: { apt?: number } }[];
}

function forget({ rtpCapabilities }: { rtpCapabilities: Capabilities }, mimeType: string): void {
  const gone = new Set(
    rtpCapabilities.codecs.filter((c) => c.mimeType === mimeType).map((c) => c.preferredPayloadType),
  );
  rtpCapabilities.codecs = rtpCapabilities.codecs.filter(
    (c) => !gone.has(c.preferredPayloadType) && !(c.parameters?.apt && gone.has(c.parameters.apt)),
  );
}

function take(one: CallHandle): void {
  call = one;
  one.subscribe(() => states.add(one.state));
}

const page = {
  async signIn(options: { url: string; env: string; token: string }): Promise<void> {
    client = createClient({ url: options.url, env: options.env, token: () => options.token });
    meddle(client);
    calls = createCalls(client);
    calls.on('incoming', (one) => incoming.push(one));
    calls.on('error', (e) => errors.push(e.code));
    calls.on('unsupported', ({ userId, source }) => unsupported.push(`${userId} ${source}`));
    await client.connect();
  },
  async start(conversationId: string, kind: 'audio' | 'video', options: JoinOptions = {}): Promise<string> {
    const started = await calls.start(conversationId, { kind, ...options }).catch((e: ParleyError) => {
      // Of an error only its message leaves the browser.
      throw new Error(`${e.code}: ${e.message}`);
    });
    take(started);
    return started.id;
  },
  ringing: (): string[] => incoming.filter((one) => one.state === 'incoming').map((one) => one.id),
  async accept(options: JoinOptions = {}): Promise<void> {
    take(incoming.filter((one) => one.state === 'incoming').at(-1)!);
    await call!.accept(options);
  },
  async rejoin(): Promise<string | null> {
    call = await calls.rejoin();
    return call?.id ?? null;
  },
  errors: (): string[] => errors,
  unsupported: (): string[] => unsupported,
  forgetCodec: (mimeType: string) => void (unknown = mimeType),
  fail: (t: string, times: number) => void (failing = { t, left: times }),
  /** How many are still to fail. */
  failing: (): number => Math.max(0, failing?.left ?? 0),
  /** A camera whose picture any machine can encode in any codec. */
  small(): void {
    const { mediaDevices } = navigator;
    const real = MediaDevices.prototype.getUserMedia.bind(mediaDevices);
    mediaDevices.getUserMedia = (wanted) =>
      real(wanted?.video ? { video: { width: 640, height: 360 } } : wanted);
  },
  was: (state: CallState): boolean => states.has(state),
  forgetStates: () => states.clear(),
  asked: (t: string): number => frames.get(t) ?? 0,
  through: (to: number) => void (offset = to),
  test: () => calls.test(),
  /** What the pictures come in. */
  async codecs(): Promise<string[]> {
    const stats = call ? await call.stats() : [];
    const used = stats.filter((s) => s.type === 'inbound-rtp' && (s as Inbound).framesDecoded) as Inbound[];
    return used
      .map((s) => (stats.find((c) => c.id === s.codecId) as unknown as { mimeType: string }).mimeType)
      .sort();
  },
  /** What this browser encodes of its camera: one stream for each layer. */
  async layers(): Promise<string[]> {
    const stats = call ? await call.stats() : [];
    const sent = stats.filter(
      (s) => s.type === 'outbound-rtp' && (s as Inbound).kind === 'video',
    ) as Inbound[];
    return sent.map(
      (s) => (stats.find((c) => c.id === s.codecId) as unknown as { mimeType?: string })?.mimeType ?? '',
    );
  },
  sends: (mimeType: string): boolean =>
    RTCRtpSender.getCapabilities('video')!.codecs.some((c) => c.mimeType === mimeType),
  /** What the call shows, as far as it can leave the browser. */
  shown() {
    const last = call ?? incoming.at(-1);
    if (!last) return null;
    const { state, endedHere, participants, activeSpeaker, network, call: record } = last.get();
    return {
      state,
      endedHere,
      activeSpeaker,
      network,
      endReason: record.endReason,
      participants: participants.map(({ audioTrack, videoTrack, screenTrack, ...rest }) => ({
        ...rest,
        tracks: [audioTrack && 'audio', videoTrack && 'video', screenTrack && 'screen']
          .filter(Boolean)
          .join(' '),
      })),
    };
  },
  /** Decoded pictures and heard energy of everything that is received, and how it comes here. */
  async received() {
    const stats = call ? await call.stats() : [];
    const inbound = stats.filter((s) => s.type === 'inbound-rtp') as Inbound[];
    const pair = stats.find(
      (s) => s.type === 'candidate-pair' && (s as unknown as { nominated: boolean }).nominated,
    ) as unknown as { localCandidateId: string } | undefined;
    const local = stats.find((s) => s.id === pair?.localCandidateId) as unknown as
      { protocol: string; candidateType: string } | undefined;
    const sum = (of: (s: Inbound) => number | undefined) => inbound.reduce((n, s) => n + (of(s) ?? 0), 0);
    return {
      frames: sum((s) => s.framesDecoded),
      energy: sum((s) => s.totalAudioEnergy),
      sources: inbound.length,
      sounds: inbound.filter((s) => s.kind === 'audio').length,
      protocol: local?.protocol,
      type: local?.candidateType,
    };
  },
  /** How many pictures of somebody were decoded. */
  async pictures(userId: string): Promise<number> {
    const track = call!.get().participants.find((p) => p.userId === userId)?.videoTrack;
    const stats = (await call!.stats()) as unknown as Inbound[];
    return stats.find((s) => s.type === 'inbound-rtp' && s.trackIdentifier === track?.id)?.framesDecoded ?? 0;
  },
  /** The height of somebody's picture as it arrives. */
  async height(userId: string): Promise<number> {
    const track = call!.get().participants.find((p) => p.userId === userId)?.videoTrack;
    const stats = (await call!.stats()) as unknown as Inbound[];
    return stats.find((s) => s.type === 'inbound-rtp' && s.trackIdentifier === track?.id)?.frameHeight ?? 0;
  },
  quality: (userId: string, quality: 'off' | 'low' | 'medium' | 'high') => call!.setQuality(userId, quality),
  mute: () => call!.mute(),
  unmute: () => call!.unmute(),
  camera: (on: boolean) => call!.setCamera(on),
  share: () => call!.shareScreen(),
  unshare: () => call!.stopScreen(),
  leave: () => call!.leave(),
  decline: () => incoming.at(-1)!.decline(),
  devices: async () => (await calls.devices.list()).map((d) => d.kind),
  async microphone(index: number): Promise<string> {
    const list = (await calls.devices.list()).filter((d) => d.kind === 'mic');
    await call!.setMicrophone(list[index]!.id);
    return call!.get().participants.find((p) => p.isLocal)!.audioTrack!.label;
  },
  /** Chooses the last output there is, and says which it was and where sound then goes. */
  async speaker(): Promise<[chosen: string, used: string[]]> {
    const used: string[] = [];
    const real = HTMLMediaElement.prototype.setSinkId;
    HTMLMediaElement.prototype.setSinkId = async function (id) {
      await real.call(this, id);
      used.push(this.sinkId);
    };
    const chosen = (await calls.devices.list()).filter((d) => d.kind === 'speaker').at(-1)!.id;
    await call!.setSpeaker(chosen);
    return [chosen, used];
  },
  /** Shows somebody in an element of this width, the same each time. */
  attach(userId: string, width: number): void {
    let element = document.querySelector('video');
    if (element) return void (element.style.width = `${width}px`);
    element = document.createElement('video');
    element.style.width = `${width}px`;
    document.body.append(element);
    call!.attach(element, userId);
  },
};
export type CallPage = typeof page;

(globalThis as unknown as { page: CallPage }).page = page;
