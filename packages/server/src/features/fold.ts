/**
 * Texts as words are compared: without case, accents and width. Signs that show nothing (joiners, soft hyphens, marks)
 * are passed over, so that they do not hide a word.
 */

/** `ideograph`: of a script without spaces, so a word of its own. `nothing`: passed over. `gap`: between words. */
type Kind = 'letter' | 'ideograph' | 'nothing' | 'gap';
interface Sign {
  kind: Kind;
  folded: string;
}

const isIdeograph =
  /^(\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Script=Bopomofo})/u;
const isInvisible = /^[\p{M}\p{Cf}\u115f\u1160\u3164\uffa0]+$/u;
const isLetter = /[\p{L}\p{N}]/u;
const accents = /[^\p{L}\p{N}]/gu;

function look(sign: string): Sign {
  // Compatibility forms (full width, circled, mathematical) become plain letters.
  const plain = sign.normalize('NFKC');
  if (isInvisible.test(plain)) return { kind: 'nothing', folded: '' };
  if (!isLetter.test(plain)) return { kind: 'gap', folded: '' };
  if (isIdeograph.test(plain)) return { kind: 'ideograph', folded: plain };
  const bare = (text: string): string => text.normalize('NFKD').replace(accents, '');
  return { kind: 'letter', folded: bare(bare(plain).toLowerCase()) };
}

const ascii: readonly Sign[] = Array.from({ length: 128 }, (_, code) => look(String.fromCharCode(code)));
/** The others that were seen last: a text has few different ones. */
const others = new Map<string, Sign>();
const mostOthers = 5_000;

function signOf(sign: string): Sign {
  const code = sign.charCodeAt(0);
  if (code < 128) return ascii[code]!;
  let found = others.get(sign);
  if (!found) {
    if (others.size >= mostOthers) others.clear();
    others.set(sign, (found = look(sign)));
  }
  return found;
}

export interface Word {
  folded: string;
  /** Where it stands in the text, in UTF-16 units. */
  from: number;
  to: number;
}

/** The words of a text, in order. */
export function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  let open: Word | null = null;
  let at = 0;
  for (const sign of text) {
    const { kind, folded } = signOf(sign);
    const from = at;
    at += sign.length;
    if (kind === 'nothing') continue;
    if (kind === 'letter' && open) {
      open.folded += folded;
      open.to = at;
    } else if (kind === 'gap') open = null;
    else {
      const word: Word = { folded, from, to: at };
      words.push(word);
      open = kind === 'letter' ? word : null;
    }
  }
  return words;
}

/** The text with these words as stars, as many as UTF-16 units: ranges of mentions in it stay where they are. */
export function masked(text: string, words: readonly Word[]): string {
  let out = '';
  let at = 0;
  for (const { from, to } of [...words].sort((a, b) => a.from - b.from)) {
    if (from < at) continue;
    out += text.slice(at, from) + '*'.repeat(to - from);
    at = to;
  }
  return out + text.slice(at);
}
