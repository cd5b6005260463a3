import type { Store } from '../store.ts';
import type { MediaSession } from './media.ts';
import type { CallSnapshot } from './view.ts';

export type VideoQuality = 'off' | 'low' | 'medium' | 'high';

const layers = { low: 0, medium: 1, high: 2 } as const;

/** The pictures of a call: in which elements they are shown, and how much of each is received. */
export class Tiles {
  readonly #shown: Store<CallSnapshot>;
  readonly #session: () => MediaSession | null;
  readonly #quality = new Map<string, VideoQuality>();
  /** The layer that was last sent to the server, by consumer. */
  readonly #applied = new Map<string, number | null>();
  readonly #elements = new Map<HTMLVideoElement, () => void>();

  constructor(shown: Store<CallSnapshot>, session: () => MediaSession | null) {
    this.#shown = shown;
    this.#session = session;
  }

  setQuality(userId: string, quality: VideoQuality): void {
    this.#quality.set(userId, quality);
    this.#apply(userId);
  }

  /** Called when what is received has changed. */
  refresh(): void {
    for (const { producer } of this.#session()?.remotes.values() ?? []) this.#apply(producer.userId);
  }

  #apply(userId: string): void {
    const quality = this.#quality.get(userId);
    const session = this.#session();
    if (quality === undefined || !session) return;
    const layer = quality === 'off' ? null : layers[quality];
    for (const { producer, consumer } of session.remotes.values()) {
      if (
        producer.userId !== userId ||
        producer.source !== 'camera' ||
        this.#applied.get(consumer.id) === layer
      )
        continue;
      this.#applied.set(consumer.id, layer);
      session.layer(consumer.id, layer).catch(() => this.#applied.delete(consumer.id));
    }
  }

  attach(element: HTMLVideoElement, userId: string, what: 'video' | 'screen'): () => void {
    this.#elements.get(element)?.();
    const show = (): void => {
      const one = this.#shown.get().participants.find((p) => p.userId === userId);
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
    const off = this.#shown.subscribe(show);
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
    this.#elements.set(element, stop);
    show();
    return stop;
  }

  clear(): void {
    for (const stop of [...this.#elements.values()]) stop();
  }
}
