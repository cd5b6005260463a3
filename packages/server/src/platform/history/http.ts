import { createHmac, createSecretKey } from 'node:crypto';
import { commonError, HistoryError, historySchemaVersion } from './port.ts';
import type { History, HistoryErrorClass, HistoryPage, HistoryRecord, MessageRecord } from './port.ts';
import { bytesOf, examine, hasExtras, hex, isoOf, noExtras, sentences, timesOf, tooMuch } from './shared.ts';
import type { HistoryDeps } from './shared.ts';
import type { HistoryTarget } from './target.ts';

/** storage#http: one URL, signed like webhooks. docs/storage.md describes the contract. */

const classOf = (status: number): HistoryErrorClass => {
  if (status === 401 || status === 403) return 'authentication';
  if (status === 400 || status === 413 || status === 422) return 'refused';
  if (status === 404) return 'schema';
  return status === 429 || status >= 500 ? 'overloaded' : 'failed';
};

/** JSON fields are sent as JSON, not as JSON in a string. */
const outgoing = ({ extras, ...record }: HistoryRecord): object => ({
  ...record,
  ...('metadata' in record ? { metadata: parsed(record.metadata, {}) } : {}),
  ...('attachments' in record ? { attachments: parsed(record.attachments, []) } : {}),
  ...(extras === null ? {} : { extras: parsed(extras, {}) }),
});
const parsed = (text: string | null, none: unknown): unknown => (text === null ? none : JSON.parse(text));
const texted = (value: unknown): string | null => {
  if (value === null || value === undefined) return null;
  const empty = Array.isArray(value) ? value.length === 0 : Object.keys(value as object).length === 0;
  return empty ? null : JSON.stringify(value);
};

/** In the form of a message; whether it is one is checked by who asked (messages.ts). */
function incoming(value: unknown): MessageRecord {
  const m = (value ?? {}) as Record<string, unknown>;
  const time = (field: string): unknown =>
    typeof m[field] === 'string' ? isoOf(new Date(m[field])) : (m[field] ?? null);
  return {
    senderId: null,
    text: null,
    replyTo: null,
    ...m,
    kind: 'message',
    attachments: texted(m['attachments']),
    metadata: texted(m['metadata']),
    extras: texted(m['extras']),
    createdAt: time('createdAt') ?? new Date(0).toISOString(),
    editedAt: time('editedAt'),
    deletedAt: time('deletedAt'),
    hard: m['hard'] === true,
    revision: Number.isSafeInteger(m['revision']) ? m['revision'] : (m['version'] as number) * 4,
  } as MessageRecord;
}

/** @param secrets whsec_…; more than one while an old one is still valid. */
export function openHttp(target: HistoryTarget, deps: HistoryDeps, secrets: readonly string[]): History {
  const keys = secrets.map((secret) => createSecretKey(secret.replace(/^whsec_/, ''), 'base64'));
  const { env } = deps;

  /** @param messages how many the answer may have. */
  async function call(op: string, fields: object, messages = 1): Promise<Record<string, unknown>> {
    const body = Buffer.from(JSON.stringify({ op, env, ...fields }));
    const id = `his_${hex(deps, 12)}`;
    const timestamp = String(deps.seconds());
    const signatures = keys.map(
      (key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`,
    );
    const answer = await deps.outbound
      .request({
        url: target.url,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          'webhook-signature': signatures.join(' '),
        },
        body,
        timeoutMs: timesOf(deps).statementMs,
        maxBytes: bytesOf(messages),
        tenant: deps.tenant,
      })
      .catch((error: unknown) => {
        throw commonError(error) ?? new HistoryError('unreachable', (error as { code?: string }).code);
      });
    if (answer.status < 200 || answer.status > 299)
      throw new HistoryError(classOf(answer.status), answer.status);
    if (answer.body.length === 0) return {};
    if (answer.truncated && op !== 'write' && op !== 'erase') throw tooMuch();
    try {
      return JSON.parse(answer.body.toString()) as Record<string, unknown>;
    } catch {
      if (op === 'write' || op === 'erase') return {};
      throw new HistoryError('failed', undefined, 'the answer is not JSON');
    }
  }

  /** Older endpoints may drop what they do not know; they say so by their version. */
  let keepsExtras = false;

  return {
    writesAtOnce: 2,
    test: () =>
      examine(
        target,
        (error) => error as HistoryError,
        async (report, first) => {
          const { ok, schemaVersion } = await first(() => call('ping', {}));
          report.schemaVersion = typeof schemaVersion === 'number' ? schemaVersion : 1;
          if (report.schemaVersion < historySchemaVersion) report.warnings.push(sentences.oldSchema);
          report.grants = ['write', 'read', 'get', 'erase'];
          if (ok !== true) report.errors.push('The endpoint did not answer { "ok": true } to a ping.');
        },
      ),
    async write(records, { rewrite = false } = {}) {
      if (!keepsExtras && hasExtras(records)) {
        keepsExtras = Number((await call('ping', {}))['schemaVersion']) >= historySchemaVersion;
        if (!keepsExtras) throw noExtras();
      }
      await call('write', {
        batch: hex(deps, 12),
        ...(rewrite ? { rewrite } : {}),
        records: records.map(outgoing),
      });
    },
    async read({ conversationId, before, after, limit }): Promise<HistoryPage> {
      const { data, hasMore } = await call('read', { conversationId, before, after, limit }, limit);
      if (!Array.isArray(data)) throw new HistoryError('failed', undefined, 'the answer has no data');
      const messages = data.map(incoming).filter((m) => !m.hard);
      const place = ({ seq }: MessageRecord) => (Number.isSafeInteger(seq) ? seq : -1);
      return { data: messages.sort((a, b) => place(b) - place(a)), hasMore: hasMore === true };
    },
    async get(messageId) {
      const { message } = await call('get', { messageId });
      if (message === null || message === undefined) return null;
      const found = incoming(message);
      return found.hard ? null : found;
    },
    async erase(erasure) {
      await call('erase', { ...erasure });
    },
    close: () => Promise.resolve(),
  };
}
