import type { Attachment, Mention, ReportSnapshot } from '@parley/protocol';
import type { Queryable } from '../../platform/postgres/db.ts';
import type { Vault } from '../../platform/secrets.ts';
import { parseExtras } from '../extras.ts';
import type { Extras } from '../extras.ts';
import type { MessageRow } from '../sql/message-reader.ts';
import { shownMentions } from './sql.ts';
import type { SnapshotRow } from './sql.ts';

/** What of a message a report keeps. */
export type Said = Pick<MessageRow, 'version' | 'text' | 'extras' | 'attachments'>;

/** As it is stored: users in mentions are numbers, so that an erasure, which renames one row, renames them here too. */
interface Stored extends Pick<Extras, 'mentions'> {
  text: string | null;
  files: string[];
  poll?: ReportSnapshot['poll'];
}

const contextOf = (env: number, id: string): string => `report ${env} ${id}`;

export function sealSnapshot(vault: Vault, env: number, id: string, said: Said): Buffer {
  const { mentions, poll } = parseExtras(said.extras);
  const files = said.attachments === null ? [] : (JSON.parse(said.attachments) as Attachment[]);
  const stored: Stored = {
    text: said.text,
    files: files.map((file) => file.name),
    ...(mentions ? { mentions } : {}),
    ...(poll ? { poll: { question: poll.question, options: poll.options.map(({ text }) => text) } } : {}),
  };
  return vault.seal(JSON.stringify(stored), contextOf(env, id));
}

/** The snapshots of each head, oldest version first. */
export async function openSnapshots(
  db: Queryable,
  vault: Vault,
  env: number,
  rows: readonly SnapshotRow[],
): Promise<Map<string, ReportSnapshot[]>> {
  const opened = rows.map(
    ({ id, snapshot }) => JSON.parse(vault.open(snapshot, contextOf(env, id)).toString()) as Stored,
  );
  const named = opened.flatMap(({ mentions }) => (mentions ? [JSON.stringify({ mentions })] : []));
  const shown = (await shownMentions(db, env, named)) as Mention[][];
  const all = new Map<string, ReportSnapshot[]>();
  for (const [i, { head, version }] of rows.entries()) {
    const { mentions, ...rest } = opened[i]!;
    const view = { ...rest, version, mentions: mentions ? shown.shift()! : [] };
    all.set(head, [...(all.get(head) ?? []), view]);
  }
  return all;
}
