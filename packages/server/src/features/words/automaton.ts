import { masked, wordsOf } from '../fold.ts';
import type { Word } from '../fold.ts';

/**
 * Finds the entries of word lists in a text, in time that is linear in the text, however many entries there are: what is
 * done for a word, or for a letter of it, is bounded by the length of an entry. Entries without a star are words, or a trie
 * of words; as many of its nodes are active as the longest entry has words. Entries with a star are found by their
 * beginning, their end, both, or a piece.
 */

export interface WordList {
  action: 'reject' | 'mask' | 'report';
  /** `group`: not in direct conversations. */
  conversations: 'all' | 'group';
  entries: readonly string[];
}

/** In which conversations an entry rejects a text, is masked, or is reported, as bits. */
interface Meaning {
  reject: number;
  mask: number;
  report: number;
}
const inDirect = 1;
const inGroups = 2;

interface Node {
  next: Map<string, Node>;
  meaning: Meaning | null;
}
const newNode = (): Node => ({ next: new Map(), meaning: null });

interface Piece {
  id: number;
  length: number;
  meaning: Meaning | null;
}

/** Beginnings, ends or other pieces of words. */
class Pieces {
  readonly #found = new Map<string, Piece>();
  /** Those that there are, for each letter with which a piece begins or, for ends, ends. */
  readonly #lengths = new Map<number, number[]>();
  readonly #letter: (piece: string) => number;

  constructor(letter: (piece: string) => number = (piece) => piece.charCodeAt(0)) {
    this.#letter = letter;
  }

  at(piece: string): Piece {
    let found = this.#found.get(piece);
    if (!found) {
      this.#found.set(piece, (found = { id: this.#found.size, length: piece.length, meaning: null }));
      const lengths = this.#lengths.get(this.#letter(piece)) ?? [];
      if (!lengths.includes(piece.length)) lengths.push(piece.length);
      this.#lengths.set(this.#letter(piece), lengths);
    }
    return found;
  }

  mean(piece: string, meaning: Meaning): void {
    const at = this.at(piece);
    at.meaning = both(at.meaning, meaning);
  }

  lengths(letter: number): readonly number[] | undefined {
    return this.#lengths.get(letter);
  }

  get(piece: string): Piece | undefined {
    return this.#found.get(piece);
  }
}

export interface Found {
  reject: boolean;
  report: boolean;
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
  readonly #ends = new Pieces((piece) => piece.charCodeAt(piece.length - 1));
  /** A beginning and an end. */
  readonly #pairs = new Map<string, Meaning>();
  readonly #inside = new Pieces();
  #stars = false;

  constructor(lists: readonly WordList[]) {
    for (const list of lists) {
      const places = list.conversations === 'all' ? inDirect | inGroups : inGroups;
      const meaning = { ...nothing, [list.action]: places };
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
    this.#stars = true;
    if (last !== undefined) this.#inside.mean(middle, meaning);
    else if (middle === '') this.#beginnings.mean(first, meaning);
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
    let report = false;
    /** Entries of several words that are under way, and the word with which each began. */
    let active: { node: Node; from: number }[] = [];
    for (let i = 0; i < words.length; i++) {
      const word = words[i]!;
      const going: typeof active = [];
      for (let k = active.length; k >= 0; k--) {
        const { node, from } = active[k] ?? { node: this.#phrases, from: i };
        const next = node.next.get(word.folded);
        if (!next) continue;
        if (next.next.size > 0) going.push({ node: next, from });
        if (!next.meaning) continue;
        if (next.meaning.reject & here) return { reject: true, report, text };
        report ||= (next.meaning.report & here) !== 0;
        if (next.meaning.mask & here) for (let at = from; at <= i; at++) hidden.add(words[at]!);
      }
      active = going;
      if (!this.#stars) continue;
      const { reject, mask, report: told } = this.#inWord(word.folded);
      if (reject & here) return { reject: true, report, text };
      report ||= (told & here) !== 0;
      if (mask & here) hidden.add(word);
    }
    return { reject: false, report, text: hidden.size === 0 ? text : masked(text, [...hidden]) };
  }

  /** What entries with a star find in the word. */
  #inWord(word: string): Meaning {
    let all = nothing;
    const meet = (meaning: Meaning | null | undefined): void => {
      if (meaning) all = both(all, meaning);
    };
    const begun: Piece[] = [];
    for (const length of this.#beginnings.lengths(word.charCodeAt(0)) ?? none) {
      const piece = length <= word.length ? this.#beginnings.get(word.slice(0, length)) : undefined;
      if (piece) begun.push(piece);
      meet(piece?.meaning);
    }
    for (const length of this.#ends.lengths(word.charCodeAt(word.length - 1)) ?? none) {
      const piece = length <= word.length ? this.#ends.get(word.slice(-length)) : undefined;
      if (!piece) continue;
      meet(piece.meaning);
      for (const { id, length: before } of begun)
        if (before + length <= word.length) meet(this.#pairs.get(`${id} ${piece.id}`));
    }
    for (let from = 0; from < word.length; from++)
      for (const length of this.#inside.lengths(word.charCodeAt(from)) ?? none)
        if (from + length <= word.length) meet(this.#inside.get(word.slice(from, from + length))?.meaning);
    return all;
  }
}

const nothing: Meaning = { reject: 0, mask: 0, report: 0 };
const none: readonly number[] = [];
const both = (a: Meaning | null | undefined, b: Meaning): Meaning =>
  a ? { reject: a.reject | b.reject, mask: a.mask | b.mask, report: a.report | b.report } : b;
