import type { types } from 'mediasoup-client';
import type { Wire } from '../client-types.ts';
import { asError } from '../errors.ts';
import type { CallFrame } from '../connection/connection.ts';
import type { AckData, CallMedia, CallProducer, CallSource, FrameData } from '../types.ts';
import { createDevice } from './device.ts';

/**
 * The media of a call on one media server: a transport to send and one to receive. If the call moves to another
 * server, a new session replaces this one and sends the same tracks.
 */

export interface Remote {
  producer: CallProducer;
  consumer: types.Consumer;
}

export interface MediaEvents {
  /** What is received has changed. */
  changed(): void;
  /** `connected` if all transports in use are connected, `lost` if one is not. */
  link(state: 'connected' | 'lost' | 'failed'): void;
  /** Something cannot be received, so media must be opened again. */
  broken(): void;
}

export interface MediaOptions {
  wire: Wire;
  callId: string;
  media: CallMedia;
  /** Special settings for restricted networks, and for tests of them. */
  tcp?: boolean | undefined;
  relay?: boolean | undefined;
  codec?: VideoCodec | undefined;
  events: MediaEvents;
}

export type VideoCodec = 'vp8' | 'h264' | 'vp9' | 'av1';

/** VP8 in three layers; a small camera picture has fewer. */
const cameraLayers: types.RtpEncodingParameters[] = [
  { scaleResolutionDownBy: 4, maxBitrate: 150_000, scalabilityMode: 'L1T3' },
  { scaleResolutionDownBy: 2, maxBitrate: 500_000, scalabilityMode: 'L1T3' },
  { scaleResolutionDownBy: 1, maxBitrate: 1_500_000, scalabilityMode: 'L1T3' },
];
/** VP9 has its layers within one stream. */
const scalableLayers: types.RtpEncodingParameters[] = [
  { maxBitrate: 1_500_000, scalabilityMode: 'L3T3_KEY' },
];
/** Firefox ignores `scalabilityMode`, so its VP9 would have one layer only: it sends VP8 in three. */
const ignoresScalability = (handlerName: string): boolean => handlerName.startsWith('Firefox');
/** AV1 is sent in one size: more at once is more than most machines can encode. */
const oneLayer: types.RtpEncodingParameters[] = [{ maxBitrate: 1_000_000, scalabilityMode: 'L1T3' }];
const screenLayers: types.RtpEncodingParameters[] = [{ maxBitrate: 2_500_000, scalabilityMode: 'L1T3' }];

const resumeTries = 3;
const resumeMs = 300;

export class MediaSession {
  readonly #o: MediaOptions;
  #device!: types.Device;
  #send!: types.Transport;
  #recv!: types.Transport;
  readonly #sent = new Map<string, types.Producer>();
  readonly #remotes = new Map<string, Remote>();
  /** Producers that are known but not received yet. */
  readonly #wanted = new Map<string, CallProducer>();
  /** Producers that were asked for, without an answer yet. */
  readonly #asked = new Map<string, CallProducer>();
  readonly #unsupported = new Map<string, CallProducer>();
  #consuming: Promise<void> | null = null;
  closed = false;

  #ready = false;

  constructor(options: MediaOptions) {
    this.#o = options;
  }

