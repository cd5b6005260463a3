import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seed } from '../../../../scripts/seed.ts';
import { seeded } from '../gateway/fuzz-frames.ts';
import { masked as starred, wordsOf } from '../../src/features/fold.ts';
import { Automaton, entryProblem } from '../../src/features/words/automaton.ts';
import type { Found, WordList } from '../../src/features/words/automaton.ts';
import { Trie } from '../../src/features/words/trie.ts';

/** words.md: what a list finds in a text. */

const list = (entries: string[], fields: Partial<WordList> = {}): WordList => ({
  action: 'mask',
  conversations: 'all',
  entries,
  ...fields,
});
const masked = async (entries: string[], text: string): Promise<string> =>
  (await Automaton.build([list(entries)])).find(text, false).text;

test('words#compare: whole words, without case, accents, width and signs that show nothing', async () => {
  const cases: [entry: string, text: string, shown: string][] = [
    ['bad', 'A bad, BAD day. badly', 'A ***, *** day. badly'],
    ['crème', 'Creme CRÈME cremes', '***** ***** cremes'],
    ['creme', 'cre\u0300me', '******'],
    ['bad', 'ｂａｄ 𝐛𝐚𝐝 ⓑⓐⓓ', '*** ****** ***'],
    ['bad', 'b\u200bad b\u00adad b\u0301ad', '**** **** ****'],
    ['istanbul', 'İSTANBUL', '********'],
    ['bad', 'nobad', 'nobad'],
    ['c3po', 'C3PO!', '****!'],
    ["don't", 'we DON’T, we don t', 'we ***’*, we *** *'],
    ['very bad thing', 'a very,  bad thing; very bad', 'a ****,  *** *****; very bad'],
    ['very very bad', 'very very very bad', 'very **** **** ***'],
    ['坏', '这很坏啊', '这很*啊'],
    ['坏人', '他是坏人。坏 人', '他是**。* *'],
    ['カキ', 'かきカキガキｶｷ', 'かき**ガキ**'],
    ['나쁜', '그는나쁜사람', '그는**사람'],
    // In one sign or in several, of which half width has more.
    ['ガキ', 'ガキ ｶﾞｷ カ\u3099キ カ\u200b\u3099キ カキ', '** *** *** **** カキ'],
    ['パ\u309a', 'パ バ', '* バ'],
    ['ハ\u309a', 'パ ﾊﾟ ハ', '* ** ハ'],
    ['나쁜', '그는나쁜사람'.normalize('NFD'), `${'그는'.normalize('NFD')}*****${'사람'.normalize('NFD')}`],
    ['나쁜'.normalize('NFD'), '나쁜 나쁘', '** 나쁘'],
    ['나', 'ㄴㅏ 나 난 ㅏ', '** * 난 ㅏ'],
  ];
  for (const [entry, text, shown] of cases) {
    assert.equal(await masked([entry], text), shown, `${entry} in ${text}`);
    assert.equal(shown.length, text.length, 'what stands behind stays where it is');
  }
});

test('words#star: any letters at the end, the beginning, both or inside of one word', async () => {
  const cases: [entry: string, text: string, shown: string][] = [
    ['bad*', 'bad badly abad', '*** ***** abad'],
    ['*bad', 'bad abad badly', '*** **** badly'],
    ['*bad*', 'bad xbadx ba d', '*** ***** ba d'],
    ['*b*', 'abc xyz b', '*** xyz *'],
    ['b*d', 'bd bad b d abd bdx', '** *** b d abd bdx'],
    ['aba*aba', 'aba abaaba abaxaba abaab', 'aba ****** ******* abaab'],
  ];
  for (const [entry, text, shown] of cases)
    assert.equal(await masked([entry], text), shown, `${entry} in ${text}`);
  assert.equal(await masked(['ba*', '*ly', '*xx*', 'q*z'], 'bay fly axxa qz ok'), '*** *** **** ** ok');
  for (const good of ['a', 'a b', 'a*', '*a', '*a*', 'a*b', '坏人'])
    assert.equal(entryProblem(good), null, good);
  for (const bad of ['', '*', '**', ' ', '!?', 'a*b*c', '*a*b', 'a* b', 'a b*', 'a-b*'])
    assert.notEqual(entryProblem(bad), null, bad);
});

test('words#actions: what rejects wins, and lists for groups leave direct conversations alone', async () => {
  const automaton = await Automaton.build([
    list(['mild', 'both'], { action: 'mask' }),
    list(['harsh', 'both'], { action: 'reject', conversations: 'group' }),
  ]);
  const find = (text: string, direct: boolean) => {
    const { reject, text: shown } = automaton.find(text, direct);
    return reject ? 'rejected' : shown;
  };
  assert.equal(find('mild harsh', false), 'rejected');
  assert.equal(find('mild harsh', true), '**** harsh');
  assert.equal(find('both', false), 'rejected');
  assert.equal(find('both', true), '****');
  assert.equal(find('nothing', false), 'nothing');
  assert.equal((await Automaton.build([])).find('anything', true).text, 'anything');
});

