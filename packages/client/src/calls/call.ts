import { asError, ParleyError } from '../errors.ts';
import { Derived } from '../store.ts';
import type { Store } from '../store.ts';
import type { Call, CallMedia, CallProducer, CallSource, EndedHere } from '../types.ts';
import { Decoding } from './decoding.ts';
import { loadMediasoup } from './device.ts';
import { openCamera, openMicrophone, openScreen } from './devices.ts';
import type { CallHost, JoinOptions } from './host.ts';
import { Healer } from './healer.ts';
import { MediaSession } from './media.ts';
import { NetworkMeter } from './network.ts';
import type { NetworkQuality } from './network.ts';
import { Sounds } from './sounds.ts';
import { Speakers } from './speakers.ts';
import { Tiles } from './tiles.ts';
import type { VideoQuality } from './tiles.ts';
import { localView, remoteView } from './view.ts';
import type { CallParticipantView, CallSnapshot, CallState } from './view.ts';

const inCall = (state: string): boolean => state === 'joining' || state === 'joined';

const meterMs = 2_000;
const over = () => new ParleyError('call_ended', 'The call is over.');

/** One call: its state, and what the user can do with it. */
export class CallHandle implements Store<CallSnapshot> {
  readonly #host: CallHost;
  readonly #store = new Derived<CallSnapshot>(() => this.#snapshot());
  readonly get = this.#store.get;
  readonly subscribe = this.#store.subscribe;
  #call: Call;
  #state: CallState;
  #endedHere: EndedHere | null = null;
  #error: ParleyError | null = null;
  #session: MediaSession | null = null;
  #media: CallMedia | null = null;
  #options: JoinOptions = {};
  readonly #tracks = new Map<string, MediaStreamTrack>();
  readonly #muted: Record<CallSource, boolean> = { mic: false, camera: false, screen: false };
  readonly #speakers = new Speakers(() => this.#store.touch());
  readonly #tiles = new Tiles(this.#store, () => this.#session);
  readonly #sounds = new Sounds((e) => this.#fail(new ParleyError('media_permission_denied', e.message)));
  #network: NetworkQuality = { level: 5, reason: null };
  /** What this device cannot show: sources that it is not sent, and those that it never decodes. */
  #unsupported: readonly CallProducer[] = [];
  #undecoded: ReadonlySet<number> = new Set();
  #meter: ReturnType<typeof setInterval> | undefined;
  readonly #healer = new Healer({
    online: () => this.#host.online(),
    over: () => this.#state === 'ended',
    began: () => this.#set('reconnecting'),
    healed: () => this.#set('connected'),
    restartIce: async () => this.#session?.restart(),
    openAnew: () => this.#open(),
    ends: (e) => this.#isOver(asError(e)),
    giveUp: () => {
      this.#fail(new ParleyError('network', 'The media server cannot be reached.'));
      this.leave().catch(() => undefined);
    },
  });

  constructor(host: CallHost, call: Call, state: CallState) {
    this.#host = host;
    this.#call = call;
    this.#state = state;
  }

  get id(): string {
    return this.#call.id;
  }
  get state(): CallState {
    return this.#state;
  }

  // What the user of the device does.

  /**
   * Answers the call. Rejects if the microphone cannot be used; if only the camera may not be used, the call goes on
   * with audio.
   */
  async accept(options: JoinOptions = {}): Promise<void> {
    if (this.#state !== 'incoming') throw new ParleyError('call_ended', 'The call does not ring here.');
    await this.prepare(options);
    try {
      await this.join({ answer: true });
    } catch (e) {
      this.#stopTracks();
      throw e;
    }
  }

  async decline(): Promise<void> {
    const { call } = await this.#post<{ call: Call }>('decline');
    this.#call = call;
    this.#end(null);
  }

  async leave(): Promise<void> {
    this.#end(null);
    await this.#post('leave').catch((e: unknown) => {
      if (asError(e).code !== 'call_ended') throw e;
    });
  }

  mute(): Promise<void> {
    return this.#setMuted('mic', true);
  }
  unmute(): Promise<void> {
    return this.#setMuted('mic', false);
  }

  /** Turns the camera on, or off. */
  async setCamera(on: boolean, deviceId?: string): Promise<void> {
    const known = this.#tracks.get('camera video');
    if (!on) {
      if (!known) return;
      this.#drop('camera video');
      await this.#session?.stop('camera');
    } else if (!known || deviceId !== undefined) {
      const track = await openCamera(deviceId);
      this.#take('camera video', track);
      this.#muted.camera = false;
      await this.#session?.produce('camera', track, false);
    } else if (this.#muted.camera) await this.#setMuted('camera', false);
    this.#store.touch();
  }

  /** Switches to another microphone. */
  async setMicrophone(deviceId: string): Promise<void> {
    const track = await openMicrophone(deviceId);
    this.#take('mic audio', track);
    await this.#session?.produce('mic', track, this.#muted.mic);
    this.#store.touch();
  }

  /** Chooses the output device for the others' audio. */
  setSpeaker(deviceId: string): Promise<void> {
    return this.#sounds.setOutput(deviceId);
  }

  /** Shares the screen, with its sound if the browser offers it. */
  async shareScreen(): Promise<void> {
    for (const track of await openScreen()) {
      this.#take(`screen ${track.kind}`, track);
      // The user may also end sharing with the browser's own button.
      track.onended = () => void this.stopScreen();
      await this.#session?.produce('screen', track, false);
    }
    this.#store.touch();
  }

  async stopScreen(): Promise<void> {
    for (const kind of ['video', 'audio']) this.#drop(`screen ${kind}`);
    this.#store.touch();
    await this.#session?.stop('screen');
  }

  /** Chooses how much of a user's picture is received; an element given to `attach` chooses by itself. */
  setQuality(userId: string, quality: VideoQuality): void {
    this.#tiles.setQuality(userId, quality);
  }

  /** Shows a user in an element, in the quality that its visible size needs. Returns the function that ends it. */
  attach(element: HTMLVideoElement, userId: string, what: 'video' | 'screen' = 'video'): () => void {
    return this.#tiles.attach(element, userId, what);
  }

  /** The browser's own statistics, for debugging. */
  stats(): Promise<RTCStats[]> {
    return this.#session?.stats() ?? Promise.resolve([]);
  }

  // Called by the list of calls.

  /** @internal Opens the microphone, and the camera of a video call. */
  async prepare(options: JoinOptions): Promise<void> {
    this.#options = options;
    await loadMediasoup();
    const { mic = true, camera = this.#call.kind === 'video' } = options;
    const named = (device: string | boolean) => (typeof device === 'string' ? device : undefined);
    if (mic) this.#take('mic audio', await openMicrophone(named(mic)));
    try {
      if (camera) this.#take('camera video', await openCamera(named(camera)));
    } catch (e) {
      const error = e as ParleyError;
      if (error.code !== 'media_permission_denied') {
        this.#stopTracks();
        throw error;
      }
      this.#fail(error);
    }
    if (this.#state === 'ended') throw over();
  }

  /** @internal The call never began, so nobody else knows about it. */
  discard(): void {
    this.#end(null);
  }

  /** @internal */
  async join({ answer = false } = {}): Promise<void> {
    const query = { sessionId: this.#host.wire.session(), ...(answer ? { answer: 'true' } : {}) };
    this.#set('connecting');
    try {
      const { call, media } = await this.#post<{ call: Call; media: CallMedia }>('join', query);
      if (this.#state === 'ended') {
        // The user hung up meanwhile, and the service may have heard that first.
        if (this.#endedHere === null) await this.leave();
        throw over();
      }
      this.#call = call;
      this.#media = media;
      this.#host.onJoined(this.id);
      await this.#open();
    } catch (e) {
      this.#end(null);
      throw e;
    }
    if (this.state !== 'ended') this.#meter = setInterval(() => void this.#measure(), meterMs);
  }

  /** @internal The server sent a new state of the call. */
  update(call: Call): void {
    this.#call = call;
    const mine = call.participants.find((p) => p.userId === this.#host.me())?.state;
    if (call.status === 'ended') return this.#end(null);
    // Another device answered, without naming itself.
    if (this.#state === 'incoming' && mine !== undefined && mine !== 'ringing')
      return this.#end(inCall(mine) ? 'answered_elsewhere' : null);
    if (this.#state !== 'incoming' && mine === 'left') return this.#end(null);
    this.#store.touch();
  }

  /** @internal */
  endedBy(call: Call, endedHere: EndedHere | undefined): void {
    this.#call = call;
    // What the user's other devices do does not end a call that this device has joined.
    const elsewhere =
      endedHere === 'answered_elsewhere' || endedHere === 'declined_elsewhere' || endedHere === 'missed';
    if (elsewhere && this.#state !== 'incoming') return this.#store.touch();
    this.#end(endedHere ?? null);
  }

  /** @internal */
  producer(producer: CallProducer, closed: boolean): void {
    const own = this.#session?.owns(producer.id);
    if (own && producer.paused && !own.paused) {
      // The server muted it; the user may unmute.
      own.pause();
      this.#muted[producer.source] = true;
      return this.#store.touch();
    }
    if (!own) this.#session?.heard(producer, closed);
  }

  /** @internal */
  speakers(levels: readonly { userId: string; level: number }[], dominant: string | null): void {
    this.#speakers.hear(levels, dominant);
  }

  /** @internal The call moved to another media server. */
  moved(): void {
    this.#healer.link = 'failed';
    void this.#healer.heal(true);
  }

  /** @internal There is a new chat socket. */
  async resumed(): Promise<void> {
    if (!this.#session || this.#healer.healing) return;
    try {
      if (await this.#session.resume()) return;
    } catch (e) {
      if (this.#isOver(asError(e))) return;
    }
    void this.#healer.heal(true);
  }

  // Private methods.

  #post<T>(action: string, query: Record<string, string> = {}): Promise<T> {
    return this.#host.wire.http<T>('POST', `/calls/${encodeURIComponent(this.id)}/${action}`, { query });
  }

  /** Returns true if the error means that the call is over here. */
  #isOver({ code }: ParleyError): boolean {
    if (code === 'forbidden') this.#end('moved');
    else if (code === 'call_ended') this.#end(null);
    else return false;
    return true;
  }

  async #open(): Promise<void> {
    this.#session?.close();
    const session = new MediaSession({
      wire: this.#host.wire,
      callId: this.id,
      media: this.#media!,
      tcp: this.#options.tcp,
      relay: this.#options.relay,
      codec: this.#options.codec,
      events: {
        changed: () => this.#changed(),
        broken: () => {
          if (this.#session === session) this.moved();
        },
        link: (state) => {
          if (this.#session !== session) return;
          this.#healer.link = state;
          if (state === 'connected') this.#set('connected');
          else void this.#healer.heal(false);
        },
      },
    });
    this.#session = session;
    await session.open();
    if (this.#state === 'ended') return session.close();
    for (const [key, track] of this.#tracks) {
      const source = key.split(' ')[0] as CallSource;
      await session.produce(source, track, this.#muted[source]);
    }
    // If something cannot be received now, media is opened again, unless the call is over.
    await session.start().catch(() => this.moved());
  }

  async #setMuted(source: CallSource, muted: boolean): Promise<void> {
    this.#muted[source] = muted;
    this.#store.touch();
    await this.#session?.pause(source, muted);
  }

  #changed(): void {
    if (this.#state === 'ended') return;
    this.#findUnsupported();
    this.#sounds.play(this.#remotes().map((remote) => remote.consumer));
    this.#tiles.refresh();
    this.#store.touch();
  }

  #remotes = () => [...(this.#session?.remotes.values() ?? [])];

  /** Reports each source that cannot be shown once. */
  #findUnsupported(): void {
    const undecoded = this.#remotes().filter(({ consumer }) =>
      this.#undecoded.has(consumer.rtpParameters.encodings?.[0]?.ssrc ?? 0),
    );
    const found = [
      ...(this.#session?.unsupported.values() ?? []),
      ...undecoded.map(({ producer }) => producer),
    ];
    const known = new Set(this.#unsupported.map(({ id }) => id));
    this.#unsupported = found;
    for (const { id, userId, source } of found)
      if (!known.has(id)) this.#host.onUnsupported({ callId: this.id, userId, source });
  }

  readonly #meterOf = new NetworkMeter();
  readonly #decoding = new Decoding();
  async #measure(): Promise<void> {
    if (this.#state === 'reconnecting') this.#network = { level: 1, reason: 'disconnected' };
    else if (this.#session) {
      const stats = await this.#session.stats().catch(() => []);
      this.#network = this.#meterOf.measure(stats);
      this.#undecoded = this.#decoding.measure(stats);
      this.#findUnsupported();
    }
    this.#store.touch();
  }

  #fail(error: ParleyError): void {
    this.#error = error;
    this.#store.touch();
    this.#host.onError(error);
  }

  /** Keeps a track instead of the one before; a call that ended while the device opened needs none. */
  #take(key: string, track: MediaStreamTrack): void {
    this.#drop(key);
    if (this.#state === 'ended') track.stop();
    else this.#tracks.set(key, track);
  }

  #drop(key: string): void {
    this.#tracks.get(key)?.stop();
    this.#tracks.delete(key);
  }

  #stopTracks(): void {
    for (const key of [...this.#tracks.keys()]) this.#drop(key);
  }

  #set(state: CallState): void {
    if (state === this.#state || this.#state === 'ended') return;
    this.#state = state;
    this.#store.touch();
  }

  #end(endedHere: EndedHere | null): void {
    if (this.#state === 'ended') return;
    this.#endedHere = endedHere;
    clearInterval(this.#meter);
    this.#speakers.stop();
    this.#session?.close();
    this.#session = null;
    this.#stopTracks();
    this.#sounds.play([]);
    this.#set('ended');
    this.#tiles.clear();
    this.#host.onEnd(this.id);
  }

  #snapshot(): CallSnapshot {
    const { id, conversationId, kind, participants } = this.#call;
    return {
      id,
      conversationId,
      kind,
      state: this.#state,
      call: this.#call,
      endedHere: this.#endedHere,
      activeSpeaker: this.#speakers.active,
      network: this.#network,
      error: this.#error,
      participants: participants.map(({ userId, state }) => this.#participant(userId, inCall(state))),
    };
  }

  #participant(userId: string, there: boolean): CallParticipantView {
    const level = this.#speakers.level(userId);
    const view = { userId, speaking: level > 0, audioLevel: level, inCall: there };
    return userId === this.#host.me()
      ? localView(view, this.#tracks, this.#muted)
      : remoteView(view, this.#remotes(), this.#unsupported);
  }
}
