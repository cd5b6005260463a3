import type { types } from 'mediasoup-client';

/** Plays the audio of a call, without an element of the page. */
export class Sounds {
  /** By consumer, not by source: media that was opened again brings the same sources on new tracks. */
  readonly #playing = new Map<string, HTMLAudioElement>();
  readonly #failed: (error: Error) => void;
  #output = '';

  /** @param failed called if the browser blocks a sound. */
  constructor(failed: (error: Error) => void) {
    this.#failed = failed;
  }

  /** Plays these consumers and stops all others. */
  play(consumers: readonly types.Consumer[]): void {
    if (typeof Audio === 'undefined') return;
    for (const [id, sound] of [...this.#playing])
      if (!consumers.some((consumer) => consumer.id === id)) {
        sound.srcObject = null;
        this.#playing.delete(id);
      }
    for (const consumer of consumers) {
      if (consumer.kind !== 'audio' || this.#playing.has(consumer.id)) continue;
      const sound = new Audio();
      sound.srcObject = new MediaStream([consumer.track]);
      if (this.#output) void sound.setSinkId(this.#output);
      sound.play().catch((e: unknown) => this.#failed(e as Error));
      this.#playing.set(consumer.id, sound);
    }
  }

  async setOutput(deviceId: string): Promise<void> {
    this.#output = deviceId;
    for (const sound of this.#playing.values()) await sound.setSinkId(deviceId);
  }
}
