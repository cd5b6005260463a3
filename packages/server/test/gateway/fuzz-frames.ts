import { frameTypes } from '@parley/protocol';

/** Frames that no client should send, made from a seed. */

export interface Random {
  (): number;
  below(n: number): number;
  pick<T>(list: readonly T[]): T;
  bytes(n: number): Buffer;
}

/** mulberry32 */
export function seeded(seed: number): Random {
  let a = seed;
  const next = () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number) => Math.floor(next() * n);
  return Object.assign(next, {
    below,
    pick: <T>(list: readonly T[]) => list[below(list.length)]!,
    bytes: (n: number) => Buffer.from(Array.from({ length: n }, () => below(256))),
  });
}

const keys = [
  't',
  'd',
  'id',
  'cid',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'length',
  '',
  'a\0b',
  '\ud800',
  '$ref',
  'hasOwnProperty',
];
const strings = [
  '',
  'x',
  '\0',
  '\ud800',
  '🎉',
  'conv_dm_',
  'msg_',
  '__proto__',
  "'; DROP TABLE users; --",
  '%00',
  '\u202e',
  'x'.repeat(5_001),
  '9'.repeat(400),
  'NaN',
];
const numbers = [0, -1, 1, 1.5, -0, 2 ** 31, 2 ** 53, -(2 ** 53), 2 ** 63, 1e308, 1e-300];

export function randomValue(random: Random, depth = 0): unknown {
  switch (random.below(depth > 4 ? 4 : 7)) {
    case 0:
      return random.pick(strings);
    case 1:
      return random.pick(numbers);
    case 2:
      return random.pick([true, false, null]);
    case 3:
      return random.bytes(random.below(30)).toString('latin1');
    case 4:
      return Array.from({ length: random.below(5) }, () => randomValue(random, depth + 1));
    default:
      return randomObject(random, depth);
  }
}

function randomObject(random: Random, depth: number): object {
  const out = {};
  for (let i = random.below(5); i > 0; i--)
    Object.defineProperty(out, random.pick(keys), {
      value: randomValue(random, depth + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  return out;
}

const nested = (open: string, close: string, depth: number, inside = '') =>
  open.repeat(depth) + inside + close.repeat(depth);

/** A frame that is nearly right: real ids, one thing wrong. */
function nearly(random: Random, ids: { cid: string; message: string; user: string }): string {
  const good: Record<string, object> = {
    'message.send': { cid: ids.cid, clientMsgId: `${random()}`, text: 'fuzz', metadata: { a: 1 } },
    'message.update': { id: ids.message, text: 'fuzz', expectedVersion: random.below(3) },
    'message.delete': { id: 'msg_none' },
    typing: { cid: ids.cid, state: 'start' },
    read: { cid: ids.cid, seq: random.below(10) },
    delivered: { items: [{ cid: ids.cid, seq: random.below(10) }] },
    sync: { cursor: null },
    'presence.watch': { userIds: [ids.user] },
    hb: {},
  };
  const t = random.pick(Object.keys(good));
  const d: Record<string, unknown> = { ...good[t] };
  const field = random.pick([...Object.keys(d), 'extra']);
  switch (random.below(5)) {
    case 0:
      d[field] = randomValue(random);
      break;
    case 1:
      delete d[field];
      break;
    case 2:
      Object.defineProperty(d, random.pick(keys), { value: randomValue(random), enumerable: true });
      break;
    case 3:
      d['metadata'] = randomValue(random);
      break;
    default:
  }
  const id = random.below(6) === 0 ? random.pick([null, {}, 'x'.repeat(65), 1.5, '']) : random.below(1_000);
  return JSON.stringify({ t, id, d });
}

export function fuzzFrame(
  random: Random,
  ids: { cid: string; message: string; user: string },
): string | Buffer {
  switch (random.below(12)) {
    case 0:
      return random.bytes(random.below(200));
    case 1:
      return random.bytes(random.below(60)).toString('latin1');
    case 2:
      return JSON.stringify(randomValue(random));
    case 3:
      return '['.repeat(16_384);
    case 4:
      return nested('[', ']', 8_000);
    case 5:
      return `{"t":"message.send","id":1,"d":{"cid":"${ids.cid}","clientMsgId":"x","metadata":${nested('{"a":', '}', 2_500, '1')}}}`;
    case 6:
      return `{"t":"${random.pick(frameTypes)}","id":1,"d":${nested('[', ']', random.below(7_000))}}`;
    case 7:
      return `{"t":"message.send","id":1,"__proto__":{"admin":true},"d":{"__proto__":{"cid":"${ids.cid}"}}}`;
    case 8:
      return JSON.stringify({ t: randomValue(random), id: randomValue(random), d: randomValue(random) });
    default:
      return nearly(random, ids);
  }
}

/** Bytes that are no WebSocket frames: wrong opcodes, no mask, reserved bits, lying lengths. */
export const brokenWire = (random: Random): Buffer =>
  random.pick([
    () => random.bytes(1 + random.below(100)),
    () => Buffer.from([0x81, 0x02, 0x7b, 0x7d]),
    () => Buffer.concat([Buffer.from([0xf1, 0x80]), random.bytes(4)]),
    () => Buffer.concat([Buffer.from([0x83, 0x80]), random.bytes(4)]),
    () => Buffer.from([0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    () => Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4]),
    () => Buffer.concat([Buffer.from([0x89, 0xfe, 0, 200]), random.bytes(204)]),
    () => Buffer.concat([Buffer.from([0x80, 0x84]), random.bytes(8)]),
    () => Buffer.concat([Buffer.from([0x88, 0x81]), random.bytes(5)]),
    () => Buffer.concat([Buffer.from([0x81, 0xfe, 0x10, 0x00]), random.bytes(50)]),
  ])();
