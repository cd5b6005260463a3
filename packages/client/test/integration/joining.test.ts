import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../server/test/cluster/nodes.ts';
import { useService } from '../../../server/test/support/use.ts';
import { newClient, whenReady } from './people.ts';

/** sdk#joining and sdk#rules, with real clients of the real service. */

const { service, scene, server } = useService();

test('sdk#joining: groups are found, joined, and joined by links; rules and what they allow are stores', async () => {
  const [anna, ben, cleo] = await Promise.all(['anna', 'ben', 'cleo'].map((name) => scene.actor(name)));
  const people = [anna!, ben!, cleo!].map(({ id }) => newClient(service.url, id));
  const [a, b, c] = people as [(typeof people)[0], (typeof people)[0], (typeof people)[0]];
  try {
    await Promise.all(people.map((client) => client.connect()));
    const word = `w${anna!.id.replaceAll(/[^0-9a-f]/g, '')}`;
    const owned = await a.conversations.createGroup([], {
      name: `Birds ${word}`,
      rules: { joining: 'open', listed: true },
    });
    const { id } = owned;
    const { data } = await b.conversations.discover(`birds ${word}`);
    assert.deepEqual(
      data.map((found) => [found.id, found.memberCount]),
      [[id, 1]],
    );
    const joined = await b.conversations.join(id);
    await whenReady(joined);
    await until(() => b.conversations.get().items.some((item) => item.id === id && item.rules?.listed));
    assert.deepEqual([joined.rules.get(), joined.allowed.get()], [{}, []], 'whoever first looks loads them');
    await until(() => joined.allowed.get().length > 0);
    assert.deepEqual(joined.allowed.get(), ['send', 'react', 'pin']);
    assert.equal(joined.rules.get().posting, 'all');
    let heard = 0;
    joined.allowed.subscribe(() => heard++);

    // A failed send in announcement mode is no silence: when the rule goes, one may send again.
    const open = joined.sendableAt;
    assert.equal(open.get(), null);
    await owned.setRules({ posting: 'moderators', reacting: 'none', joining: 'link', listed: false });
    await until(() => joined.allowed.get().join() === 'pin');
    assert.ok(heard > 0);
    await until(() => open.get() === Infinity);
    const failed = new Promise<string>((resolve) => b.on('failed', ({ error }) => resolve(error!.code)));
    joined.send('too late');
    assert.equal(await failed, 'restricted');
    assert.equal(await joined.can('send'), false);
    assert.equal(await owned.can('send'), true);
    await assert.rejects(joined.setRules({ posting: 'all' }), { code: 'forbidden' });
    await assert.rejects(joined.createInvite(), { code: 'forbidden' });
    await assert.rejects(c.conversations.join(id), { code: 'not_found' });

    const link = await owned.createInvite({ maxUses: 1 });
    assert.equal((await c.previewInvite(link.token)).name, `Birds ${word}`);
    const invited = await c.acceptInvite(link.token);
    assert.equal(invited.id, id);
    await whenReady(invited);
    await assert.rejects(b.previewInvite(link.token), { code: 'not_found' });
    assert.deepEqual(await owned.invites(), []);
    const other = await owned.createInvite();
    assert.deepEqual(
      (await owned.invites()).map((one) => [one.id, one.maxUses]),
      [[other.id, null]],
    );
    await owned.revokeInvite(other.id);
    assert.deepEqual(await owned.invites(), []);

    await owned.setRules({ posting: 'all', defaultLevel: 'mentions' });
    await until(() => open.get() === null);
    await until(() => b.conversations.get().items.find((item) => item.id === id)?.level === 'mentions');
    await server('PATCH', `/v1/conversations/${id}/members/${ben!.id}`, { role: 'moderator' });
    await until(() => joined.allowed.get().includes('invite'));
  } finally {
    for (const client of people) client.disconnect();
  }
});
