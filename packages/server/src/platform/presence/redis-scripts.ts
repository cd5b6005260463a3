import { luaScript } from '../redis.ts';
import type { UserRef } from './port.ts';

/**
 * Each script works on keys of one hash tag. Scripts use the clock of Redis, so that the nodes' clocks need not
 * agree.
 *
 * Keys of a user: `ps` holds its sockets as `<session>|<lease>`, by the time of their opening (microseconds); `pg`
 * exists during the grace period and holds the lease that began it; `pm` exists until the user was settled.
 */
export const userKeys = (user: string): string[] => [`ps:{${user}}`, `pg:{${user}}`, `pm:{${user}}`];

/** How a user is called in keys and lists. */
export const keyOf = ({ env, user }: UserRef): string => `${env}:${user}`;
export const refOfKey = (key: string): UserRef => {
  const [env, user] = key.split(':').map(Number);
  return { env: env!, user: user! };
};

/** The users registered under a lease. */
export const listKey = (lease: string): string => `pn:{${lease}}`;

/** The sockets of an environment, each as `<session>|<lease>`; adding or removing one twice changes nothing. */
export const openKey = (env: number): string => `pe:{${env}}`;

/**
 * Adds the socket to its environment if there is room.
 * ARGV: member, ceiling or '', then members to remove first. Returns 1 or 0, and how many there are.
 */
export const openScript = luaScript(`
for i = 3, #ARGV do redis.call('SREM', KEYS[1], ARGV[i]) end
local count = redis.call('SCARD', KEYS[1])
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return { 1, count } end
if ARGV[2] ~= '' and count >= tonumber(ARGV[2]) then return { 0, count } end
redis.call('SADD', KEYS[1], ARGV[1])
return { 1, count + 1 }
`);

/** Milliseconds for which an unsettled user is remembered after its sockets are gone. */
const unsettledMs = 3_600_000;

/**
 * Registers a socket.
 * ARGV: member, opened at or '', maximum, member it replaces or ''. Returns whether the user came online, opened at,
 * evicted members.
 */
export const addScript = luaScript(`
local was = redis.call('EXISTS', KEYS[1], KEYS[2])
local at = ARGV[2]
if at == '' then
  local t = redis.call('TIME')
  -- After those that are there, whatever Redis's clock did since: the oldest makes room, not the newest.
  local last = tonumber(redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]) or 0
  at = string.format('%.0f', math.max(t[1] * 1000000 + t[2], last + 1))
end
if ARGV[4] ~= '' then redis.call('ZREM', KEYS[1], ARGV[4]) end
redis.call('ZADD', KEYS[1], at, ARGV[1])
redis.call('SET', KEYS[3], '1')
redis.call('DEL', KEYS[2])
local evicted = {}
local over = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[3])
if over > 0 then
  evicted = redis.call('ZRANGE', KEYS[1], 0, over - 1)
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, over - 1)
end
return { was == 0 and 1 or 0, at, evicted }
`);

/**
 * Removes a socket.
 * ARGV: member, lease, grace period in milliseconds. Returns 1 if it was the user's last.
 */
export const removeScript = luaScript(`
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 or redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) end
redis.call('PEXPIRE', KEYS[3], ARGV[3] + ${unsettledMs})
return 1
`);

/**
 * Settles a user.
 * ARGV: milliseconds by which the grace period may have begun late in Redis, and the lease of the asking node: a
 * grace period that the node itself began is over by its own clock; '1' if the node could not record it, because Redis
 * was away, and perhaps forgot the user. Returns 1 if the user is offline and was not settled yet.
 */
export const endGraceScript = luaScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if redis.call('GET', KEYS[2]) ~= ARGV[2] and redis.call('PTTL', KEYS[2]) > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[2])
local unsettled = redis.call('DEL', KEYS[3])
return ARGV[3] == '1' and 1 or unsettled
`);

/**
 * Removes the sockets and grace periods of a lease that ended.
 * ARGV: the lease. Returns 1 if the user is to be settled, then the removed sessions.
 */
export const reapScript = luaScript(`
local suffix = '|' .. ARGV[1]
local result = { 0 }
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if string.sub(member, -#suffix) == suffix then
    redis.call('ZREM', KEYS[1], member)
    result[#result + 1] = string.sub(member, 1, -#suffix - 1)
  end
end
if redis.call('EXISTS', KEYS[1]) == 1 then return result end
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
if redis.call('EXISTS', KEYS[2]) == 1 then return result end
result[1] = redis.call('PEXPIRE', KEYS[3], ${unsettledMs})
return result
`);

/** Running leases, ended leases that are being cleared (both by their end in milliseconds), and the clock of leases. */
export const leaseKeys = ['pl:{leases}', 'pd:{leases}', 'pt:{leases}'] as const;

/**
 * The clock of leases, in milliseconds, stored in KEYS[3]. It follows the clock of Redis, but never goes back, and
 * between two looks it advances by at most half a lease. So setting the clock ahead ends no lease of a live node.
 */
const leaseNow = (leaseMs: string): string => `
local t = redis.call('TIME')
local real = t[1] * 1000 + math.floor(t[2] / 1000)
local seen = redis.call('HMGET', KEYS[3], 'real', 'now')
local gone = math.max(0, math.min(real - (tonumber(seen[1]) or real), ${leaseMs} / 2))
local now = (tonumber(seen[2]) or real) + gone
redis.call('HSET', KEYS[3], 'real', string.format('%.0f', real), 'now', string.format('%.0f', now))
`;

/**
 * Renews the lease, and takes over one that has ended, or one whose clearing another node did not finish.
 * ARGV: lease, its length, '1' to begin it. Returns whether the lease still ran, and the lease taken over or ''.
 */
export const beatScript = luaScript(`
${leaseNow('ARGV[2]')}
local till = now + ARGV[2]
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
local runs = 0
if ARGV[3] == '1' or (ends and tonumber(ends) > now) then
  redis.call('ZADD', KEYS[1], till, ARGV[1])
  runs = 1
end
local ended = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1)[1]
if ended then
  redis.call('ZREM', KEYS[1], ended)
else
  ended = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1)[1]
end
if ended then redis.call('ZADD', KEYS[2], till, ended) end
return { runs, ended or '' }
`);

/**
 * Ends a lease.
 * ARGV: lease, milliseconds it still runs, and the length of a lease.
 */
export const endScript = luaScript(`
${leaseNow('ARGV[3]')}
return redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
`);
