import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useService } from '../support/use.ts';
import { signedInOwner } from './dashboard.ts';

describe('dashboard#explorer', () => {
  // Its own environments: all conversations of one are listed.
  const { service, server } = useService();

  it('lists all conversations by their people, newest activity first, in pages; finds them by name, member and id', async () => {
    const dashboard = (await signedInOwner(service.url)).in('env_dev');
    const ok = async (...call: Parameters<typeof server>) => {
      const { status, body } = await server(...call);
      assert.ok(status < 300, JSON.stringify(body));
      return body;
    };
    const list = async (query: string) => {
      const { status, body } = await dashboard('GET', `/v1/explorer/conversations?${query}`);
      assert.equal(status, 200, JSON.stringify(body));
      return body as { data: { id: string; people: { name: string }[] }[]; nextCursor: string | null };
    };
    const ids = async (query: string) => (await list(query)).data.map(({ id }) => id);

    await ok('PUT', '/v1/users/ada', { name: 'Ada Lovelace' });
    const made: string[] = [];
    for (const fields of [
      { type: 'direct', members: ['ada', 'ben'] },
      { type: 'group', name: '100%_Parcels', members: ['ben', 'cleo'] },
      { type: 'group', name: 'Returns', members: ['ada', 'cleo'] },
    ])
      made.push((await ok('POST', '/v1/conversations', fields)).id as string);
    const [direct, parcels, returns] = made as [string, string, string];

    const all = await list('limit=200');
    assert.deepEqual(new Set(all.data.map(({ id }) => id)), new Set(made));
    assert.deepEqual(
      all.data.find(({ id }) => id === direct)!.people.map(({ name }) => name),
      ['Ada Lovelace', null],
    );
    const pages: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page = await list(`limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`);
      pages.push(...page.data.map(({ id }) => id));
      cursor = page.nextCursor;
    }
    assert.deepEqual(new Set(pages), new Set(made));
    assert.equal(pages.length, made.length);

    assert.deepEqual(await ids('query=returns'), [returns]);
    // What is a pattern to the database is a letter to people.
    assert.deepEqual(await ids(`query=${encodeURIComponent('100%_p')}`), [parcels]);
    assert.deepEqual(await ids(`query=${encodeURIComponent('_')}`), []);
    assert.deepEqual(new Set(await ids('query=Ada')), new Set([direct, returns]));
    assert.deepEqual(new Set(await ids('query=cleo')), new Set([parcels, returns]));
    assert.deepEqual(await ids(`query=${direct}`), [direct]);
    assert.deepEqual(await ids('userId=ada&type=direct'), [direct]);

    await ok('DELETE', `/v1/conversations/${returns}`);
    assert.deepEqual(await ids('query=returns'), []);
    assert.deepEqual(new Set(await ids('limit=200')), new Set([direct, parcels]));
  });

  it('dashboard#audit: a message sent from the dashboard is in the audit, a refused one is not', async () => {
    const dashboard = (await signedInOwner(service.url)).in('env_dev');
    const { body } = await server('POST', '/v1/conversations', {
      type: 'direct',
      members: ['audited-ada', 'audited-ben'],
    });
    await server('PUT', '/v1/users/audited-stranger', {});
    const send = (senderId: string) =>
      dashboard('POST', `/v1/conversations/${body.id}/messages`, { text: 'hello', senderId });
    const entries = async () =>
      (await dashboard('GET', '/v1/audit?action=messages.send&limit=200')).body.data.filter(
        ({ changes }: { changes: { after: { conversationId: string } } }) =>
          changes.after.conversationId === body.id,
      ) as { target: string }[];
    const refused = await send('audited-stranger');
    assert.equal(refused.body.error?.code, 'not_member');
    assert.deepEqual(await entries(), []);
    assert.equal((await send('audited-ada')).status, 201);
    assert.deepEqual(
      (await entries()).map(({ target }) => target),
      ['audited-ada'],
    );
  });
});
