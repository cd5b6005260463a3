import { ApiError } from '@parley/protocol';
import type { types } from 'mediasoup';
import type { Engine, EngineWorker } from './engine.ts';

/** The routers of one call, each on another worker, and who speaks on them. */

/** A router of the call, on one worker. */
export interface Hall {
  router: types.Router;
  on: EngineWorker;
  levels: types.AudioLevelObserver;
  dominant: types.ActiveSpeakerObserver;
  /** How many places in it are taken; who took one gives it back. */
  seats: number;
}

export interface HallEvents {
  speakers(levels: { userId: string; level: number }[], dominant: string | null): void;
}

/** If all routers have this many seats, the next seat is on another worker, if there is one. */
const seatsPerWorker = 12;
const levelsMs = 800;
/** Decibels; a quieter participant is not speaking. */
const quietest = -60;

export class Halls {
  readonly #engine: Engine;
  readonly #events: HallEvents;
  readonly #halls: Hall[] = [];
  #dominant: string | null = null;
  #making: Promise<unknown> = Promise.resolve();

  constructor(engine: Engine, events: HallEvents) {
    this.#engine = engine;
    this.#events = events;
  }

  use(worker: EngineWorker): boolean {
    return this.#halls.some((hall) => hall.on === worker);
  }

  /**
   * Takes a place in a hall. Halls are created one after the other: two created at once could be on the same worker, and
   * could not be piped then.
   */
  place(): Promise<Hall> {
    const placed = this.#making.then(async () => {
      const hall = await this.#free();
      hall.seats++;
      return hall;
    });
    this.#making = placed.catch(() => undefined);
    return placed;
  }

  async #free(): Promise<Hall> {
    const free = this.#halls.find((hall) => hall.seats < seatsPerWorker);
    if (free) return free;
    const made = await this.#engine.router(this.#halls.map((hall) => hall.on));
    if (!made) {
      const least = this.#halls.toSorted((a, b) => a.seats - b.seats)[0];
      if (least) return least;
      throw new ApiError('calls_unavailable');
    }
    const [levels, dominant] = await Promise.all([
      made.router.createAudioLevelObserver({ maxEntries: 10, threshold: quietest, interval: levelsMs }),
      made.router.createActiveSpeakerObserver({ interval: 300 }),
    ]);
    levels.on('volumes', (volumes) =>
      this.#events.speakers(
        volumes.flatMap(({ producer, volume }) => {
          const userId = producer.appData['userId'] as string | undefined;
          return userId === undefined
            ? []
            : [{ userId, level: Math.max(0.01, Math.round((1 + volume / -quietest) * 100) / 100) }];
        }),
        this.#dominant,
      ),
    );
    levels.on('silence', () => this.#events.speakers([], this.#dominant));
    dominant.on('dominantspeaker', ({ producer }) => {
      this.#dominant = (producer.appData['userId'] as string | undefined) ?? null;
    });
    const hall: Hall = { ...made, levels, dominant, seats: 0 };
    this.#halls.push(hall);
    return hall;
  }

  close(): void {
    for (const { router } of this.#halls) router.close();
  }
}
