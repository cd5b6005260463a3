import { limits } from '@parley/protocol';
import type { WordList as WordListRecord } from '@parley/protocol';
import { masked, wordsOf } from '../fold.ts';
import { Trie } from './trie.ts';

/**
 * Finds the entries of word lists in a text, in time that is linear in the text, however many entries there are. Words and
 * entries of several words are found by an automaton over words (Aho and Corasick), pieces inside of words by one over
 * letters; beginnings and ends of words by walks from both sides, which end after the longest entry. Only an entry with
 * a beginning and an end is looked up for each pair of those that a word has.
 */

export type WordList = Pick<WordListRecord, 'action' | 'conversations'> & { entries: readonly string[] };

/** What an entry means, as bits: reject, mask and report, in direct conversations and in groups. */
const bits = { reject: 1, mask: 4, report: 16 } as const;
const inDirect = 1;
const inGroups = 2;
/** Of a node of `starts`: a word of an entry ends here. Of `starts` and `ends`: it is half of a pair. */
const isWord = 64;
const isHalf = 128;

export interface Found {
  reject: boolean;
  report: boolean;
  /** The text with what was found masked; the same text if nothing was. */
  text: string;
}

/** The pieces of an entry around its stars, folded; a string says why it cannot be used. */
function piecesOf(entry: string): string[] | string {
  const parts = entry.split('*').map((part) => wordsOf(part).map((word) => word.folded));
  const letters = [...parts.flat().join('')].length;
  if (letters === 0) return 'has no letters';
  // One sign may stand for eighteen letters.
  if (letters > limits.wordCharacters) return `has more than ${limits.wordCharacters} letters`;
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

/** An entry as it is compared. */
interface Entry {
  pieces: readonly string[];
  stars: boolean;
  meaning: number;
}

/** Letters that are folded, and nodes that are made or linked, before the event loop has its turn. */
const sliceSize = 1_000;

export class Automaton {
  /** Words of entries, and beginnings of words. */
  readonly #starts: Trie;
  /** Ends of words, read backwards. */
  readonly #ends: Trie;
  /** A beginning and an end: two steps, by their nodes. */
  readonly #pairs: Trie;
  /** For each beginning in `pairs`: bits for the lengths of its ends, so that most that do not fit cost nothing. */
  readonly #lengths: Int32Array;
  readonly #inside: Trie;
  /** Entries without a star: a step is a word, by its node in `starts`. */
  readonly #phrases: Trie;
  /** For each node of `phrases`: how many of the last words are masked, in direct conversations and in groups. */
  readonly #masks: readonly [Uint8Array, Uint8Array];
  /** What a pair can mean. */
  #pairsMean = 0;

  private constructor(entries: readonly Entry[]) {
    const most = { starts: 0, ends: 0, pairs: 0, inside: 0, phrases: 0 };
    for (const { pieces, stars } of entries) {
      const [first = '', middle = '', last] = pieces;
      if (!stars) {
        most.phrases += pieces.length;
        for (const word of pieces) most.starts += word.length;
      } else if (last !== undefined) most.inside += middle.length;
      else {
        most.starts += first.length;
        most.ends += middle.length;
        most.pairs += 2;
      }
    }
    this.#starts = new Trie(most.starts);
    this.#ends = new Trie(most.ends);
    this.#pairs = new Trie(most.pairs);
    this.#lengths = new Int32Array(most.pairs + 1);
    this.#inside = new Trie(most.inside);
    this.#phrases = new Trie(most.phrases);
    this.#masks = [new Uint8Array(most.phrases + 1), new Uint8Array(most.phrases + 1)];
  }

  /**
   * Builds it in slices, because thousands of entries take many milliseconds.
   * @param pause called between two slices.
   */
  static async build(
    lists: readonly WordList[],
    pause: () => Promise<void> = () => new Promise((resolve) => void setImmediate(resolve)),
  ): Promise<Automaton> {
    let done = 0;
    const isFull = (steps: number): boolean => (done += steps) >= sliceSize && (done = 0) === 0;
    const entries: Entry[] = [];
    for (const list of lists) {
      const meaning = bits[list.action] * (list.conversations === 'all' ? inDirect | inGroups : inGroups);
      for (const entry of list.entries) {
        const pieces = piecesOf(entry);
        if (typeof pieces !== 'string') entries.push({ pieces, stars: entry.includes('*'), meaning });
        if (isFull(entry.length)) await pause();
      }
    }
    const made = new Automaton(entries);
    for (const entry of entries) {
      made.#add(entry);
      if (isFull(entry.pieces.reduce((all, piece) => all + piece.length, 0))) await pause();
    }
    for (const _ of made.#link()) if (isFull(1)) await pause();
    return made;
  }

  #add({ pieces, stars, meaning }: Entry): void {
    if (!stars) {
      let node = 0;
      for (const word of pieces) {
        const end = path(this.#starts, word);
        this.#starts.marks[end]! |= isWord;
        node = this.#phrases.add(node, end);
      }
      this.#phrases.marks[node]! |= meaning;
      return;
    }
    const [first, middle, last] = pieces as [string, string, string?];
    if (last !== undefined) this.#inside.marks[path(this.#inside, middle)]! |= meaning;
    else if (middle === '') this.#starts.marks[path(this.#starts, first)]! |= meaning;
    else {
      const end = path(this.#ends, backwards(middle));
      if (first === '') this.#ends.marks[end]! |= meaning;
      else {
        const start = path(this.#starts, first);
        this.#starts.marks[start]! |= isHalf;
        this.#ends.marks[end]! |= isHalf;
        const half = this.#pairs.add(0, start);
        this.#lengths[half]! |= bitOf(middle.length);
        this.#pairs.marks[this.#pairs.add(half, end)]! |= meaning;
        this.#pairsMean |= meaning;
      }
    }
  }

  /** What ends at a node means what each of its own ends means, too. */
  *#link(): Generator<void> {
    const { marks } = this.#inside;
    yield* this.#inside.link((node, fail) => (marks[node]! |= marks[fail]!));
    const phrases = this.#phrases;
    yield* phrases.link((node, fail) => {
      for (const [i, mask] of this.#masks.entries())
        mask[node] = (phrases.marks[node]! & (bits.mask << i)) === 0 ? mask[fail]! : phrases.depth(node);
      phrases.marks[node]! |= phrases.marks[fail]!;
    });
  }

  /** @param direct whether the text is for a direct conversation. */
  find(text: string, direct: boolean): Found {
    const here = direct ? inDirect : inGroups;
    const masks = this.#masks[direct ? 0 : 1];
    const words = wordsOf(text);
    /** At each word, how many more maskings begin than have ended before it. */
    let hidden: Int32Array | undefined;
    const hide = (from: number, to: number): void => {
      hidden ??= new Int32Array(words.length + 1);
      hidden[from]!++;
      hidden[to]!--;
    };
    let report = false;
    let phrase = 0;
    for (let i = 0; i < words.length; i++) {
      const { found, node } = this.#inWord(words[i]!.folded, here);
      phrase = node === 0 ? 0 : this.#phrases.next(phrase, node);
      const means = found | this.#phrases.marks[phrase]!;
      if (means & (bits.reject * here)) return { reject: true, report, text };
      report ||= (means & (bits.report * here)) !== 0;
      if (masks[phrase]! > 0) hide(i + 1 - masks[phrase]!, i + 1);
      if (found & (bits.mask * here)) hide(i, i + 1);
    }
    if (!hidden) return { reject: false, report, text };
    let depth = 0;
    const stars = words.filter((_, i) => (depth += hidden![i]!) > 0);
    return { reject: false, report, text: masked(text, stars) };
  }

  /** What entries with a star find in the word, and its node in `starts` if it is a word of an entry. */
  #inWord(word: string, here: number): { found: number; node: number } {
    const { length } = word;
    let found = 0;
    let node = 0;
    let read = 0;
    let begun: number[] | undefined;
    for (; read < length; read++) {
      const next = this.#starts.child(node, word.charCodeAt(read));
      if (next === 0) break;
      node = next;
      found |= this.#starts.marks[node]!;
      if (this.#starts.marks[node]! & isHalf) (begun ??= []).push(read + 1, this.#pairs.child(0, node));
    }
    if (read < length || (this.#starts.marks[node]! & isWord) === 0) node = 0;
    if (!this.#ends.empty) found |= this.#atEnd(word, begun, here);
    if (!this.#inside.empty)
      for (let at = 0, inside = 0; at < length; at++) {
        inside = this.#inside.next(inside, word.charCodeAt(at));
        found |= this.#inside.marks[inside]!;
      }
    return { found, node };
  }

  /** What entries with an end find in the word. @param begun length and node in `pairs` of each beginning that it has, short ones first. */
  #atEnd(word: string, begun: readonly number[] | undefined, here: number): number {
    const { length } = word;
    let found = 0;
    /** All that pairs can still say here. */
    const most = this.#pairsMean & ((bits.reject | bits.mask | bits.report) * here);
    let fitting = 0;
    if (begun) for (let i = 1; i < begun.length; i += 2) fitting |= this.#lengths[begun[i]!]!;
    for (let read = 1, node = 0; read <= length; read++) {
      node = this.#ends.child(node, word.charCodeAt(length - read));
      if (node === 0) break;
      const mark = this.#ends.marks[node]!;
      found |= mark;
      if (!begun || (mark & isHalf) === 0 || (fitting & bitOf(read)) === 0) continue;
      for (let i = 0; i < begun.length; i += 2) {
        if ((found & most) === most || begun[i]! + read > length) break;
        const half = begun[i + 1]!;
        if (this.#lengths[half]! & bitOf(read)) found |= this.#pairs.marks[this.#pairs.child(half, node)]!;
      }
    }
    return found;
  }
}

const bitOf = (length: number): number => 1 << (length & 31);

/** The node of these letters, made if need be. */
function path(trie: Trie, letters: string): number {
  let node = 0;
  for (let i = 0; i < letters.length; i++) node = trie.add(node, letters.charCodeAt(i));
  return node;
}

const backwards = (letters: string): string => letters.split('').reverse().join('');
