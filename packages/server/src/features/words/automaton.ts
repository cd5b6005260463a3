import { masked, wordsOf } from './fold.ts';
import type { Word } from './fold.ts';

/**
 * Finds the entries of word lists in a text, in time that is linear in the text, however many entries there are: what is
 * done for a word, or for a letter of it, is bounded by the length of an entry. Entries without a star are words, or a trie
 * of words; as many of its nodes are active as the longest entry has words. Entries with a star are found by their
 * beginning, their end, both, or a piece.
 */

export interface WordList {
  action: 'reject' | 'mask';
  /** `group`: not in direct conversations. */
  conversations: 'all' | 'group';
  entries: readonly string[];
}

/** In which conversations an entry rejects a text, or is masked, as bits. */
interface Meaning {
  reject: number;
  mask: number;
}
const inDirect = 1;
const inGroups = 2;

interface Node {
  next: Map<string, Node>;
  meaning: Meaning | null;
}
const newNode = (): Node => ({ next: new Map(), meaning: null });

/** Beginnings, ends or other pieces of words. */
class Pieces {
  readonly #found = new Map<string, { id: number; meaning: Meaning | null }>();
  readonly #lengths = new Set<number>();

  at(piece: string): { id: number; meaning: Meaning | null } {
    let found = this.#found.get(piece);
    if (!found) this.#found.set(piece, (found = { id: this.#found.size, meaning: null }));
    this.#lengths.add(piece.length);
    return found;
  }

  mean(piece: string, meaning: Meaning): void {
    const at = this.at(piece);
    at.meaning = both(at.meaning, meaning);
  }

  /** Those that there are in a place of so many letters; `cut` makes the piece of a length. */
  *of(room: number, cut: (length: number) => string) {
    for (const length of this.#lengths) {
      const found = length <= room ? this.#found.get(cut(length)) : undefined;
      if (found) yield { ...found, length };
    }
  }
}

export interface Found {
  reject: boolean;
  /** The text with what was found masked; the same text if nothing was. */
  text: string;
}

/** The pieces of an entry around its stars, folded; a string says why it cannot be used. */
function piecesOf(entry: string): string[] | string {
  const parts = entry.split('*').map((part) => wordsOf(part).map((word) => word.folded));
  if (parts.every((words) => words.length === 0)) return 'has no letters';
  if (parts.length === 1) return parts[0]!;
  if (/\s/u.test(entry.trim()) || parts.some((words) => words.length > 1))
    return 'has a star and more than one word';
  const pieces = parts.map((words) => words[0] ?? '');
  const [first, , last] = pieces;
  return pieces.length === 2 || (pieces.length === 3 && first === '' && last === '')
    ? pieces
    : 'has more than one star inside its word';
}

/** Why an entry cannot be used; null if it can. */
export function entryProblem(entry: string): string | null {
  const pieces = piecesOf(entry);
  return typeof pieces === 'string' ? pieces : null;
}

export class Automaton {
  readonly #phrases = newNode();
  readonly #beginnings = new Pieces();
  readonly #ends = new Pieces();
  /** A beginning and an end. */
  readonly #pairs = new Map<string, Meaning>();
  /** Pieces by their first two letters, or by the only one. */
  readonly #inside = new Map<string, Pieces>();

  constructor(lists: readonly WordList[]) {
    for (const list of lists) {
      const places = list.conversations === 'all' ? inDirect | inGroups : inGroups;
      const meaning = { reject: 0, mask: 0, [list.action]: places };
      for (const entry of list.entries) this.#add(entry, meaning);
    }
  }

  #add(entry: string, meaning: Meaning): void {
    const pieces = piecesOf(entry);
    if (typeof pieces === 'string') return;
    if (!entry.includes('*')) {
      let node = this.#phrases;
      for (const word of pieces) {
        let next = node.next.get(word);
        if (!next) node.next.set(word, (next = newNode()));
        node = next;
      }
      node.meaning = both(node.meaning, meaning);
      return;
    }
    const [first, middle, last] = pieces as [string, string, string?];
    if (last !== undefined) {
      const key = middle.slice(0, 2);
      let same = this.#inside.get(key);
      if (!same) this.#inside.set(key, (same = new Pieces()));
      same.mean(middle, meaning);
    } else if (middle === '') this.#beginnings.mean(first, meaning);
    else if (first === '') this.#ends.mean(middle, meaning);
    else {
      const key = `${this.#beginnings.at(first).id} ${this.#ends.at(middle).id}`;
      this.#pairs.set(key, both(this.#pairs.get(key), meaning));
    }
  }

  /** @param direct whether the text is for a direct conversation. */
  find(text: string, direct: boolean): Found {
    const here = direct ? inDirect : inGroups;
    const words = wordsOf(text);
    const hidden = new Set<Word>();
    /** Entries of several words that are under way, and the word with which each began. */
    let active: { node: Node; from: number }[] = [];
    for (const [i, word] of words.entries()) {
      const going: typeof active = [];
      for (const { node, from } of [...active, { node: this.#phrases, from: i }]) {
        const next = node.next.get(word.folded);
        if (!next) continue;
        if (next.next.size > 0) going.push({ node: next, from });
        if (!next.meaning) continue;
        if (next.meaning.reject & here) return { reject: true, text };
        if (next.meaning.mask & here) for (const one of words.slice(from, i + 1)) hidden.add(one);
      }
      active = going;
      for (const meaning of this.#inWord(word.folded)) {
        if (meaning.reject & here) return { reject: true, text };
        if (meaning.mask & here) hidden.add(word);
      }
    }
    return { reject: false, text: hidden.size === 0 ? text : masked(text, [...hidden]) };
  }

  /** What entries with a star find in the word. */
  *#inWord(word: string): Generator<Meaning> {
    const begun = [];
    for (const found of this.#beginnings.of(word.length, (length) => word.slice(0, length))) {
      if (found.meaning) yield found.meaning;
      begun.push(found);
    }
    for (const found of this.#ends.of(word.length, (length) => word.slice(-length))) {
      if (found.meaning) yield found.meaning;
      if (this.#pairs.size > 0)
        for (const { id, length } of begun) {
          const pair = length + found.length <= word.length && this.#pairs.get(`${id} ${found.id}`);
          if (pair) yield pair;
        }
    }
    if (this.#inside.size === 0) return;
    for (let from = 0; from < word.length; from++)
      for (const key of [word.slice(from, from + 2), word[from]!])
        for (const { meaning } of this.#inside
          .get(key)
          ?.of(word.length - from, (n) => word.slice(from, from + n)) ?? [])
          if (meaning) yield meaning;
  }
}

const both = (a: Meaning | null | undefined, b: Meaning): Meaning =>
  a ? { reject: a.reject | b.reject, mask: a.mask | b.mask } : b;
