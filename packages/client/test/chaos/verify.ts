import assert from 'node:assert/strict';
import type { Actor } from './actor.ts';

/** What must hold at the end: nothing acknowledged lost, nothing doubled, order kept, all equal to the server. */

interface ServerMessage {
  id: string;
  seq: number;
  senderId: string | null;
  text: string | null;
  version?: number;
  deletedAt: string | null;
}

/** Of the SDK: what a conversation's window holds, and what one page adds to it. */
const windowItems = 1_000;
const pageItems = 50;

export interface Verified {
  /** What the store has. */
  messages: number;
  /** Whose unread counts were recounted: one a member of a conversation. */
  unreadCounts: number;
}

export async function verify(
  actors: Actor[],
  groups: { id: string; members: string[] }[],
  url: string,
  secretKey: string,
): Promise<Verified> {
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${secretKey}` } });
    assert.equal(response.status, 200, path);
    return (await response.json()) as T;
  };
  const failed = actors.flatMap((a) => a.failed);
  assert.deepEqual(failed, [], 'no send failed for good');

  const historyOf = async (id: string): Promise<ServerMessage[]> => {
    const history: ServerMessage[] = [];
    for (let before: number | null = Number.MAX_SAFE_INTEGER; before !== null;) {
      const page: { data: ServerMessage[]; hasMore: boolean } = await get(
        `/v1/conversations/${id}/messages?limit=200&before=${before}`,
      );
      history.push(...page.data);
      before = page.hasMore ? page.data.at(-1)!.seq : null;
    }
    return history.reverse();
  };

  let total = 0;
  let unreadCounts = 0;
  const histories = new Map<string, ServerMessage[]>();
  for (const { id, members } of groups) {
    const talkers = actors.filter((a) => members.includes(a.userId));
    const history = await historyOf(id);
    histories.set(id, history);
    total += history.length;
    // The echo of a message may come before its acknowledgement.
    await eventually(() =>
      talkers.every(
        (a) =>
          history.filter((m) => m.senderId === a.userId).length === (a.acknowledged.get(id)?.length ?? 0),
      ),
    );
    checkHistory(id, history, talkers);
  }

  for (const actor of actors) {
    for (const conversation of actor.conversations) {
      let history = histories.get(conversation.id)!;
      /** A client shows a part of the history, to its end where it knows of no more. */
      const difference = (): string[] => {
        const { items, hasOlder, hasNewer } = conversation.messages.get();
        const [first, last] = [items[0]?.seq ?? 0, items.at(-1)?.seq ?? 0];
        const kept = history
          .filter((m) => (!hasOlder || m.seq >= first) && (!hasNewer || m.seq <= last))
          .map((m) => [m.id, m.seq, m.text, m.version ?? 0, m.deletedAt !== null].join(' '));
        const shown = items.map((i) => [i.id, i.seq, i.text, i.version, i.deletedAt !== null].join(' '));
        return [
          ...without(kept, shown).map((line) => `not shown: ${line}`),
          ...without(shown, kept).map((line) => `not kept: ${line}`),
          ...(shown.length === kept.length && shown.join() !== kept.join() ? ['another order'] : []),
        ];
      };
      for (;;) {
        await eventually(() => difference().length === 0);
        if (difference().length > 0) {
          // A change whose answer was lost may have been carried out since the history was read.
          history = await historyOf(conversation.id);
          histories.set(conversation.id, history);
        }
        assert.deepEqual(difference(), [], `${actor.userId} sees what the server has in ${conversation.id}`);
        const { items, hasOlder } = conversation.messages.get();
        // A page more would push the newest out of the window, and with them what is checked here: that nothing is missing at the end.
        if (!hasOlder || items.length + pageItems > windowItems) break;
        await conversation.loadOlder();
      }
    }
    unreadCounts += await checkUnread(actor, histories, get);
  }
  return { messages: total, unreadCounts };
}

/** What was under way when everybody fell silent still arrives. A dead connection is noticed after 60 s of silence (sdk#heartbeat). */
async function eventually(isSo: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 75_000; !isSo() && Date.now() < deadline;)
    await new Promise((resolve) => setTimeout(resolve, 50));
}

function checkHistory(id: string, history: ServerMessage[], actors: Actor[]): void {
  const said = history.filter((m) => !m.deletedAt).map((m) => m.text!);
  assert.equal(new Set(said).size, said.length, `nothing doubled in ${id}`);
  assert.equal(new Set(history.map((m) => m.seq)).size, history.length, `one message a seq in ${id}`);
  const senders = new Set(actors.map((a) => a.userId));
  assert.ok(
    history.every((m) => senders.has(m.senderId!)),
    `nobody else has sent to ${id}`,
  );
  for (const actor of actors) {
    const own = history.filter((m) => m.senderId === actor.userId);
    const acknowledged = actor.acknowledged.get(id) ?? [];
    assert.equal(
      own.length,
      acknowledged.length,
      `${actor.userId}: as many messages as acknowledgements in ${id}`,
    );
    const texts = new Set(own.map((m) => m.text));
    const gone = own.filter((m) => m.deletedAt).length;
    const missing = acknowledged.filter((text) => !texts.has(text));
    assert.equal(missing.length, gone, `${actor.userId}: nothing acknowledged is lost in ${id}`);
    const numbers = own.filter((m) => m.text !== null).map((m) => Number(m.text!.split(' ')[1]));
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
      `${actor.userId}: order kept in ${id}`,
    );
  }
}

interface Listed {
  id: string;
  unreadCount: number;
  lastReadSeq: number;
}

/** The server's unread equals a recount over the history; the client's equals the server's. */
async function checkUnread(
  actor: Actor,
  histories: Map<string, ServerMessage[]>,
  get: <T>(path: string) => Promise<T>,
): Promise<number> {
  const { data } = await get<{ data: Listed[] }>(`/v1/conversations?userId=${actor.userId}&limit=200`);
  const shown = () => new Map(actor.client.conversations.get().items.map((i) => [i.id, i.unreadCount]));
  for (const { id, unreadCount, lastReadSeq } of data) {
    const recount = histories
      .get(id)!
      .filter((m) => m.seq > lastReadSeq && m.senderId !== actor.userId && !m.deletedAt).length;
    assert.equal(unreadCount, recount, `${actor.userId}: unread of ${id} is exact`);
    await eventually(() => shown().get(id) === unreadCount);
    assert.equal(shown().get(id), unreadCount, `${actor.userId}: the client shows the same for ${id}`);
  }
  return data.length;
}

function without(lines: string[], others: string[]): string[] {
  const known = new Set(others);
  return lines.filter((line) => !known.has(line));
}
