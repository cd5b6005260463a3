import { luaScript, runScript } from '../redis.ts';
import type { RedisConnection, Script } from '../redis.ts';
import { memoryRateLimiter } from './memory.ts';
import { isBucket } from './port.ts';
import type { Limit, LimitKey, RateLimiter } from './port.ts';
import { bucketVerdict, windowOf, windowVerdict } from './rules.ts';
import type { WindowState } from './rules.ts';

/**
 * Decides and counts like rules.ts, which makes the verdicts from the states that this script returns. Numbers are
 * written with all digits, so that both come to the same decision.
 *
 * The clock of Redis may be set back. A bucket is therefore stored with the time of its last change, and is never
 * further from being full than it was then.
 *
 * ARGV: the time or '', then for each key: burst, rate and 0 for a bucket, or 0, the count and the length for a
 * window. Keys are kept a minute longer than needed.
 */
const now = `
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + t[2] / 1000
end
`;
const fullAt = `${now}
local function fullAt(key, now)
  local full, at = string.match(redis.call('GET', key) or '', '(%S+) (%S+)')
  full, at = tonumber(full) or 0, tonumber(at) or now
  return math.max(now, full - math.max(0, at - now))
end
`;

const takeScript = luaScript(`${fullAt}
local before, after, unchanged, ttl, allowed = {}, {}, {}, {}, true
for i, key in ipairs(KEYS) do
  local burst, rate, ms = tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  if burst > 0 then
    local step = 1000 / rate
    local full = fullAt(key, now)
    local next = full + step
    if next - now > burst * step + 1e-6 then allowed = false end
    before[i] = string.format('%.17g', full)
    after[i] = string.format('%.17g %.17g', next, now)
    unchanged[i] = string.format('%.17g %.17g', full, now)
    ttl[i] = math.ceil(next - now) + 60000
  else
    before[i] = redis.call('GET', key) or ''
    local index = math.floor(now / ms)
    local w, c, b = string.match(before[i], '(%d+) (%d+) (%d+)')
    w, c, b = tonumber(w) or -2, tonumber(c) or 0, tonumber(b) or 0
    if w == index - 1 then b = c else if w ~= index then b = 0 end end
    if w ~= index then c = 0 end
    local used = c + b * (1 - (now - index * ms) / ms)
    if used + 1 > rate then allowed = false end
    after[i] = string.format('%.0f %.0f %.0f', index, c + 1, b)
    ttl[i] = 2 * ms + 60000
  end
end
for i, key in ipairs(KEYS) do
  -- A bucket that refuses is written too: its time goes on from a clock that was set back.
  local value = allowed and after[i] or unchanged[i]
  if value then redis.call('SET', key, value, 'PX', ttl[i]) end
end
return { string.format('%.17g', now), before }
`);

/** Like `givenBack` in rules.ts. ARGV: the time or '', and the length of the window. */
const giveBackScript = luaScript(`${now}
local w, c, b = string.match(redis.call('GET', KEYS[1]) or '', '(%d+) (%d+) (%d+)')
if tonumber(w) == math.floor(now / tonumber(ARGV[2])) and tonumber(c) > 0 then
  redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f', w, c - 1, b), 'KEEPTTL')
end
`);

/** Like `owed` in rules.ts. ARGV: the time or '', the rate and the cost. */
const oweScript = luaScript(`${fullAt}
local next = fullAt(KEYS[1], now) + tonumber(ARGV[3]) * 1000 / tonumber(ARGV[2])
redis.call('SET', KEYS[1], string.format('%.17g %.17g', next, now), 'PX', math.ceil(next - now) + 60000)
`);

const nameOf = ({ what, of }: LimitKey): string => `rl:{${of}}${what}`;

function argsOf(limit: Limit): [number, number, number] {
  if (isBucket(limit)) return [limit.burst, limit.perSecond, 0];
  const { max, ms } = windowOf(limit);
  return [0, max, ms];
}

/** Counts for all nodes together, by the clock of Redis; while Redis is unreachable, for this node alone by its own clock. */
export function redisRateLimiter(options: {
  connection: RedisConnection;
  clock: { now(): number };
  /** The clock that Redis counts by; its own, unless a test stops it. */
  time?: { now(): number };
}): RateLimiter {
  const { connection, clock, time } = options;
  const local = memoryRateLimiter(clock);
  const ask = (script: Script, keys: readonly LimitKey[], ...args: number[]): Promise<unknown> =>
    runScript(connection, script, keys.map(nameOf), [time?.now() ?? '', ...args]);
  return {
    async take(checks) {
      const keys = checks.map(({ key }) => key);
      const args = checks.flatMap(({ limit }) => argsOf(limit));
      const reply = await ask(takeScript, keys, ...args).catch(() => null);
      if (reply === null) return local.take(checks);
      const [at, before] = reply as [string, string[]];
      const now = Number(at);
      return checks.map(({ limit }, i) =>
        isBucket(limit)
          ? bucketVerdict(Number(before[i]), limit, now)
          : windowVerdict(windowState(before[i]!), limit, now),
      );
    },
    async giveBack(checks) {
      for (const { key, limit } of checks)
        await ask(giveBackScript, [key], windowOf(limit).ms).catch(() => local.giveBack([{ key, limit }]));
    },
    async owe(key, limit, cost) {
      await ask(oweScript, [key], limit.perSecond, cost).catch(() => local.owe(key, limit, cost));
    },
  };
}

function windowState(text: string): WindowState | undefined {
  if (text === '') return undefined;
  const [index, count, before] = text.split(' ').map(Number);
  return { index: index!, count: count!, before: before! };
}
