import type { Wire } from '../client-types.ts';
import { asError, ParleyError } from '../errors.ts';
import { Derived } from '../store.ts';
import type { Store } from '../store.ts';
import type { Call, CallMedia, CallProducer, CallSource, EndedHere } from '../types.ts';
import { openCamera, openMicrophone, openScreen } from './devices.ts';
import { MediaSession } from './media.ts';
import { NetworkMeter } from './network.ts';
import type { NetworkQuality } from './network.ts';

export type CallState = 'incoming' | 'connecting' | 'connected' | 'reconnecting' | 'ended';
export type VideoQuality = 'off' | 'low' | 'medium' | 'high';

export interface CallParticipantView {
  userId: string;
  audioTrack: MediaStreamTrack | null;
  videoTrack: MediaStreamTrack | null;
  screenTrack: MediaStreamTrack | null;
  audioMuted: boolean;
  videoMuted: boolean;
  speaking: boolean;
  /** 0 to 1. */
  audioLevel: number;
  inCall: boolean;
  isLocal: boolean;
}

export interface CallSnapshot {
  id: string;
  conversationId: string;
  kind: 'audio' | 'video';
  state: CallState;
  /** As the server has it. */
  call: Call;
  /** Why it is over here, although it may go on for others. */
  endedHere: EndedHere | null;
  participants: readonly CallParticipantView[];
  /** Who speaks, or spoke last. */
  activeSpeaker: string | null;
  network: NetworkQuality;
  /** The last thing that went wrong without ending the call, such as a camera that may not be used. */
  error: ParleyError | null;
}

export interface JoinOptions {
  /** A device; false: none. */
  mic?: string | boolean;
  camera?: string | boolean;
  /** No UDP; only relays: for networks that need it, and to test them. */
  tcp?: boolean;
  relay?: boolean;
}

export interface CallHost {
  wire: Wire;
  me(): string;
  /** True while the chat socket is there. */
  online(): boolean;
  onError(error: ParleyError): void;
  /** It is over here. */
  onEnd(call: CallHandle): void;
  /** It takes part: a reload of the page may bring it back. */
  onJoined(call: CallHandle): void;
}

const layers = { low: 0, medium: 1, high: 2 } as const;
const inCall = (state: string): boolean => state === 'joining' || state === 'joined';

/** A lost link may heal by itself for so long; then ICE is restarted, and then media is opened anew. */
const patienceMs = 2_000;
const restartMs = 6_000;
const retryMs = 1_000;
/** Without media for so long the call is left. */
const giveUpMs = 60_000;
const meterMs = 2_000;
/** Who was heard speaks for so long: words have gaps. */
const speakingMs = 1_500;

