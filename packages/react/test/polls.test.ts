import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client, MessageItem } from '@parley/client';
import { act, connected, createElement, mount, provide, world } from './dom.ts';

const { PollButton, PollCard } = await import('../src/parts/poll.tsx');

const poll = {
  question: 'When do we meet?',
  options: ['Monday', 'Tuesday', 'Never'].map((text, i) => ({ id: i + 1, text })),
  multiple: false,
  anonymous: false,
};
const message = (conversationId: string, more: Partial<MessageItem>): MessageItem => ({
  key: 'k',
  status: 'sent',
  id: 'msg_1',
  seq: 2,
  conversationId,
  senderId: 'ann',
  text: poll.question,
  replyTo: null,
  attachments: [],
  metadata: {},
  version: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  editedAt: null,
  deletedAt: null,
  poll,
  ...more,
});

async function page(more: Partial<MessageItem> = {}) {
  const { clock, server, client } = world();
  const cid = server.create(['ann', 'bob']);
  const ann: Client = await connected(client('ann'), clock);
  const votes: unknown[] = [];
  const { open } = ann.conversations;
  ann.conversations.open = (id) => {
    const conversation = open(id);
    conversation.vote = (...args) => (
      votes.push(args),
      Promise.resolve({ revision: 1, total: 0, counts: [] })
    );
    conversation.closePoll = (id) => (votes.push(`close ${id}`), Promise.resolve(poll));
    return conversation;
  };
  const card = (next: Partial<MessageItem>) =>
    provide({ client: ann }, createElement(PollCard, { item: message(cid, next) }));
  const { element, render, unmount } = await mount(card(more));
  const inputs = () => [...element.querySelectorAll('input')];
  const button = (text: string) =>
    [...element.querySelectorAll('button')].find((b) => b.textContent === text);
  return {
    ann,
    cid,
    element,
    votes,
    inputs,
    button,
    unmount,
    show: (next: Partial<MessageItem>) => render(card(next)),
  };
}

test('a poll is a group of radio buttons with a name; a click votes, and the results are bars', async () => {
  const { element, votes, inputs, button, show, unmount } = await page();
  assert.equal(element.querySelector('fieldset > legend')?.textContent, poll.question);
  assert.deepEqual(
    inputs().map((input) => [input.type, input.name, input.checked]),
    poll.options.map(() => ['radio', 'k', false]),
  );
  await act(async () => inputs()[1]!.click());
  assert.deepEqual(votes, [['msg_1', [2]]]);
  const results = [
    { option: 2, count: 3, userIds: ['ann', 'bob', 'cy'] },
    { option: 3, count: 1, userIds: ['dan'] },
  ];
  await show({ reactions: { revision: 4, total: 0, counts: [], votes: results, own: [], ownVotes: [2] } });
  assert.deepEqual(
    inputs().map((input) => input.getAttribute('aria-label')),
    ['Monday, 0 votes', 'Tuesday, 3 votes', 'Never, 1 vote'],
  );
  assert.deepEqual(
    [...element.querySelectorAll('label')].map((label) => label.style.getPropertyValue('--parley-share')),
    ['0%', '75%', '25%'],
  );
  assert.ok(inputs()[1]!.checked);
  await act(async () => button('Take my vote back')!.click());
  await act(async () => button('Close the poll')!.click());
  assert.deepEqual(votes.slice(1), [['msg_1', []], 'close msg_1']);
  await show({ poll: { ...poll, closedAt: '2026-01-01T00:00:00.000Z' } });
  assert.ok(element.querySelector('fieldset')!.disabled);
  assert.match(element.textContent!, /Closed/);
  assert.equal(button('Close the poll'), undefined);
  await unmount();
});

test('several choices are boxes, which are added and taken back one by one', async () => {
  const { votes, inputs, unmount } = await page({
    poll: { ...poll, multiple: true, closesAt: '2020-01-01T00:00:00.000Z' },
  });
  assert.equal(inputs()[0]!.closest('fieldset')!.disabled, true, 'its time is over');
  await unmount();
  const open = await page({
    poll: { ...poll, multiple: true },
    reactions: { revision: 1, total: 0, counts: [], votes: [], own: [], ownVotes: [1, 3] },
  });
  assert.deepEqual(
    open.inputs().map((input) => [input.type, input.checked]),
    [
      ['checkbox', true],
      ['checkbox', false],
      ['checkbox', true],
    ],
  );
  await act(async () => open.inputs()[1]!.click());
  await act(async () => open.inputs()[2]!.click());
  assert.deepEqual(open.votes, [
    ['msg_1', [1, 3, 2]],
    ['msg_1', [1]],
  ]);
  assert.deepEqual(votes, []);
  await open.unmount();
});

test('the button of the composer asks for a question and options, and sends them', async () => {
  const { ann, cid, unmount } = await page();
  const sent: unknown[] = [];
  ann.conversations.send = (...args) => (sent.push(args), {} as MessageItem);
  const { element, unmount: close } = await mount(
    provide({ client: ann }, createElement(PollButton, { conversationId: cid })),
  );
  await act(async () => element.querySelector('button')!.click());
  // The form is loaded when it is first opened.
  await act(async () => void (await import('../src/parts/poll-form.tsx')));
  const dialog = element.querySelector('[role=dialog]')!;
  const set = Object.getOwnPropertyDescriptor(
    (globalThis.window as unknown as { HTMLInputElement: { prototype: object } }).HTMLInputElement.prototype,
    'value',
  )!.set!;
  const write = (name: string, text: string) =>
    act(async () => {
      const field = dialog.querySelector(`[aria-label="${name}"]`)!;
      set.call(field, text);
      field.dispatchEvent(new (globalThis.window as any).Event('input', { bubbles: true }));
    });
  const ask = () => [...dialog.querySelectorAll('button')].at(-1)!;
  assert.ok(ask().disabled);
  await write('Question', 'Pizza?');
  await write('Option 1', 'Yes');
  await write('Option 2', 'No');
  assert.ok(dialog.querySelector('[aria-label="Option 3"]'), 'there is room for one more');
  await act(async () => ask().click());
  assert.deepEqual(sent, [
    [
      cid,
      {
        poll: {
          question: 'Pizza?',
          options: [{ text: 'Yes' }, { text: 'No' }],
          multiple: false,
          anonymous: false,
        },
      },
    ],
  ]);
  assert.equal(element.querySelector('[role=dialog]'), null);
  await close();
  await unmount();
});
