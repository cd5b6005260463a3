import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Automaton, entryProblem } from '../../src/features/words/automaton.ts';
import type { WordList } from '../../src/features/words/automaton.ts';

/** words.md: what a list finds in a text. */

const list = (entries: string[], fields: Partial<WordList> = {}): WordList => ({
  action: 'mask',
  conversations: 'all',
  entries,
  ...fields,
});
const masked = (entries: string[], text: string): string =>
  new Automaton([list(entries)]).find(text, false).text;

test('words#compare: whole words, without case, accents, width and signs that show nothing', () => {
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
  ];
  for (const [entry, text, shown] of cases) {
    assert.equal(masked([entry], text), shown, `${entry} in ${text}`);
    assert.equal(shown.length, text.length, 'what stands behind stays where it is');
  }
});

test('words#star: any letters at the end, the beginning, both or inside of one word', () => {
  const cases: [entry: string, text: string, shown: string][] = [
    ['bad*', 'bad badly abad', '*** ***** abad'],
    ['*bad', 'bad abad badly', '*** **** badly'],
    ['*bad*', 'bad xbadx ba d', '*** ***** ba d'],
    ['*b*', 'abc xyz b', '*** xyz *'],
    ['b*d', 'bd bad b d abd bdx', '** *** b d abd bdx'],
    ['aba*aba', 'aba abaaba abaxaba abaab', 'aba ****** ******* abaab'],
  ];
  for (const [entry, text, shown] of cases) assert.equal(masked([entry], text), shown, `${entry} in ${text}`);
  assert.equal(masked(['ba*', '*ly', '*xx*', 'q*z'], 'bay fly axxa qz ok'), '*** *** **** ** ok');
  for (const good of ['a', 'a b', 'a*', '*a', '*a*', 'a*b', '坏人'])
    assert.equal(entryProblem(good), null, good);
  for (const bad of ['', '*', '**', ' ', '!?', 'a*b*c', '*a*b', 'a* b', 'a b*', 'a-b*'])
    assert.notEqual(entryProblem(bad), null, bad);
});

test('words#actions: what rejects wins, and lists for groups leave direct conversations alone', () => {
  const automaton = new Automaton([
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
  assert.equal(new Automaton([]).find('anything', true).text, 'anything');
});

test('words#cost: the work for a text grows with the text, not with the lists', () => {
  // Counts look-ups instead of time: every `get` of a Map while a text is searched.
  const { get } = Map.prototype;
  let looked = 0;
  const count = (entries: string[], text: string): number => {
    const automaton = new Automaton([list(entries)]);
    Map.prototype.get = function (key) {
      looked++;
      return get.call(this, key) as unknown;
    };
    try {
      looked = 0;
      automaton.find(text, false);
      return looked;
    } finally {
      Map.prototype.get = get;
    }
  };
  const entries = (n: number): string[] =>
    Array.from(
      { length: n },
      (_, i) => [`w${i}`, `a${i}*`, `*aa${i}`, `*aa${i}*`, `a*b${i}`, `aa aa ${i}`][i % 6]!,
    );
  const text = 'aaaa '.repeat(1_000);
  const [few, many] = [count(entries(50), text), count(entries(5_000), text)];
  assert.ok(many < 3 * few, `${few} look-ups with 50 entries, ${many} with 5,000`);
  const twice = count(entries(5_000), text + text);
  assert.ok(twice < 2.2 * many, `${many} look-ups, ${twice} for twice the text`);
});