/** What the lists find, by comparing each entry with each word. */
function naive(lists: readonly WordList[], text: string, direct: boolean): Found {
  const words = wordsOf(text);
  const hidden = new Set<number>();
  const met = { reject: false, mask: false, report: false };
  for (const { action, conversations, entries } of lists) {
    if (direct && conversations === 'group') continue;
    for (const entry of entries) {
      const parts = entry.split('*').map((part) => wordsOf(part).map(({ folded }) => folded));
      for (let i = 0; i < words.length; i++) {
        let length = 0;
        if (parts.length === 1) {
          if (parts[0]!.every((word, k) => words[i + k]?.folded === word)) length = parts[0]!.length;
        } else {
          const [first = '', middle = '', last] = parts.map(([word = '']) => word);
          const { folded } = words[i]!;
          const found =
            last !== undefined
              ? folded.includes(middle)
              : folded.length >= first.length + middle.length &&
                folded.startsWith(first) &&
                folded.endsWith(middle);
          if (found) length = 1;
        }
        if (length > 0) met[action] = true;
        if (action === 'mask') for (let k = 0; k < length; k++) hidden.add(i + k);
      }
    }
  }
  const shown = starred(
    text,
    words.filter((_, i) => hidden.has(i)),
  );
  return { reject: met.reject, report: met.report, text: met.reject ? text : shown };
}

test('words#compare: for random lists and texts the automaton finds what comparing each entry with each word finds', async () => {
  const { below, pick } = seeded(seed('word lists'));
  const word = (most: number): string =>
    Array.from({ length: 1 + below(most) }, () => pick(['a', 'a', 'b', 'B', 'ä', '坏', '\u200b', 'ﬁ'])).join(
      '',
    );
  const shapes: (() => string)[] = [
    () => word(4),
    () => `${word(3)} ${word(2)}`,
    () => Array.from({ length: 1 + below(5) }, () => word(1)).join(' '),
    () => `${word(3)}*`,
    () => `*${word(3)}`,
    () => `*${word(3)}*`,
    () => `${word(3)}*${word(3)}`,
  ];
  let [found, rejected] = [0, 0];
  for (let round = 0; round < 400; round++) {
    const lists = Array.from({ length: 1 + below(4) }, () =>
      list(
        Array.from({ length: 1 + below(6) }, () => pick(shapes)()).filter((e) => entryProblem(e) === null),
        {
          action: pick(['reject', 'mask', 'mask', 'report'] as const),
          conversations: pick(['all', 'group'] as const),
        },
      ),
    );
    const automaton = await Automaton.build(lists, () => Promise.resolve());
    for (let i = 0; i < 10; i++) {
      const text = Array.from({ length: below(12) }, () => word(6)).join(pick([' ', ', ', '-']));
      const direct = pick([true, false]);
      const [is, should] = [automaton.find(text, direct), naive(lists, text, direct)];
      const about = JSON.stringify({ lists, text, direct });
      assert.equal(is.reject, should.reject, about);
      if (is.reject) rejected++;
      else assert.deepEqual(is, should, about);
      if (should.report || should.text !== text) found++;
    }
  }
  assert.ok(found > 400 && rejected > 400, `${found} found, ${rejected} rejected`);
});

/** Steps instead of time: how often a node is looked for. */
async function stepsOf<T>(run: () => T | Promise<T>): Promise<{ steps: number; result: T }> {
  const { child } = Trie.prototype;
  let steps = 0;
  Trie.prototype.child = function (...args) {
    steps++;
    return child.apply(this, args);
  };
  try {
    return { result: await run(), steps };
  } finally {
    Trie.prototype.child = child;
  }
}

test('words#cost, T6.8: a text takes a few steps a letter, whatever the lists and the text are', async () => {
  const of = (entry: (i: number) => string): WordList =>
    list(Array.from({ length: 5_000 }, (_, i) => entry(i)));
  const lists: Record<string, WordList> = {
    mixed: of((i) => [`w${i}`, `a${i}*`, `*aa${i}`, `*aa${i}*`, `a*b${i}`, `aa aa ${i}`][i % 6]!),
    inside: of((i) => `*${'a'.repeat(1 + (i % 58))}${i.toString(36)}*`),
    phrases: of((i) => `${'a '.repeat(i % 28)}b${i}`),
    masks: of((i) => 'a '.repeat(1 + (i % 31))),
    pairs: of((i) => (i % 2 ? `${'a'.repeat(1 + (i % 61))}*b` : `c*${'a'.repeat(1 + (i % 61))}`)),
    ends: of((i) => (i % 2 ? `${'a'.repeat(1 + (i % 61))}*` : `*${'a'.repeat(1 + (i % 61))}`)),
  };
  const texts = {
    'one word': 'a'.repeat(5_000),
    'many words': 'a '.repeat(2_500),
    'words of 64': `${'a'.repeat(64)} `.repeat(77),
  };
  for (const [name, words] of Object.entries(lists)) {
    const automaton = await Automaton.build([words]);
    for (const [kind, text] of Object.entries(texts)) {
      const { steps } = await stepsOf(() => automaton.find(text, false));
      assert.ok(steps <= 6 * text.length, `${name}, ${kind}: ${steps} steps for ${text.length} letters`);
    }
  }
});

test('words#cost: an automaton is built in slices, and the event loop has its turn between them', async () => {
  const entries = Array.from({ length: 5_000 }, (_, i) => `*${i}${'x'.repeat(i % 50)}*`);
  let pauses = 0;
  let most = 0;
  let steps = 0;
  const { child, add } = Trie.prototype;
  Trie.prototype.add = function (...args) {
    steps++;
    return add.apply(this, args);
  };
  Trie.prototype.child = function (...args) {
    steps++;
    return child.apply(this, args);
  };
  try {
    await Automaton.build([list(entries)], () => {
      pauses++;
      most = Math.max(most, steps);
      steps = 0;
      return Promise.resolve();
    });
  } finally {
    Object.assign(Trie.prototype, { add, child });
  }
  most = Math.max(most, steps);
  assert.ok(pauses > 100, `${pauses} pauses`);
  assert.ok(most < 4_000, `${most} steps without a pause`);
});
