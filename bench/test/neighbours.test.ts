import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chosen, rows } from '../src/neighbours/attacks/all.ts';
import { Deadline, paced, Tally } from '../src/neighbours/kit.ts';
import { checkLedger } from '../src/neighbours/ledger.ts';
import type { Acknowledged } from '../src/neighbours/ledger.ts';
import { answerTo, knownName } from '../src/neighbours/resolver.ts';
import { Stolen } from '../src/neighbours/stolen.ts';
import { neighboursTable, ratioOf, undisturbedText } from '../src/neighbours/table.ts';
import type { Round } from '../src/neighbours/table.ts';
import { parseOptions } from '../src/options.ts';

const acknowledged = (n: number, seq: number, first = true): Acknowledged => ({
  sender: 0,
  cid: 'a',
  text: `run-0-${n}`,
  seq,
  first,
});
const stored = (n: number, seq: number) => ({ cid: 'a', text: `run-0-${n}`, seq });

test('a ledger that agrees with the store has nothing to tell', () => {
  const messages = [acknowledged(2, 3), acknowledged(1, 2), acknowledged(10, 4)];
  // What was stored without an acknowledgement, and what has no text, is nobody's loss.
  const kept = [stored(1, 2), stored(2, 3), stored(10, 4), stored(11, 5), { cid: 'a', text: null, seq: 1 }];
  assert.deepEqual(checkLedger(messages, kept), { checked: 3, missing: 0, doubled: 0, outOfOrder: 0 });
});

test('a message that is lost, under another seq or in another conversation is missing', () => {
  const messages = [acknowledged(1, 1), acknowledged(2, 2), acknowledged(3, 3)];
  const kept = [stored(2, 9), { ...stored(3, 3), cid: 'b' }];
  assert.equal(checkLedger(messages, kept).missing, 3);
});

test('a message that is stored twice, or before an earlier one of its sender, is told', () => {
  const messages = [acknowledged(1, 5), acknowledged(2, 4)];
  const verdict = checkLedger(messages, [stored(1, 5), stored(2, 4), stored(2, 6)]);
  assert.deepEqual(
    { doubled: verdict.doubled, outOfOrder: verdict.outOfOrder },
    { doubled: 1, outOfOrder: 1 },
  );
  // One that had to be sent again may come later.
  const again = [acknowledged(1, 5, false), acknowledged(2, 4)];
  assert.equal(checkLedger(again, [stored(1, 5), stored(2, 4)]).outOfOrder, 0);
});

const latency = (p50: number, p99: number) => ({ count: 100, p50, p99, max: p99 });
const round = (base: number, meanwhile: number): Round => ({
  baseline: latency(base, base * 2),
  attack: latency(meanwhile, meanwhile * 2),
  after: latency(base, base * 2),
  undisturbed: {
    baseline: { ...latency(base, base * 2), count: 90 },
    attack: { ...latency(meanwhile, meanwhile), count: 50 },
  },
  refused: 1,
  unanswered: 0,
  did: '3 things',
  logins: { before: 5, during: 50, failed: 2 },
  usage: [{ name: 'RSS', unit: 'MB', before: 100, during: 400, after: 110 }],
});

test('the table tells what was felt, by the ratio within each round', () => {
  const rounds = [round(10, 100), round(20, 40), round(10, 50)];
  assert.deepEqual(ratioOf(rounds, 'p99'), { median: 5, low: 2, high: 10 });
  const text = neighboursTable([{ id: '3a', what: 'deletes', of: 'send', rounds }]);
  assert.match(
    text,
    /\| 3a \| deletes \| 10 \(10–20\) \/ 20 \(20–40\) \| 50 \(40–100\) \/ 100 \(80–200\) \|/,
  );
  assert.match(text, /\| 5 \(2–10\) × \|/);
  assert.match(text, /\| 5 → 50, 2 failed \| 1 \| 0 \| RSS 100 → 400 → 110 MB \| 3 things \|$/);
});

test('sends that began while the host took a processor, or in the second after it, are told apart', () => {
  let taken = 500;
  const stolen = new Stolen(() => taken, 0);
  taken += 20;
  stolen.look(500);
  taken += 21;
  stolen.look(1_000);
  stolen.look(1_500);
  const spoiled = [499, 500, 1_999, 2_000].map((at) => stolen.spoils(at));
  assert.deepEqual(spoiled, [false, true, true, false]);
  assert.equal(
    undisturbedText(round(10, 60)),
    'while the host took no processor: 10 / 20 ms (90 % of the sends) → 60 / 60 ms (50 % of the sends), p99 3 ×',
  );
});

test('rows are chosen by their number or their id', () => {
  const ids = (only: string[] | null) => chosen(only).map((row) => row.id);
  assert.deepEqual(ids(['3', '9b']), ['3a', '3b', '9b']);
  assert.deepEqual(ids(['1']), ['1']);
  assert.equal(ids(null).length, rows.length);
  assert.throws(() => ids(['3', '99']), /no row "99"/);
  assert.equal(new Set(ids(null)).size, rows.length);
  assert.deepEqual(parseOptions(['neighbours', '--only', '3,7']).only, ['3', '7']);
  assert.ok(!parseOptions([]).workloads.some((name) => name === 'neighbours' || name === 'abuse'));
});

test('a pace is kept until its times are over, and what could not begin is left out', async () => {
  let begun = 0;
  await paced(new Deadline(5_000), { perSecond: 1_000, times: 20 }, () => void begun++);
  assert.equal(begun, 20);
  let held = 0;
  await paced(new Deadline(100), { perSecond: 1_000, waiting: 3 }, () => {
    held++;
    return new Promise<void>(() => undefined);
  });
  // On a busy machine the time may be over before the third begins.
  assert.ok(held >= 1 && held <= 3, `${held} begun`);
});

test('a tally tells successes from every kind of refusal', () => {
  const tally = new Tally();
  for (const status of [200, 201, 429, 429, 0, 'rate_limited', -1]) tally.add(status);
  assert.deepEqual(tally.done('calls'), { count: 2, text: '2 calls, 2 × 429, 1 × 0, 1 × rate_limited' });
});

test('the resolver knows one name, its address of the fourth version only', () => {
  const query = (name: string, type: number): Buffer =>
    Buffer.concat([
      Buffer.from([0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
      ...name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
      Buffer.from([0, 0, type, 0, 1]),
    ]);
  const answer = answerTo(query(knownName, 1))!;
  assert.equal(answer.readUInt16BE(0), 0xabcd);
  assert.equal(answer.readUInt16BE(6), 1);
  assert.deepEqual([...answer.subarray(-4)], [127, 0, 0, 1]);
  assert.equal(answerTo(query(knownName, 28))!.readUInt16BE(6), 0);
  assert.equal(answerTo(query('never.test', 1)), null);
  assert.equal(answerTo(Buffer.from([1, 2])), null);
});
