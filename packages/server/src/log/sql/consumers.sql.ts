import { consumers } from './consumers.ts';
import type { LogConsumer } from './consumers.ts';

/** The functions through which a commit tells the consumers of the log. */

const list: readonly LogConsumer[] = Object.values(consumers);

/** Each consumer's statement, for the environments that have its bit. */
const statements = (of: 'messages' | 'events' | 'reads', rows: (filter: string) => string): string =>
  list
    .flatMap(({ bit, when, outbox, [of]: write }) => {
      if (!write) return [];
      const condition = bit === undefined ? when : `listening & ${bit} <> 0`;
      const filter =
        bit === undefined
          ? ''
          : `AND EXISTS (SELECT 1 FROM environments e WHERE e.no = x.env AND e.listeners & ${bit} <> 0)`;
      const body = `${write(rows(filter), bit ?? 0)};${outbox && of === 'messages' ? ' noted := true;' : ''}`;
      return [condition === undefined ? body : `IF ${condition} THEN ${body} END IF;`];
    })
    .join('\n  ');

export const sql = `
-- Called by append_messages with its own arrays; a message with a verdict was not written. noted: the outbox has new rows.
CREATE OR REPLACE FUNCTION tell_of_messages(
  listening int, c_env int[], c_no bigint[], c_last bigint[], p_conv int[], p_rank int[], p_sender bigint[], p_id text[],
  p_text text[], p_reply text[], p_meta text[], p_files text[], p_extras text[], p_reported boolean[], attached text[], verdicts text[], p_at timestamptz, OUT noted boolean
) LANGUAGE plpgsql AS $$
BEGIN
  noted := false;
  ${statements(
    'messages',
    (filter) => `(SELECT x.* FROM (
        SELECT c_env[p_conv[i]] AS env, c_no[p_conv[i]] AS conv, c_last[p_conv[i]] + p_rank[i] AS seq, p_id[i] AS id, p_sender[i] AS sender
        FROM generate_series(1, cardinality(p_id)) i WHERE verdicts[i] IS NULL
      ) x WHERE true ${filter})`,
  )}
END $$;

-- Called by the statement that appends events to a conversation (log/record.ts).
CREATE OR REPLACE FUNCTION tell_of_events(p_env int, p_conv bigint, p_first bigint, p_at timestamptz, p_events json)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  listening int := (SELECT e.listeners FROM environments e WHERE e.no = p_env);
BEGIN
  ${statements(
    'events',
    () => `(SELECT p_first + x.ord - 1 AS seq, x.* FROM ROWS FROM (
        json_to_recordset(p_events) AS (type text, webhook text, message bigint, users bigint[], actor bigint, data text, payload text)
      ) WITH ORDINALITY AS x(type, webhook, message, users, actor, data, payload, ord))`,
  )}
END $$;

-- Called by mark_read.
CREATE OR REPLACE FUNCTION tell_of_reads(p_env int[], p_conv bigint[], p_usr bigint[], p_seq bigint[], p_moved boolean[], p_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  listening int := (SELECT bit_or(e.listeners) FROM environments e WHERE e.no = ANY (p_env));
BEGIN
  ${statements(
    'reads',
    (filter) =>
      `(SELECT x.* FROM unnest(p_env, p_conv, p_usr, p_seq, p_moved) AS x(env, conv, usr, seq, moved) WHERE true ${filter})`,
  )}
END $$;
`;
