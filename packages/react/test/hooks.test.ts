import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '@parley/client';
import { act, connected, createElement, mount, provide, world } from './dom.ts';
import type { ComposerView, MessagesView, Receipt } from '../src/hooks/index.ts';

const hooks = await import('../src/hooks/index.ts');

const frames = (server: ReturnType<typeof world>['server'], t: string) =>
  server.frames.filter((frame) => frame['t'] === t);

/** The module of a feature is loaded before anything of it shows. */
const settle = async (clock: ReturnType<typeof world>['clock']): Promise<void> => {
  await import('../../client/src/features/pins.ts');
  for (let i = 0; i < 3; i++) await act(() => clock.advance(0));
};

test('StrictMode: the provider connects once, a conversation is opened once and closed at the end', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  server.send(cid, 'bob', { text: 'hello' });
  const ann = client('ann');
  const { open } = ann.conversations;
  let [opened, closed] = [0, 0];
  ann.conversations.open = (id) => {
    opened++;
    const conversation = open(id);
    const close = conversation.close.bind(conversation);
    conversation.close = () => (closed++, close());
    return conversation;
  };
  let shown: MessagesView | undefined;
  const One = () => {
    shown = hooks.useMessages(cid);
    hooks.useTyping(cid);
    return hooks.useConnection().state;
  };
  const page = await mount(provide({ client: ann, connect: true }, createElement(One)));
  await act(() => clock.advance(0));
  assert.equal(page.element.firstChild?.textContent, 'connected');
  assert.equal(server.sockets.size, 1);
  assert.deepEqual(
    shown?.items.map((item) => item.text),
    ['hello'],
  );
  assert.deepEqual([opened, closed], [1, 0]);
  await page.unmount();
  assert.deepEqual([opened, closed], [1, 1]);
  assert.equal(server.sockets.size, 0);
});

test('an incoming message renders one row, and a message that changes only its own', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const first = server.send(cid, 'bob', { text: 'one' });
  server.send(cid, 'bob', { text: 'two' });
  const ann = await connected(client('ann'), clock);
  const rendered: string[] = [];
  const { memo } = await import('react');
  const Row = memo(({ of }: { of: string }) => {
    const text = hooks.useMessage(cid, of)?.text ?? '';
    rendered.push(text);
    return text;
  });
  const List = () =>
    hooks.useMessages(cid).items.map((item) => createElement(Row, { key: item.key, of: item.key }));
  await mount(provide({ client: ann }, createElement(List)), false);
  await act(() => clock.advance(0));
  rendered.length = 0;
  server.send(cid, 'bob', { text: 'three' });
  await act(() => clock.advance(0));
  assert.deepEqual(rendered.splice(0), ['three']);
  server.edit(first.id, 'one, changed');
  await act(() => clock.advance(0));
  assert.deepEqual(rendered.splice(0), ['one, changed']);
  // Two of one's own: the second, on its way, does not render the first again.
  server.onFrame = (_, frame) => (frame['t'] === 'message.send' ? 'ignore' : undefined);
  for (const text of ['mine', 'mine too']) {
    await act(async () => void ann.conversations.send(cid, text));
    assert.deepEqual(rendered.splice(0), [text]);
  }
});

test('usePins: the list is loaded when somebody asks for it, and a pin renders the list and one row', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const first = server.send(cid, 'bob', { text: 'one' });
  const second = server.send(cid, 'bob', { text: 'two' });
  server.pin(first.id, true);
  const ann = await connected(client('ann'), clock);
  const rendered: string[] = [];
  const { memo } = await import('react');
  const Row = memo(({ of }: { of: string }) => {
    const item = hooks.useMessage(cid, of);
    rendered.push(`${item?.text} ${item?.pinned?.by}`);
    return null;
  });
  const List = () =>
    hooks.useMessages(cid).items.map((item) => createElement(Row, { key: item.key, of: item.key }));
  let view!: ReturnType<typeof hooks.usePins>;
  const Pins = () => {
    view = hooks.usePins(cid);
    return null;
  };
  const asked = () => server.requests.filter((request) => request.endsWith('/pins')).length;
  const page = (pins: boolean) =>
    provide({ client: ann }, createElement(List, { key: 'l' }), pins && createElement(Pins, { key: 'p' }));
  const { render } = await mount(page(false));
  await settle(clock);
  assert.equal(asked(), 0);
  await render(page(true));
  await settle(clock);
  assert.equal(asked(), 1);
  assert.deepEqual([view.status, view.items.map((item) => item.text)], ['ready', ['one']]);
  rendered.length = 0;
  await clock.advance(1_000);
  await act(() => view.pin(second.id));
  await settle(clock);
  assert.deepEqual(
    view.items.map((item) => [item.text, item.pinned!.by]),
    [
      ['two', 'ann'],
      ['one', null],
    ],
  );
  assert.ok(rendered.length > 0);
  assert.deepEqual(new Set(rendered), new Set(['two ann']));
});

