import { HistoryError } from './port.ts';
import type { History, HistoryRecord, MessageRecord } from './port.ts';
import { bounds, byKind, extrasColumn, pageOf, shapes } from './shared.ts';
import type { HistoryDeps } from './shared.ts';

/** What a relational database of a customer does with its tables. */

/** A statement has `?` for each of its values. */
export type Statement = [sql: string, values: unknown[]];

/** In what PostgreSQL and MySQL differ. */
export interface Dialect<Row> {
  /** Of a message, but `extras`, as `record` reads them. */
  columns: string;
  record(row: Row): MessageRecord;
  /** The table in the schema of the URL. */
  at(table: string): string;
  now: string;
  /** Lets no older record replace a newer one. */
  upsert(
    kind: HistoryRecord['kind'],
    fields: readonly string[],
    rows: readonly HistoryRecord[],
    rewrite: boolean,
  ): Statement;
  /** Begins a statement that deletes rows `m` of a table for which there is a row `o` of the same table. */
  deletePairs(table: string): string;
  run(...statement: Statement): Promise<Row[]>;
  transaction(statements: readonly Statement[]): Promise<void>;
}

export function relational<Row>(
  deps: HistoryDeps,
  { columns, record, at, now, upsert, deletePairs, run, transaction }: Dialect<Row>,
): Pick<History, 'write' | 'read' | 'get' | 'erase'> {
  const { env } = deps;
  const [messages, members] = [at(shapes.message.table), at(shapes.member.table)];
  const withExtras = extrasColumn(deps.seconds);
  const select = (where: string, values: unknown[]): Promise<Row[]> =>
    withExtras([], (fieldsOf) => {
      const extras = fieldsOf('message').includes('extras') ? 'extras' : 'NULL AS extras';
      return run(
        `SELECT ${columns}, ${extras} FROM ${messages} WHERE env = ? AND hard = false AND ${where}`,
        [env, ...values],
      );
    });
  return {
    write: (records, { rewrite = false } = {}) =>
      withExtras(records, (fieldsOf) =>
        transaction(byKind(records).map(([kind, rows]) => upsert(kind, fieldsOf(kind), rows, rewrite))),
      ),
    async read(range) {
      const { before, after, up, limit } = bounds(range);
      const rows = await select(
        `conversation_id = ? AND seq < ? AND seq > ? ORDER BY seq ${up ? '' : 'DESC'} LIMIT ?`,
        [range.conversationId, before, after, limit + 1],
      );
      return pageOf(range, rows, record);
    },
    async get(id) {
      const [row] = await select('id = ?', [id]);
      return row ? record(row) : null;
    },
    async erase({ userId, replacement, messages: mode }) {
      const values = [replacement, env, userId];
      await withExtras([], (fieldsOf) => {
        const [gone, removed] =
          mode === 'anonymize'
            ? ['', '']
            : [
                `, text = NULL, reply_to = NULL, attachments = NULL, metadata = NULL, hard = true, deleted_at = coalesce(deleted_at, ${now}),
                 revision = revision - revision % 4 + 2${fieldsOf('message').includes('extras') ? ', extras = NULL' : ''}`,
                ', removed = true',
              ];
        const statements: Statement[] = [
          [`UPDATE ${messages} SET sender_id = ?${gone} WHERE env = ? AND sender_id = ?`, values],
          [`UPDATE ${members} SET user_id = ?${removed} WHERE env = ? AND user_id = ?`, values],
        ];
        // A change since may have written the member under the new name already.
        const doubled = `${deletePairs(members)}
          WHERE o.env = m.env AND o.conversation_id = m.conversation_id AND o.user_id = ? AND m.env = ? AND m.user_id = ?`;
        return transaction(statements).catch((error: unknown) => {
          if (!(error instanceof HistoryError) || error.errorClass !== 'refused') throw error;
          return transaction([[doubled, values], ...statements]);
        });
      });
    },
  };
}
