import assert from 'node:assert/strict';
import { test } from 'node:test';
import { act, connected, createElement, mount, provide, world } from './dom.ts';
import type { BlocksView, MessagesView, SendableView } from '../src/hooks/index.ts';

const hooks = await import('../src/hooks/index.ts');

const until = async (is: () => boolean): Promise<void> => {
  for (let i = 0; i < 500 && !is(); i++) await act(() => new Promise<void>((done) => setImmediate(done)));
  assert.ok(is());
};

/** A user in a conversation with Bob, with a service that keeps blocks, or refuses them. */
async function blocking() {
  const { clock, server, client } = world();
  server.features = ['blocks'];
  const cid = server.create(['ann', 'bob', 'cem']);
  server.send(cid, 'bob', { text: 'hello' });
  const kept = new Set<string>();
  const asked: string[] = [];
  let refuse = false;
  const answer = (body: object | null, status: number) =>
    new Response(body && JSON.stringify(body), { status });
  const fetch = (async (input: string, init: RequestInit = {}) => {
    const { pathname } = new URL(input);
    const [, userId] = /^\/v1\/blocks\/(.+)$/.exec(pathname) ?? [];
    if (userId) {
      asked.push(`${init.method} ${userId}`);
      if (refuse) return answer({ error: { code: 'forbidden', message: 'No.' } }, 403);
      if (init.method === 'PUT') kept.add(userId);
      else kept.delete(userId);
      return answer(null, 204);
    }
    if (pathname === '/v1/blocks')
      return answer({ data: [...kept].map((one) => ({ userId: one })), nextCursor: null }, 200);
    return server.fetch(input, init);
  }) as typeof globalThis.fetch;
  const ann = await connected(client('ann', { fetch }), clock);
  const shown: string[] = [];
  let blocks!: BlocksView;
  let messages!: MessagesView;
  const Page = () => {
    blocks = hooks.useBlocks();
    const ids = blocks.userIds.join();
    if (shown.at(-1) !== ids) shown.push(ids);
    messages = hooks.useMessages(cid);
    return null;
  };
  const page = await mount(provide({ client: ann }, createElement(Page)));
  await act(() => clock.advance(0));
  return {
    page,
    asked,
    shown,
    refuse: () => void (refuse = true),
    blocks: () => blocks,
    marked: () => messages.items[0]?.blocked === true,
  };
}

test('blocks#list: useBlocks names whom the user blocks, marks their messages, and takes it back', async () => {
  const { page, asked, blocks, marked } = await blocking();
  assert.deepEqual([blocks().userIds, marked()], [[], false]);
  const before = blocks();
  let done = false;
  await act(
    async () =>
      void blocks()
        .block('bob')
        .then(() => (done = true)),
  );
  await until(() => done);
  assert.deepEqual([blocks().userIds, marked(), asked], [['bob'], true, ['PUT bob']]);
  assert.equal(blocks().block, before.block, 'the functions stay the same');
  done = false;
  await act(
    async () =>
      void blocks()
        .unblock('bob')
        .then(() => (done = true)),
  );
  await until(() => done);
  assert.deepEqual([blocks().userIds, marked(), asked.at(-1)], [[], false, 'DELETE bob']);
  await page.unmount();
});

test('useBlocks: a block that is refused shows at once, is taken back, and rejects', async () => {
  const { page, blocks, marked, refuse, shown } = await blocking();
  refuse();
  let code: unknown;
  await act(
    async () =>
      void blocks()
        .block('bob')
        .catch((e: { code: string }) => (code = e.code)),
  );
  await until(() => code !== undefined);
  assert.equal(code, 'forbidden');
  assert.deepEqual(shown, ['', 'bob', '']);
  assert.deepEqual([blocks().userIds, marked()], [[], false]);
  await page.unmount();
});

test('conversations#slow-mode: useSendable waits after a message, and renders when the time has come', async (t) => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  server.setRules(cid, { slowModeSeconds: 30 });
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: clock.time });
  let sendable!: SendableView;
  let renders = 0;
  const Page = () => {
    renders++;
    hooks.useMembers(cid);
    sendable = hooks.useSendable(cid);
    return null;
  };
  const page = await mount(provide({ client: ann }, createElement(Page)), false);
  await act(() => clock.advance(0));
  assert.deepEqual(sendable, { can: true, at: null });
  await act(async () => void ann.conversations.send(cid, 'one'));
  await act(() => clock.advance(0));
  await until(() => !sendable.can);
  assert.equal(sendable.at, clock.time + 30_000);
  const pass = async (ms: number): Promise<void> => {
    await act(() => clock.advance(ms));
    await act(async () => t.mock.timers.tick(ms));
  };
  renders = 0;
  await pass(29_999);
  assert.deepEqual([sendable.can, renders], [false, 0]);
  await pass(2);
  assert.deepEqual(sendable, { can: true, at: null });
  assert.equal(renders, 1);
  t.mock.timers.reset();
  await page.unmount();
});

test('useSendable: where only moderators write, a member waits without an end', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann = await connected(client('ann'), clock);
  let sendable!: SendableView;
  const Page = () => {
    sendable = hooks.useSendable(cid);
    return null;
  };
  const page = await mount(provide({ client: ann }, createElement(Page)));
  await until(() => sendable.can);
  server.setRules(cid, { posting: 'moderators' });
  await act(() => clock.advance(0));
  await until(() => !sendable.can);
  assert.equal(sendable.at, Infinity);
  await page.unmount();
});
