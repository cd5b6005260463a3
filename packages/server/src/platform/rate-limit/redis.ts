import type { Clock } from '../clock.ts';
import { luaScript, runScript } from '../redis.ts';
import type { RedisConnection } from '../redis.ts';
import { memoryRateLimiter } from './memory.ts';
import { isBucket } from './port.ts';
import type { Limit, RateLimiter } from './port.ts';
import { bucketVerdict, windowVerdict } from './rules.ts';
import type { WindowState } from './rules.ts';

/**
 * rules.ts, as far as it decides and counts; the verdicts are made of the states that it returns, by rules.ts itself. Numbers
 * are written with all their digits, so that both come to the same decision.
 *
 * ARGV: the time or '', then for each key burst and rate of a bucket, or 0 and the count of a window. Keys outlive their
 * meaning by a minute.
 */
const takeScript = luaScript(`
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + t[2] / 1000
end
local before, after, ttl, allowed = {}, {}, {}, true
for i, key in ipairs(KEYS) do
  local burst, rate = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  before[i] = redis.call('GET', key) or ''
  if burst > 0 then
    local step = 1000 / rate
    local next = math.max(tonumber(before[i]) or 0, now) + step
    if next - now > burst * step + 1e-6 then allowed = false end
    after[i] = string.format('%.17g', next)
    ttl[i] = math.ceil(next - now) + 60000
  else
    local minute = math.floor(now / 60000)
    local m, c, b = string.match(before[i], '(%d+) (%d+) (%d+)')
    m, c, b = tonumber(m) or -2, tonumber(c) or 0, tonumber(b) or 0
    if m == minute - 1 then b = c else if m ~= minute then b = 0 end end
    if m ~= minute then c = 0 end
    local used = c + b * (1 - (now - minute * 60000) / 60000)
    if used + 1 > rate then allowed = false end
    after[i] = string.format('%.0f %.0f %.0f', minute, c + 1, b)
    ttl[i] = 180000
  end
end
if allowed then
  for i, key in ipairs(KEYS) do redis.call('SET', key, after[i], 'PX', ttl[i]) end
end
return { string.format('%.17g', now), before }
`);

/** The first letter says what is counted, the rest about whom: that is the hash tag, and the same for all keys of a call. */
const nameOf = (key: string): string => `rl:{${key.slice(1)}}${key.slice(0, 1)}`;

const argsOf = (limit: Limit): [number, number] =>
  isBucket(limit) ? [limit.burst, limit.perSecond] : [0, limit.perMinute];

/** Counts for all nodes together, by Redis's clock; while Redis is gone, for this node by its own. */
export function redisRateLimiter(options: {
  connection: RedisConnection;
  clock: Clock;
  /** Which clock Redis counts by; its own unless a test holds it still. */
  time?: Clock;
}): RateLimiter {
  const { connection, clock, time } = options;
  const local = memoryRateLimiter(clock);
  return {
    async take(checks) {
      if (connection.client.status !== 'ready') return local.take(checks);
      let reply: [string, string[]];
      try {
        reply = (await runScript(
          connection.client,
          takeScript,
          checks.map(({ key }) => nameOf(key)),
          [time?.now() ?? '', ...checks.flatMap(({ limit }) => argsOf(limit))],
        )) as [string, string[]];
      } catch {
        return local.take(checks);
      }
      const now = Number(reply[0]);
      return checks.map(({ limit }, i) =>
        isBucket(limit)
          ? bucketVerdict(Number(reply[1][i]), limit, now)
          : windowVerdict(windowState(reply[1][i]!), limit, now),
      );
    },
  };
}

function windowState(text: string): WindowState | undefined {
  if (text === '') return undefined;
  const [minute, count, before] = text.split(' ').map(Number);
  return { minute: minute!, count: count!, before: before! };
}
