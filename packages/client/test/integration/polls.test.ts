import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../server/test/cluster/nodes.ts';
import { useService } from '../../../server/test/support/use.ts';
import { tokenFor } from '../chaos/actor.ts';
import { createClient } from '../../src/index.ts';
import type { Client, ConversationHandle } from '../../src/index.ts';
import { newClient, secretKey, whenReady } from './people.ts';

/** sdk#polls, with real clients of the real service. */

const { service, scene } = useService();

const opened = async (client: Client, cid: string): Promise<ConversationHandle> => {
  await client.connect();
  const handle = client.conversations.open(cid);
  await whenReady(handle);
  return handle;
};
const last = (handle: ConversationHandle) => handle.messages.get().items.at(-1);
const brief = (handle: ConversationHandle): string => {
  const { votes = [], ownVotes = [] } = last(handle)?.reactions ?? {};
  return `${votes.map((v) => `${v.option}:${v.count}`).join(' ')} | ${ownVotes.join(' ')}`;
};

for (const anonymous of [false, true])
  test(`sdk#polls: ${anonymous ? 'an anonymous' : 'a'} poll is asked, voted for on two devices, and closed`, async () => {
    const [anna, ben] = await Promise.all([scene.actor('anna'), scene.actor('ben')]);
    const { id: cid } = await scene.group(anna, [ben]);
    // The phone's votes wait until the test lets them go.
    let go = (): void => undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    const phone = createClient({
      url: service.url,
      token: () => tokenFor(secretKey, ben.id),
      fetch: async (input, init) => {
        if (String(input).endsWith('/votes')) await held;
        return fetch(input, init);
      },
    });
    const [laptop, author] = [newClient(service.url, ben.id), newClient(service.url, anna.id)];
    try {
      const [onPhone, onLaptop, asking] = (await Promise.all(
        [phone, laptop, author].map((c) => opened(c, cid)),
      )) as [ConversationHandle, ConversationHandle, ConversationHandle];
      const options = [{ text: 'Monday' }, { text: 'Tuesday' }];
      const poll = { question: 'When?', options, anonymous };
      const sent = asking.send({ poll });
      assert.deepEqual(sent.poll?.options[1], { id: 2, text: 'Tuesday' }, 'it shows before it is sent');
      await until(() => last(onPhone)?.poll !== undefined && last(onLaptop)?.poll !== undefined);
      const { id, text } = last(onPhone)!;
      assert.equal(text, 'When?', 'for those who do not know polls');
      await until(() => last(asking)?.id === id);

      const voting = onPhone.vote(id!, [2]);
      await until(() => brief(onPhone) === '2:1 | 2');
      assert.equal(brief(onLaptop), ' | ', 'the server does not know yet');
      go();
      assert.deepEqual((await voting).ownVotes, [2]);
      await until(() => brief(onLaptop) === '2:1 | 2');
      await until(() => brief(asking) === '2:1 | ');
      await onLaptop.vote(id!, [1]);
      await asking.vote(id!, [1]);
      for (const [handle, shown] of [[onPhone, '1:2 | 1'] as const, [onLaptop, '1:2 | 1'] as const])
        await until(() => brief(handle) === shown);

      await assert.rejects(onPhone.closePoll(id!), { code: 'forbidden' });
      const { closedAt } = await asking.closePoll(id!);
      for (const handle of [onPhone, onLaptop, asking])
        await until(() => last(handle)?.poll?.closedAt === closedAt);
      await assert.rejects(onPhone.vote(id!, [2]), { code: 'state_conflict' });
      await until(() => brief(onPhone) === '1:2 | 1');
      const names = last(onPhone)!.reactions!.votes![0]!.userIds;
      assert.equal(names.length, anonymous ? 0 : 2);
      // A device that has just been switched on shows the same.
      const fresh = newClient(service.url, ben.id);
      const there = last(await opened(fresh, cid))!;
      fresh.disconnect();
      await until(() => last(onPhone)!.reactions!.revision === there.reactions!.revision);
      assert.deepEqual(there.reactions, last(onPhone)!.reactions);
      assert.deepEqual(there.poll, last(onPhone)!.poll);
    } finally {
      for (const client of [phone, laptop, author]) client.disconnect();
    }
  });
