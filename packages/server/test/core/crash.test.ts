import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { Message } from '@parley/protocol';
import { clientApi } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { allMessages, assertContiguous, createGroup, times } from './tools.ts';
import { useService } from '../support/use.ts';

/** kill -9 of the whole process group while senders send and retry; acknowledged means committed. */

const crashes = 5;
const senders = 8;
const acksPerRound = 40;

const { service, server, restart } = useService({ own: true });

test(
  'nothing acknowledged is lost, doubled or moved by kill -9 under load',
  { timeout: 600_000 },
  async () => {
    const conversations = await Promise.all(
      times(3, () =>
        createGroup(
          server,
          times(senders, (i) => `sender-${i}`),
        ),
      ),
    );
    /** What was acknowledged, by clientMsgId. */
    const acknowledged = new Map<string, { id: string; seq: number; conversation: string }>();
    let doubted = 0;

    for (let crash = 0; crash < crashes; crash++) {
      let running = true;
      let goal = acknowledged.size + acksPerRound;
      let enough!: () => void;
      const loaded = new Promise<void>((resolve) => (enough = resolve));
      /** What was sent when the process died: sent again after the restart, as an outbox does. */
      const open: (() => Promise<void>)[] = [];

      const attempt = async (api: Api, sender: number, clientMsgId: string, conversation: string) => {
        const answer = await api('POST', `/v1/conversations/${conversation}/messages`, {
          clientMsgId,
          text: clientMsgId,
          senderId: `sender-${sender}`,
        });
        assert.equal(answer.status, 201, JSON.stringify(answer.body));
        const { id, seq, text } = answer.body as Message;
        assert.equal(text, clientMsgId);
        acknowledged.set(clientMsgId, { id, seq, conversation });
        if (acknowledged.size >= goal) enough();
      };
      const sender = async (n: number): Promise<void> => {
        while (running) {
          const clientMsgId = randomUUID();
          const conversation = conversations[acknowledged.size % conversations.length]!;
          try {
            await attempt(server, n, clientMsgId, conversation);
          } catch (error) {
            if (error instanceof assert.AssertionError) throw error;
            open.push(() => attempt(server, n, clientMsgId, conversation));
            return;
          }
        }
      };
      const working = times(senders, sender);
      await loaded;
      await service.kill();
      running = false;
      await Promise.all(working);
      doubted += open.length;

      await restart();
      goal = Infinity;
      await Promise.all(open.map((again) => again()));
      // An acknowledged one that is sent again is the same message at the same place.
      for (const [clientMsgId, { id, seq, conversation }] of [...acknowledged].slice(-5)) {
        const [message] = (await allMessages(server, conversation)).filter((m) => m.text === clientMsgId);
        const { body } = await server('POST', `/v1/conversations/${conversation}/messages`, {
          clientMsgId,
          text: 'other words',
          senderId: message!.senderId,
        });
        assert.deepEqual([(body as Message).id, (body as Message).seq], [id, seq]);
      }
      for (const conversation of conversations) {
        const kept = await allMessages(server, conversation);
        assertContiguous(
          kept.map((m) => m.seq),
          2,
        );
        const expected = [...acknowledged].filter(([, m]) => m.conversation === conversation);
        assert.deepEqual(
          kept.map((m) => [m.text, m.id, m.seq]),
          expected.map(([key, m]) => [key, m.id, m.seq]).sort((a, b) => Number(a[2]) - Number(b[2])),
          `after crash ${crash + 1}`,
        );
        const reader = await clientApi(service.url, 'sender-0');
        const { body } = await reader('GET', '/v1/conversations');
        const item = (body as { data: { id: string; lastSeq: number; unreadCount: number }[] }).data.find(
          (c) => c.id === conversation,
        )!;
        assert.equal(item.lastSeq, kept.length + 1);
        assert.equal(item.unreadCount, kept.filter((m) => m.senderId !== 'sender-0').length);
      }
    }
    assert.ok(acknowledged.size >= crashes * acksPerRound);
    assert.ok(doubted > 0, 'some sends were under way when the process died');
  },
);
