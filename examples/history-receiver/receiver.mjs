// A history endpoint for Parley in about a hundred lines: the server that you need for the database type "http".
// It keeps everything in memory; put your own storage behind the five functions of `ops`. The contract: docs/storage.md.
//   SECRET=whsec_… PORT=3003 node receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const toleranceSeconds = 300;
const maxBytes = 16 * 1024 * 1024;

/** Standard Webhooks: HMAC-SHA256 over id.timestamp.body; one of the signatures must be ours, and the time must be now. */
function isSigned(headers, body, secret, now) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers;
  if (Math.abs(now - Number(timestamp)) > toleranceSeconds || Number.isNaN(Number(timestamp))) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const wanted = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  return signatures.split(' ').some((one) => {
    const given = Buffer.from(one.replace(/^v1,/, ''), 'base64');
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  });
}

/** What is kept, by environment: records of each kind by their key. */
export function createStore() {
  const environments = new Map();
  const of = (env) => {
    if (!environments.has(env))
      environments.set(env, { message: new Map(), conversation: new Map(), member: new Map() });
    return environments.get(env);
  };
  const keyOf = (r) => (r.kind === 'member' ? `${r.conversationId} ${r.userId}` : r.id);

  return {
    environments,
    ping: () => ({ ok: true, schemaVersion: 2 }),

    // May be repeated, and may come late: a record replaces the one that is there only when its revision is higher.
    write: ({ env, records, rewrite = false }) => {
      for (const record of records) {
        const known = of(env)[record.kind].get(keyOf(record));
        if (known && (rewrite ? known.revision > record.revision : known.revision >= record.revision))
          continue;
        of(env)[record.kind].set(keyOf(record), record);
      }
      return {};
    },

    // Below `before`, above `after`, newest first; with `after` alone the next above it. Never those with hard: true.
    read: ({ env, conversationId, before, after, limit }) => {
      const up = before === undefined && after !== undefined;
      const inside = (seq) => seq < (before ?? Infinity) && seq > (after ?? 0);
      const found = [...of(env).message.values()]
        .filter((m) => m.conversationId === conversationId && inside(m.seq) && !m.hard)
        .sort((a, b) => (up ? a.seq - b.seq : b.seq - a.seq));
      const data = found.slice(0, limit).sort((a, b) => b.seq - a.seq);
      return { data, hasMore: found.length > limit };
    },

    get: ({ env, messageId }) => {
      const message = of(env).message.get(messageId);
      return { message: message && !message.hard ? message : null };
    },

    // A user is erased: the id goes everywhere, and with messages: delete what the user wrote goes too.
    erase: ({ env, userId, replacement, messages }) => {
      for (const [id, m] of of(env).message) {
        if (m.senderId !== userId) continue;
        const gone = { text: null, replyTo: null, attachments: [], metadata: {}, extras: {}, hard: true };
        const deleted = {
          ...gone,
          deletedAt: m.deletedAt ?? new Date().toISOString(),
          revision: m.version * 4 + 2,
        };
        of(env).message.set(id, { ...m, senderId: replacement, ...(messages === 'delete' ? deleted : {}) });
      }
      for (const [key, m] of of(env).member) {
        if (m.userId !== userId) continue;
        of(env).member.delete(key);
        const renamed = { ...m, userId: replacement, removed: m.removed || messages === 'delete' };
        // A change since may have written the member under the new name already.
        if (!of(env).member.has(keyOf(renamed))) of(env).member.set(keyOf(renamed), renamed);
      }
      return {};
    },
  };
}

/** @param {string} secret whsec_… */
export function createReceiver(secret, store = createStore()) {
  return createServer(async (req, res) => {
    const answer = (status, body) =>
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    const chunks = [];
    let size = 0;
    for await (const chunk of req) {
      size += chunk.length;
      if (size > maxBytes) return answer(413, { error: 'too large' });
      chunks.push(chunk);
    }
    const body = Buffer.concat(chunks);
    if (!isSigned(req.headers, body, secret, Date.now() / 1000))
      return answer(401, { error: 'wrong signature' });
    const request = JSON.parse(body.toString());
    const run = ['ping', 'write', 'read', 'get', 'erase'].includes(request.op)
      ? store[request.op]
      : undefined;
    return run ? answer(200, run(request)) : answer(400, { error: 'unknown op' });
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const port = Number(process.env.PORT ?? 3003);
  createReceiver(process.env.SECRET ?? '').listen(port, () => console.log(`listening on ${port}`));
}
