/** A seeded generator (mulberry32): the same seed makes the same decisions. */
export interface Random {
  /** 0 ≤ x < 1. */
  next(): number;
  /** 0 ≤ n < max. */
  int(max: number): number;
  pick<T>(items: readonly T[]): T;
  chance(probability: number): boolean;
  /** An independent stream, so that one part's pace does not change another's decisions. */
  fork(): Random;
}

export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (max: number): number => Math.floor(next() * max);
  return {
    next,
    int,
    pick: (items) => items[int(items.length)]!,
    chance: (probability) => next() < probability,
    fork: () => seeded(Math.floor(next() * 4_294_967_296)),
  };
}
