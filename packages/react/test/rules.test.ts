import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConversationPreview, DiscoverPage } from '@parley/client';
import { act, connected, createElement, mount, provide, world } from './dom.ts';
import type { DiscoverView } from '../src/hooks/index.ts';

const hooks = await import('../src/hooks/index.ts');
const { useAnnouncement } = await import('../src/hooks/rules.ts');

async function page(role: 'moderator' | 'member') {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  server.conversations.get(cid)!.members.get('ann')!.role = role;
  const user = await connected(client('ann'), clock);
  const can: Record<string, boolean> = {};
  let posting: string | undefined;
  let closed = false;
  const Probe = () => {
    for (const action of ['send', 'pin', 'invite'] as const) can[action] = hooks.useCan(cid, action);
    posting = hooks.useRules(cid).posting;
    closed = useAnnouncement(cid);
    return null;
  };
  const settle = () => act(() => clock.advance(0));
  const { unmount } = await mount(provide({ client: user }, createElement(Probe)));
  /** Modules and members arrive. */
  const until = async (is: () => boolean) => {
    for (let i = 0; i < 500 && !is(); i++) await act(() => new Promise<void>((done) => setImmediate(done)));
    await settle();
    assert.ok(is());
  };
  return {
    server,
    cid,
    unmount,
    settle,
    until,
    can: () => can,
    posting: () => posting,
    closed: () => closed,
  };
}

const announce = (of: Awaited<ReturnType<typeof page>>) => {
  of.server.setRules(of.cid, { posting: 'moderators' });
  return of.settle();
};

test('useCan, useRules and the composer: where only moderators write, members are told so', async () => {
  const of = await page('member');
  await of.until(() => of.can()['send'] === true);
  assert.deepEqual(of.can(), { send: true, pin: true, invite: false });
  assert.equal(of.closed(), false);
  await announce(of);
  await of.until(() => of.posting() === 'moderators');
  assert.deepEqual(of.can(), { send: false, pin: true, invite: false });
  assert.equal(of.closed(), true);
  await of.unmount();
});

test('the composer: a moderator writes on', async () => {
  const of = await page('moderator');
  await of.until(() => of.can()['send'] === true);
  await announce(of);
  await of.until(() => of.posting() === 'moderators');
  assert.equal(of.can()['send'], true);
  assert.equal(of.closed(), false);
  await of.unmount();
});

test('useDiscover: pages, and an answer to an earlier question comes too late', async () => {
  const { clock, client } = world();
  const user = await connected(client('ann'), clock);
  const asked: { q?: string; cursor?: string; answer(page: DiscoverPage): void }[] = [];
  user.conversations.discover = (q, cursor) =>
    new Promise((answer) => asked.push({ ...(q ? { q } : {}), ...(cursor ? { cursor } : {}), answer }));
  let view: DiscoverView | undefined;
  const Probe = ({ q }: { q: string }) => {
    view = hooks.useDiscover(q);
    return null;
  };
  const node = (q: string) => provide({ client: user }, createElement(Probe, { q }));
  const { render, unmount } = await mount(node('bi'), false);
  await render(node('bird'));
  const found = (id: string): ConversationPreview => ({
    id,
    type: 'group',
    name: id,
    metadata: {},
    memberCount: 1,
    rules: {},
  });
  assert.deepEqual(
    asked.map(({ q }) => q),
    ['bi', 'bird'],
  );
  await act(async () => asked[1]!.answer({ data: [found('conv_1')], nextCursor: 'x' }));
  await act(async () => asked[0]!.answer({ data: [found('conv_9')], nextCursor: null }));
  assert.deepEqual([view!.items.map((i) => i.id), view!.hasMore, view!.status], [['conv_1'], true, 'ready']);
  let more: Promise<void> | undefined;
  await act(async () => void (more = view!.loadMore()));
  await act(async () => asked[2]!.answer({ data: [found('conv_2')], nextCursor: null }));
  await more;
  assert.deepEqual([asked[2]!.cursor, view!.items.length, view!.hasMore], ['x', 2, false]);
  await unmount();
});