  /** Opens the media of a device that joined. Frames that arrive meanwhile are already taken into account. */
  async open(): Promise<void> {
    const { media, tcp, relay } = this.#o;
    const device = (this.#device = await createDevice());
    await device.load({ routerRtpCapabilities: media.rtpCapabilities as types.RtpCapabilities });
    const opened = await this.#ask('call.open', {
      device: media.device,
      rtpCapabilities: { ...device.rtpCapabilities },
      ...(tcp ? { tcp: true } : {}),
    });
    if (this.closed) return;
    const settings = {
      iceServers: media.iceServers,
      ...(relay ? { iceTransportPolicy: 'relay' as const } : {}),
    };
    this.#send = device.createSendTransport({
      ...(opened.send as unknown as types.TransportOptions),
      ...settings,
    });
    this.#recv = device.createRecvTransport({
      ...(opened.recv as unknown as types.TransportOptions),
      ...settings,
    });
    this.#listen();
    for (const producer of opened.producers) this.#wanted.set(producer.id, producer);
    this.#ready = true;
  }

  /** Sends a frame of this call. */
  #ask<T extends CallFrame>(t: T, d: object): Promise<AckData<T>> {
    return this.#o.wire.request(t, { callId: this.#o.callId, ...d } as FrameData<T>);
  }

  #listen(): void {
    for (const transport of [this.#send, this.#recv]) {
      transport.on('connect', ({ dtlsParameters }, done, failed) => {
        this.#ask('call.connect', { transportId: transport.id, dtlsParameters }).then(() => done(), failed);
      });
      transport.on('connectionstatechange', () => this.#state());
    }
    this.#send.on('produce', ({ kind, rtpParameters, appData }, done, failed) => {
      const { source, paused } = appData as { source: CallSource; paused: boolean };
      this.#ask('call.produce', { source, kind, rtpParameters, paused }).then(
        ({ producerId }) => done({ id: producerId }),
        failed,
      );
    });
  }

  #state(): void {
    if (this.closed) return;
    const states = [this.#send, this.#recv].map((t) => t.connectionState).filter((s) => s !== 'new');
    if (states.includes('failed')) this.#o.events.link('failed');
    else if (states.includes('disconnected')) this.#o.events.link('lost');
    else if (states.every((s) => s === 'connected')) this.#o.events.link('connected');
  }

  /** Starts receiving what others send. */
  start(): Promise<void> {
    return this.#consume();
  }

  async produce(source: CallSource, track: MediaStreamTrack, muted: boolean): Promise<void> {
    // Media is not open yet; the caller that opens it sends all tracks afterwards.
    if (!this.#ready) return;
    const key = `${source} ${track.kind}`;
    const old = this.#sent.get(key);
    if (old && !old.closed) return old.replaceTrack({ track });
    const camera = source === 'camera' ? this.#cameraCodec() : null;
    const producer = await this.#send.produce({
      track,
      stopTracks: false,
      disableTrackOnPause: false,
      zeroRtpOnPause: true,
      appData: { source, paused: muted },
      ...(track.kind === 'audio'
        ? { codecOptions: { opusDtx: source === 'mic', opusFec: true, opusStereo: source === 'screen' } }
        : {
            encodings: camera ? camera.encodings : screenLayers,
            codecOptions: { videoGoogleStartBitrate: 800 },
            codec: camera ? camera.codec : this.#codec('vp8'),
          }),
    } as types.ProducerOptions);
    if (this.closed) return producer.close();
    this.#sent.set(key, producer);
    if (muted) producer.pause();
  }

  #codec(name: VideoCodec): types.RtpCodecCapability | undefined {
    return this.#device.sendRtpCapabilities.codecs?.find((c) => c.mimeType.toLowerCase() === `video/${name}`);
  }

  /** The requested codec if both sides support it with its layers, otherwise VP8, which works well in every browser. */
  #cameraCodec(): Pick<types.ProducerOptions, 'codec' | 'encodings'> {
    const { codec: name = 'vp8' } = this.#o;
    const layerless = name === 'vp9' && ignoresScalability(this.#device.handlerName);
    const codec = layerless ? undefined : this.#codec(name);
    if (!codec) return { codec: this.#codec('vp8'), encodings: cameraLayers };
    const encodings = name === 'vp9' ? scalableLayers : name === 'av1' ? oneLayer : cameraLayers;
    return { codec, encodings };
  }

  /** Also notifies the server, which notifies the other participants. */
  async pause(source: CallSource, paused: boolean): Promise<void> {
    for (const [key, producer] of this.#sent) {
      if (!key.startsWith(`${source} `)) continue;
      if (paused) producer.pause();
      else producer.resume();
      await this.#ask('call.pause', { producerId: producer.id, paused });
    }
  }

  async stop(source: CallSource): Promise<void> {
    for (const [key, producer] of [...this.#sent]) {
      if (!key.startsWith(`${source} `)) continue;
      this.#sent.delete(key);
      producer.close();
      await this.#ask('call.close', { producerId: producer.id });
    }
  }

  /** The own producer with this id, if there is one; the server may have muted it. */
  owns(id: string): types.Producer | undefined {
    return [...this.#sent.values()].find((p) => p.id === id);
  }

  get remotes(): ReadonlyMap<string, Remote> {
    return this.#remotes;
  }

  /** Sources that this device cannot decode, so that the server does not send them here. */
  get unsupported(): ReadonlyMap<string, CallProducer> {
    return this.#unsupported;
  }

  /** The server reported a source of another participant. */
  heard(producer: CallProducer, closed: boolean): void {
    if (closed) return this.#drop(producer.id);
    const known = this.#remotes.get(producer.id);
    if (known) known.producer = producer;
    else if (this.#unsupported.has(producer.id)) this.#unsupported.set(producer.id, producer);
    else {
      this.#wanted.set(producer.id, producer);
      if (this.#ready) this.#consume().catch(() => this.#o.events.broken());
    }
    this.#o.events.changed();
  }

  /** All sources that exist, after a new socket: changes in between were missed. */
  all(producers: readonly CallProducer[]): void {
    const ids = new Set(producers.map((p) => p.id));
    for (const id of [...this.#remotes.keys(), ...this.#unsupported.keys()]) if (!ids.has(id)) this.#drop(id);
    for (const producer of producers) this.heard(producer, false);
  }

  #drop(id: string): void {
    for (const known of [this.#wanted, this.#asked, this.#unsupported]) known.delete(id);
    this.#remotes.get(id)?.consumer.close();
    this.#remotes.delete(id);
    this.#o.events.changed();
  }

  /** Makes one request for all sources that are wanted by then. */
  #consume(): Promise<void> {
    return (this.#consuming ??= this.#consumeAll().finally(() => {
      this.#consuming = null;
    }));
  }

  async #consumeAll(): Promise<void> {
    while (this.#wanted.size > 0 && !this.closed) {
      const batch = [...this.#wanted.values()].slice(0, 50);
      for (const producer of batch) {
        this.#wanted.delete(producer.id);
        this.#asked.set(producer.id, producer);
      }
      const { consumers } = await this.#ask('call.consume', { producerIds: batch.map((p) => p.id) });
      if (this.closed) return;
      // What is missing in the answer is gone, and was reported as closed, or has a codec that this device does not know.
      const answered = new Set(consumers.map((c) => c.producerId));
      for (const [id, producer] of this.#asked) if (!answered.has(id)) this.#unsupported.set(id, producer);
      this.#asked.clear();
      for (const { id, producerId, kind, rtpParameters } of consumers) {
        const producer = batch.find((p) => p.id === producerId)!;
        const options = { id, producerId, kind, rtpParameters: rtpParameters as types.RtpParameters };
        // Audio and video of one source stay synchronised.
        const consumer = await this.#recv.consume({
          ...options,
          streamId: `${producer.userId}-${producer.source}`,
        });
        if (this.closed) return;
        this.#remotes.set(producerId, { producer, consumer });
        await this.#resume(id);
      }
      this.#o.events.changed();
    }
  }

  /**
   * Lets the server start sending a source. Rejects if that fails repeatedly; media is then opened again, because the
   * source would stay silent.
   */
  async #resume(consumerId: string): Promise<void> {
    for (let left = resumeTries; !this.closed;) {
      try {
        return void (await this.#ask('call.layers', { consumerId, paused: false }));
      } catch (e) {
        // If it closed meanwhile, a separate frame reports that.
        if (asError(e).code === 'not_found') return;
        if (--left === 0) throw e;
        await new Promise((resolve) => setTimeout(resolve, resumeMs));
      }
    }
  }

  /** @param spatialLayer null stops sending it. */
  async layer(consumerId: string, spatialLayer: number | null): Promise<void> {
    await this.#ask('call.layers', {
      consumerId,
      paused: spatialLayer === null,
      ...(spatialLayer === null ? {} : { spatialLayer }),
    });
  }

  /** Restarts ICE, after the network changed. */
  async restart(): Promise<void> {
    if (!this.#ready) return;
    for (const transport of [this.#send, this.#recv]) {
      if (transport.connectionState === 'new') continue;
      const { iceParameters } = await this.#ask('call.restart', { transportId: transport.id });
      await transport.restartIce({ iceParameters: iceParameters as unknown as types.IceParameters });
    }
  }

  /** Continues after a new chat socket; returns false if the media is lost and must be opened again. */
  async resume(): Promise<boolean> {
    const opened = await this.#ask('call.open', {
      device: this.#o.media.device,
      rtpCapabilities: { ...this.#device.rtpCapabilities },
      resume: true,
    });
    if (opened.send) return false;
    this.all(opened.producers);
    return true;
  }

  async stats(): Promise<RTCStats[]> {
    if (this.closed || !this.#ready) return [];
    const reports = await Promise.all([this.#send.getStats(), this.#recv.getStats()]);
    return reports.flatMap((report) => [...report.values()] as RTCStats[]);
  }

  close(): void {
    this.closed = true;
    this.#send?.close();
    this.#recv?.close();
  }
}