test('usePresence: all uses are one watch; without a connection nothing is known', async () => {
  const { clock, server, client } = world();
  const ann = await connected(client('ann'), clock);
  let known: string[] = [];
  const Who = ({ ids }: { ids: string[] }) => {
    known = [...hooks.usePresence(ids).keys()];
    return null;
  };
  const page = (more: boolean) =>
    provide(
      { client: ann },
      createElement(Who, { key: 'a', ids: ['bob', 'cem'] }),
      more && createElement(Who, { key: 'b', ids: ['cem', 'dan'] }),
    );
  const { render } = await mount(page(true));
  await act(() => clock.advance(0));
  const watched = () => frames(server, 'presence.watch').map((frame) => [...frame['d'].userIds].sort());
  assert.deepEqual(watched(), [['bob', 'cem', 'dan']]);
  await render(page(false));
  await act(() => clock.advance(0));
  assert.deepEqual(watched().at(-1), ['bob', 'cem']);
  assert.deepEqual(known.sort(), ['bob', 'cem']);
  await act(async () => ann.disconnect());
  assert.deepEqual(known, []);
});

test('useComposer: sends, answers, changes and keeps the draft; typing is told at most every 3 s', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const hello = server.send(cid, 'bob', { text: 'hello' });
  const ann = await connected(client('ann'), clock);
  let composer!: ComposerView;
  let messages!: MessagesView;
  let editing: string | null = null;
  let replyTo: string | null = null;
  const Write = () => {
    messages = hooks.useMessages(cid);
    const find = (text: string | null) => messages.items.find((item) => item.text === text) ?? null;
    composer = hooks.useComposer(cid, { editing: find(editing), replyTo: find(replyTo) });
    return composer.text;
  };
  const page = () => provide({ client: ann }, createElement(Write));
  const { unmount } = await mount(page());
  await act(() => clock.advance(0));
  for (const text of ['h', 'hi', 'hi!']) await act(async () => composer.setText(text));
  assert.equal(frames(server, 'typing').length, 1);
  await unmount();
  const again = await mount(page());
  await act(() => clock.advance(0));
  assert.match(again.element.textContent, /^hi!/);

  replyTo = 'hello';
  await again.render(page());
  await act(() => composer.send());
  await act(() => clock.advance(0));
  const sent = messages.items.at(-1)!;
  assert.deepEqual([sent.text, sent.status, sent.replyTo], ['hi!', 'sent', hello.id]);
  assert.equal(composer.text, '');

  editing = 'hi!';
  await again.render(page());
  assert.equal(composer.text, 'hi!');
  await act(async () => composer.setText('hi there'));
  await act(async () => {
    const done = composer.send();
    await clock.advance(0);
    await done;
  });
  assert.equal(messages.items.at(-1)!.text, 'hi there');
  await act(async () => composer.setText('x'.repeat(5_001)));
  assert.deepEqual([composer.canSend, composer.left], [false, -1]);
});

test('useComposer: a message whose file fails, or goes with its conversation, is not sent without it', async () => {
  const { clock, server, client } = world();
  const [first, second] = [server.create(['ann', 'bob']), server.create(['ann', 'bob'])];
  const ann = await connected(client('ann'), clock);
  let fail!: (error: Error) => void;
  ann.uploads.upload = () => new Promise((_done, refuse) => (fail = refuse));
  let composer!: ComposerView;
  const Write = ({ of }: { of: string }) => {
    composer = hooks.useComposer(of);
    return `${composer.text} ${composer.uploads.items.map(({ status }) => status).join()}`;
  };
  const page = (of: string) => provide({ client: ann }, createElement(Write, { of }));
  const { element, render } = await mount(page(first));
  await act(async () => composer.setText('the plan'));
  for (const [what, shown] of [
    ['fails', 'the plan failed'],
    ['goes', ' '],
  ] as const) {
    await act(async () => void composer.uploads.add([new File(['x'], 'plan.pdf')]));
    let sending!: Promise<void>;
    await act(async () => void (sending = composer.send()));
    assert.equal(composer.busy, true);
    if (what === 'goes') await render(page(second));
    await act(async () => fail(new Error('cut')));
    await act(() => sending);
    assert.match(element.textContent, new RegExp(`^${shown}`));
    await act(async () => composer.uploads.clear());
  }
  assert.deepEqual(frames(server, 'message.send'), []);
  await render(page(first));
  assert.equal(composer.text, 'the plan');
});