/** One call: what it shows, and what its user does with it. */
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
  readonly #levels = new Map<string, { level: number; until: number }>();
  #quiet: ReturnType<typeof setTimeout> | undefined;
  #speaker: string | null = null;
  readonly #quality = new Map<string, VideoQuality>();
  readonly #elements = new Map<HTMLVideoElement, { userId: string; stop: () => void }>();
  readonly #sounds = new Map<string, HTMLAudioElement>();
  #output = '';
  #network: NetworkQuality = { level: 5, reason: null };
  #meter: ReturnType<typeof setInterval> | undefined;
  #healing = false;
  #link: 'connected' | 'lost' | 'failed' = 'connected';

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

  // What its user does.

  /** Answers. Rejects where the microphone cannot be used; a camera that may not be used leaves an audio call. */
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
      known?.stop();
      this.#tracks.set('camera video', track);
      this.#muted.camera = false;
      await this.#session?.produce('camera', track, false);
    } else if (this.#muted.camera) await this.#setMuted('camera', false);
    this.#store.touch();
  }

  /** Another microphone. */
  async setMicrophone(deviceId: string): Promise<void> {
    const track = await openMicrophone(deviceId);
    this.#tracks.get('mic audio')?.stop();
    this.#tracks.set('mic audio', track);
    await this.#session?.produce('mic', track, this.#muted.mic);
    this.#store.touch();
  }

  /** Where the others are heard. */
  async setSpeaker(deviceId: string): Promise<void> {
    this.#output = deviceId;
    for (const sound of this.#sounds.values()) await sound.setSinkId(deviceId);
  }

  /** With its sound, where the browser gives it. */
  async shareScreen(): Promise<void> {
    for (const track of await openScreen()) {
      this.#tracks.set(`screen ${track.kind}`, track);
      // The browser has a button of its own.
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

  /** How much of somebody's picture is received; an element given to `attach` chooses by itself. */
  setQuality(userId: string, quality: VideoQuality): void {
    this.#quality.set(userId, quality);
    this.#applyQuality(userId);
  }

  /** Shows somebody in an element, in the quality that its visible size needs. Returns the function that ends it. */
  attach(element: HTMLVideoElement, userId: string, what: 'video' | 'screen' = 'video'): () => void {
    this.#elements.get(element)?.stop();
    const show = (): void => {
      const one = this.get().participants.find((p) => p.userId === userId);
      const track = (what === 'screen' ? one?.screenTrack : one?.videoTrack) ?? null;
      const shown = (element.srcObject as MediaStream | null)?.getTracks()[0] ?? null;
      if (track === shown) return;
      element.srcObject = track ? new MediaStream([track]) : null;
    };
    let visible = true;
    const fit = (): void => {
      if (what === 'screen') return;
      const width = element.clientWidth * (globalThis.devicePixelRatio || 1);
      this.setQuality(
        userId,
        !visible || width === 0 ? 'off' : width <= 320 ? 'low' : width <= 720 ? 'medium' : 'high',
      );
    };
    const sizes = new ResizeObserver(fit);
    const views = new IntersectionObserver(([entry]) => {
      visible = entry!.isIntersecting;
      fit();
    });
    sizes.observe(element);
    views.observe(element);
    const off = this.subscribe(show);
    const stop = (): void => {
      off();
      sizes.disconnect();
      views.disconnect();
      element.srcObject = null;
      this.#elements.delete(element);
    };
    element.muted = true;
    element.playsInline = true;
    element.autoplay = true;
    this.#elements.set(element, { userId, stop });
    show();
    return stop;
  }

  /** The browser's own statistics, for whoever wants to look. */
  stats(): Promise<RTCStats[]> {
    return this.#session?.stats() ?? Promise.resolve([]);
  }

  // From the list of calls.

  /** @internal Opens the microphone, and the camera of a video call. */
  async prepare(options: JoinOptions): Promise<void> {
    this.#options = options;
    const { mic = true, camera = this.#call.kind === 'video' } = options;
    const named = (device: string | boolean) => (typeof device === 'string' ? device : undefined);
    if (mic) this.#tracks.set('mic audio', await openMicrophone(named(mic)));
    if (!camera) return;
    try {
      this.#tracks.set('camera video', await openCamera(named(camera)));
    } catch (e) {
      const error = e as ParleyError;
      if (error.code !== 'media_permission_denied') {
        this.#stopTracks();
        throw error;
      }
      this.#fail(error);
    }
  }

  /** @internal It never began: nobody else knows of it. */
  discard(): void {
    this.#end(null);
  }

  /** @internal */
  async join({ answer = false } = {}): Promise<void> {
    const query = { sessionId: this.#host.wire.session(), ...(answer ? { answer: 'true' } : {}) };
    this.#set('connecting');
    try {
      const { call, media } = await this.#post<{ call: Call; media: CallMedia }>('join', query);
      this.#call = call;
      this.#media = media;
      this.#host.onJoined(this);
      await this.#open();
    } catch (e) {
      this.#end(null);
      throw e;
    }
    this.#meter = setInterval(() => void this.#measure(), meterMs);
  }

  /** @internal What the server tells. */
  update(call: Call): void {
    this.#call = call;
    const mine = call.participants.find((p) => p.userId === this.#host.me())?.state;
    if (call.status === 'ended') return this.#end(null);
    // Another device answered without saying which it is.
    if (this.#state === 'incoming' && mine !== undefined && mine !== 'ringing')
      return this.#end(inCall(mine) ? 'answered_elsewhere' : null);
    if (this.#state !== 'incoming' && mine === 'left') return this.#end(null);
    this.#store.touch();
  }

  /** @internal */
  endedBy(call: Call, endedHere: EndedHere | undefined): void {
    this.#call = call;
    // What other devices of the user do ends nothing that this one has begun.
    const elsewhere =
      endedHere === 'answered_elsewhere' || endedHere === 'declined_elsewhere' || endedHere === 'missed';
    if (elsewhere && this.#state !== 'incoming') return this.#store.touch();
    this.#end(endedHere ?? null);
  }

  /** @internal */
  producer(producer: CallProducer, closed: boolean): void {
    const own = this.#session?.owns(producer.id);
    if (own && producer.paused && !own.paused) {
      // Muted by the server; its user may unmute.
      own.pause();
      this.#muted[producer.source] = true;
      return this.#store.touch();
    }
    if (!own) this.#session?.heard(producer, closed);
  }

  /** @internal */
  speakers(levels: readonly { userId: string; level: number }[], dominant: string | null): void {
    const until = Date.now() + speakingMs;
    for (const { userId, level } of levels) this.#levels.set(userId, { level, until });
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#store.touch(), speakingMs + 50);
    this.#speaker = dominant ?? this.#speaker;
    this.#store.touch();
  }

  /** @internal The media server changed. */
  moved(): void {
    this.#link = 'failed';
    void this.#heal(true);
  }

  /** @internal There is a new chat socket. */
  async resumed(): Promise<void> {
    if (!this.#session || this.#healing) return;
    try {
      if (await this.#session.resume()) return;
    } catch (e) {
      if (this.#isOver(asError(e))) return;
    }
    void this.#heal(true);
  }

  // Inside.

  #post<T>(action: string, query: Record<string, string> = {}): Promise<T> {
    return this.#host.wire.http<T>('POST', `/calls/${encodeURIComponent(this.id)}/${action}`, { query });
  }

  /** True where there is nothing left to heal. */
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
      events: {
        changed: () => this.#changed(),
        link: (state) => {
          if (this.#session !== session) return;
          this.#link = state;
          if (state === 'connected') this.#set('connected');
          else void this.#heal(false);
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
    await session.start();
  }

  /** Waits a moment, restarts ICE, opens anew; again and again, as long as the call is worth it. */
  async #heal(anew: boolean): Promise<void> {
    if (this.#healing || this.#state === 'ended') return;
    this.#healing = true;
    this.#set('reconnecting');
    const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    const well = (): boolean => !anew && this.#link === 'connected';
    const until = Date.now() + giveUpMs;
    try {
      if (!anew) await pause(this.#link === 'failed' ? 0 : patienceMs);
      if (!anew && !well() && this.#host.online()) {
        await this.#session?.restart().catch(() => undefined);
        for (let waited = 0; waited < restartMs && !well() && !this.#over(); waited += 200) await pause(200);
      }
      while (!well() && !this.#over()) {
        if (Date.now() > until) {
          this.#fail(new ParleyError('network', 'The media server cannot be reached.'));
          return void this.leave().catch(() => undefined);
        }
        if (!this.#host.online()) {
          await pause(retryMs);
          continue;
        }
        try {
          this.#link = 'lost';
          await this.#open();
          anew = false;
          for (let waited = 0; waited < restartMs && !well() && !this.#over(); waited += 200)
            await pause(200);
        } catch (e) {
          if (this.#isOver(asError(e))) return;
          await pause(retryMs);
        }
      }
    } finally {
      this.#healing = false;
    }
    if (!this.#over()) this.#set('connected');
  }

  #over = (): boolean => this.#state === 'ended';

  async #setMuted(source: CallSource, muted: boolean): Promise<void> {
    this.#muted[source] = muted;
    this.#store.touch();
    await this.#session?.pause(source, muted);
  }

  #changed(): void {
    if (this.#state === 'ended') return;
    this.#playSounds();
    for (const { producer } of this.#session?.remotes.values() ?? []) this.#applyQuality(producer.userId);
    this.#store.touch();
  }

  readonly #applied = new Map<string, number | null>();
  #applyQuality(userId: string): void {
    const quality = this.#quality.get(userId);
    if (quality === undefined) return;
    const layer = quality === 'off' ? null : layers[quality];
    for (const { producer, consumer } of this.#session?.remotes.values() ?? []) {
      if (
        producer.userId !== userId ||
        producer.source !== 'camera' ||
        this.#applied.get(consumer.id) === layer
      )
        continue;
      this.#applied.set(consumer.id, layer);
      this.#session!.layer(consumer.id, layer).catch(() => this.#applied.delete(consumer.id));
    }
  }

  /** What is heard needs no element of the page. */
  #playSounds(): void {
    if (typeof Audio === 'undefined') return;
    // By consumer, not by source: media that was opened anew brings the same sources on new tracks.
    const consumers = [...(this.#session?.remotes.values() ?? [])].map((remote) => remote.consumer);
    for (const [id, sound] of [...this.#sounds])
      if (!consumers.some((consumer) => consumer.id === id)) {
        sound.srcObject = null;
        this.#sounds.delete(id);
      }
    for (const consumer of consumers) {
      if (consumer.kind !== 'audio' || this.#sounds.has(consumer.id)) continue;
      const sound = new Audio();
      sound.srcObject = new MediaStream([consumer.track]);
      if (this.#output) void sound.setSinkId(this.#output);
      sound
        .play()
        .catch((e: unknown) => this.#fail(new ParleyError('media_permission_denied', (e as Error).message)));
      this.#sounds.set(consumer.id, sound);
    }
  }

  readonly #meterOf = new NetworkMeter();
  async #measure(): Promise<void> {
    if (this.#state === 'reconnecting') this.#network = { level: 1, reason: 'disconnected' };
    else if (this.#session)
      this.#network = this.#meterOf.measure(await this.#session.stats().catch(() => []));
    this.#store.touch();
  }

  #fail(error: ParleyError): void {
    this.#error = error;
    this.#store.touch();
    this.#host.onError(error);
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
    clearTimeout(this.#quiet);
    this.#session?.close();
    this.#session = null;
    this.#stopTracks();
    for (const sound of this.#sounds.values()) sound.srcObject = null;
    this.#sounds.clear();
    this.#set('ended');
    for (const { stop } of [...this.#elements.values()]) stop();
    this.#host.onEnd(this);
  }

  #snapshot(): CallSnapshot {
    const { id, conversationId, kind, participants } = this.#call;
    return {
      ...{ id, conversationId, kind, state: this.#state, call: this.#call },
      ...{
        endedHere: this.#endedHere,
        activeSpeaker: this.#speaker,
        network: this.#network,
        error: this.#error,
      },
      participants: participants.map(({ userId, state }) => this.#participant(userId, inCall(state))),
    };
  }

  #participant(userId: string, there: boolean): CallParticipantView {
    const heard = this.#levels.get(userId);
    const level = heard && heard.until > Date.now() ? heard.level : 0;
    const view = { userId, speaking: level > 0, audioLevel: level, inCall: there };
    if (userId === this.#host.me())
      return {
        ...view,
        isLocal: true,
        audioTrack: this.#tracks.get('mic audio') ?? null,
        videoTrack: this.#tracks.get('camera video') ?? null,
        screenTrack: this.#tracks.get('screen video') ?? null,
        audioMuted: this.#muted.mic || !this.#tracks.has('mic audio'),
        videoMuted: this.#muted.camera || !this.#tracks.has('camera video'),
      };
    const remote = (source: CallSource, kind: string) =>
      [...(this.#session?.remotes.values() ?? [])].find(
        ({ producer }) => producer.userId === userId && producer.source === source && producer.kind === kind,
      );
    const [mic, camera, screen] = [
      remote('mic', 'audio'),
      remote('camera', 'video'),
      remote('screen', 'video'),
    ];
    return {
      ...view,
      isLocal: false,
      audioTrack: mic?.consumer.track ?? null,
      videoTrack: camera?.consumer.track ?? null,
      screenTrack: screen?.consumer.track ?? null,
      audioMuted: mic?.producer.paused ?? true,
      videoMuted: camera?.producer.paused ?? true,
    };
  }
}
