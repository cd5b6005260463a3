/**
 * Texts as words are compared: without case, accents and width. Signs that show nothing (joiners, soft hyphens, marks)
 * are passed over, so that they do not hide a word.
 */

/** `ideograph`: of a script without spaces, so a word of its own. `nothing`: passed over. `gap`: between words. */
type Kind = 'letter' | 'ideograph' | 'nothing' | 'gap';
interface Sign {
  kind: Kind;
  folded: string;
  /** It may be a part of the ideograph before it. */
  joins?: boolean;
}

const isIdeograph =
  /^(\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Script=Bopomofo})/u;
const isInvisible = /^[\p{M}\p{Cf}\u115f\u1160\u3164\uffa0]+$/u;
const isLetter = /[\p{L}\p{N}]/u;
const accents = /[^\p{L}\p{N}]/gu;
/** Marks of voiced kana, and the vowels and ends of Korean syllables: a text has them apart, or in one sign with what is before them. */
const isPart = /^[\u1161-\u1175\u11a8-\u11c2\u3099\u309a]$/u;

function look(sign: string): Sign {
  // Compatibility forms (full width, circled, mathematical) become plain letters.
  const plain = sign.normalize('NFKC');
  if (isPart.test(plain))
    return { kind: isInvisible.test(plain) ? 'nothing' : 'ideograph', folded: plain, joins: true };
  if (isInvisible.test(plain)) return { kind: 'nothing', folded: '' };
  if (!isLetter.test(plain)) return { kind: 'gap', folded: '' };
  if (isIdeograph.test(plain)) return { kind: 'ideograph', folded: plain };
  const bare = (text: string): string => text.normalize('NFKD').replace(accents, '');
  return { kind: 'letter', folded: bare(bare(plain).toLowerCase()) };
}

/** Signs that most texts of these scripts consist of, which stand for themselves: nothing needs to be looked up. */
const plainIdeograph = (code: number): boolean =>
  (code >= 0x4e00 && code <= 0x9fff) ||
  (code >= 0xac00 && code <= 0xd7a3) ||
  (code >= 0x3400 && code <= 0x4dbf);

/** What is known of each code point, 0 before it was seen: `look` takes a microsecond, a text has thousands. 1 MB. */
const known = new Uint8Array(0x110000);
const kinds: readonly (Kind | null)[] = [null, 'nothing', 'gap', 'letter', 'ideograph'];
const kindBits = 7;
/** Added where a sign does not stand for itself; `foldedOf` says for what. Unicode has some ten thousand of them. */
const folds = 8;
const joins = 16;
const foldedOf = new Map<number, string>();

function learn(code: number): number {
  const sign = String.fromCodePoint(code);
  const about: Sign = plainIdeograph(code) ? { kind: 'ideograph', folded: sign } : look(sign);
  const { kind, folded } = about;
  const own = folded === '' || folded === sign;
  if (!own) foldedOf.set(code, folded);
  return (known[code] = kinds.indexOf(kind) + (own ? 0 : folds) + (about.joins ? joins : 0));
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
  /** The ideograph before the sign. */
  let base: Word | null = null;
  for (let at = 0; at < text.length;) {
    const from = at;
    const code = text.codePointAt(from)!;
    at += code > 0xffff ? 2 : 1;
    const about = known[code]! || learn(code);
    const kind = kinds[about & kindBits];
    if (kind === 'nothing' && about < joins) continue;
    const folded: string = about & folds ? foldedOf.get(code)! : text.slice(from, at);
    if (about >= joins && base) {
      const whole = (base.folded + folded).normalize('NFC');
      if (whole.length === 1) {
        base.folded = whole;
        base.to = at;
        continue;
      }
    }
    if (kind === 'nothing') continue;
    if (kind === 'letter' && open) {
      open.folded += folded;
      open.to = at;
    } else if (kind === 'gap') open = base = null;
    else {
      const word: Word = { folded, from, to: at };
      words.push(word);
      [open, base] = kind === 'letter' ? [word, null] : [null, word];
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