test('useComposer: a mention counts where its name stands, as long as the text has it', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob', 'cem']);
  const ann = await connected(client('ann'), clock);
  const { placed, mentionQuery } = await import('../src/hooks/suggestions.ts');
  let composer!: ComposerView;
  const Write = () => {
    composer = hooks.useComposer(cid);
    return composer.text;
  };
  await mount(provide({ client: ann }, createElement(Write)));
  await act(() => clock.advance(0));
  await act(async () => {
    composer.setText('👋 @Bob and @Cem');
    composer.mention({ type: 'user', userId: 'bob' }, '@Bob');
  });
  await act(async () => composer.mention({ type: 'user', userId: 'cem' }, '@Cem'));
  await act(async () => composer.setText('Hello 👋 @Bob and others'));
  await act(() => composer.send());
  await act(() => clock.advance(0));
  const [sent] = frames(server, 'message.send');
  assert.deepEqual((sent!['d'] as { mentions: unknown }).mentions, [
    { type: 'user', userId: 'bob', offset: 9, length: 4 },
  ]);
  await act(async () => composer.setText('@Bob again'));
  await act(() => composer.send());
  assert.equal(Object.hasOwn(frames(server, 'message.send')[1]!['d'] as object, 'mentions'), false);

  const user = (userId: string) => ({ type: 'user' as const, userId });
  const chosen = new Map([
    ['a', { mention: user('a'), shown: '@Ann Lee' }],
    ['b', { mention: user('b'), shown: '@Ann' }],
    ['c', { mention: user('c'), shown: '' }],
  ]);
  assert.deepEqual(placed('@Ann Lee, @Ann', chosen), [
    user('c'),
    { ...user('a'), offset: 0, length: 8 },
    { ...user('b'), offset: 10, length: 4 },
  ]);
  assert.deepEqual(
    ['@', 'hi @be', 'mail@be', 'hi @be there', ''].map((text) => mentionQuery(text, text.length)),
    ['', 'be', null, null, null],
  );
});

test('read marks, receipts, unread and names', async () => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob', 'cem']);
  const ann = await connected(client('ann'), clock);
  let receipt!: Receipt;
  let total = 0;
  const names: string[] = [];
  const Last = () => {
    const item = hooks.useMessages(cid).items.at(-1);
    hooks.useMembers(cid);
    total = hooks.useUnreadTotal();
    receipt = hooks.useReceipt(cid, item ?? { status: 'pending', seq: null });
    names.splice(0, 2, hooks.useName('bob'), hooks.useName('cem'));
    return null;
  };
  let read!: (seq?: number) => void;
  const Mark = () => {
    read = hooks.useReadState(cid).markRead;
    return null;
  };
  await mount(provide({ client: ann }, createElement(Last), createElement(Mark)));
  await act(() => clock.advance(0));
  assert.deepEqual(names, ['Bob', 'Cem']);
  assert.equal(server.requests.filter((line) => line.includes('/users/lookup')).length, 1);

  server.send(cid, 'bob', { text: 'question' });
  await act(() => clock.advance(0));
  assert.equal(total, 1);
  await act(async () => read());
  await act(() => clock.advance(2_000));
  assert.equal(total, 0);

  server.latency = () => 10;
  await act(async () => void ann.conversations.send(cid, 'answer'));
  assert.equal(receipt.state, 'waiting');
  await act(() => clock.advance(20));
  assert.equal(receipt.state, 'sent');
  server.read(cid, 'bob', 99);
  await act(() => clock.advance(20));
  assert.deepEqual(receipt, { state: 'read', readBy: 1, others: 2 });
});

test('useTypists: who types in a conversation that is not open, until a message, silence or the loss of the network', async (t) => {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob', 'cem']);
  const ann = await connected(client('ann'), clock);
  const bob = await connected(client('bob'), clock);
  let typists: readonly string[] = [];
  const Row = () => {
    typists = hooks.useTypists(cid);
    return null;
  };
  const page = await mount(provide({ client: ann }, createElement(Row)));
  const types = async (state: 'start' | 'stop') => {
    const conversation = bob.conversations.open(cid);
    await act(async () => (state === 'start' ? conversation.startTyping() : conversation.stopTyping()));
    conversation.close();
    await act(() => clock.advance(0));
  };
  await types('start');
  assert.deepEqual(typists, ['bob']);
  assert.equal(frames(server, 'typing').length, 1);
  server.send(cid, 'bob', { text: 'there it is' });
  await act(() => clock.advance(0));
  assert.deepEqual(typists, []);

  await types('start');
  assert.deepEqual(typists, ['bob']);
  await act(async () => ann.disconnect());
  assert.deepEqual(typists, []);

  await act(() => connected(ann, clock));
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await types('start');
  assert.deepEqual(typists, ['bob']);
  await act(async () => t.mock.timers.tick(6_000));
  assert.deepEqual(typists, []);
  t.mock.timers.reset();
  await page.unmount();
});

test('without a provider the hooks say what is missing', async () => {
  const { renderToString } = await import('react-dom/server');
  const Lost = () => hooks.useConnection().state;
  assert.throws(() => renderToString(createElement(Lost)), /ParleyProvider/);
});

test('on the server everything is empty, and nothing is opened or asked for', async () => {
  const { server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const { renderToString } = await import('react-dom/server');
  const ann: Client = client('ann');
  const Page = () =>
    [
      hooks.useConnection().state,
      hooks.useConversations().items.length,
      hooks.useMessages(cid).status,
      hooks.useName('bob'),
      hooks.usePresence(['bob']).size,
      hooks.useComposer(cid).text,
    ].join(' ');
  assert.match(
    renderToString(provide({ client: ann, connect: true }, createElement(Page))),
    /^idle 0 loading bob 0 /,
  );
  assert.deepEqual([server.requests, server.urls], [[], []]);
});
