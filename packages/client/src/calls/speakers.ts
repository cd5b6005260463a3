/** The speakers in a call, as the server reports them from time to time. */

/** A user counts as speaking for this many milliseconds after being heard, because words have gaps. */
const speakingMs = 1_500;

export class Speakers {
  readonly #levels = new Map<string, { level: number; until: number }>();
  readonly #changed: () => void;
  #quiet: ReturnType<typeof setTimeout> | undefined;
  /** The user who speaks most, or spoke last. */
  active: string | null = null;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  hear(levels: readonly { userId: string; level: number }[], dominant: string | null): void {
    const until = performance.now() + speakingMs;
    for (const { userId, level } of levels) this.#levels.set(userId, { level, until });
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(this.#changed, speakingMs + 50);
    this.active = dominant ?? this.active;
    this.#changed();
  }

  /** The user's level from 0 to 1; 0 if the user does not speak. */
  level(userId: string): number {
    const heard = this.#levels.get(userId);
    return heard && heard.until > performance.now() ? heard.level : 0;
  }

  stop(): void {
    clearTimeout(this.#quiet);
  }
}
