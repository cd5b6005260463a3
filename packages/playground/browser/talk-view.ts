import type { Client, ConversationHandle, MessageItem } from '@parley/client';
import type { Calls } from '@parley/client/calls';
import { button, byId, make, onFrame, setChildren, time } from './dom.ts';
import { Composer } from './composer.ts';
import { peerOf, titleOf } from './list-view.ts';

/** One open conversation. `close` ends its subscriptions and the handle. */
export interface Talk {
  id: string;
  /** A call began or ended: the thread shows those that are over. */
  callsChanged(): void;
  close(): void;
}

export function openTalk(client: Client, me: string, id: string, left: () => void, calls: Calls): Talk {
  const conversation = client.conversations.open(id);
  const list = byId<HTMLOListElement>('messages');
  const composer = new Composer(conversation);
  let closed = false;
  let atEnd = true;

  list.replaceChildren();
  list.onscroll = () => {
    atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    if (list.scrollTop < 40 && conversation.messages.get().hasOlder) void older();
  };

  async function older(): Promise<void> {
    const before = list.scrollHeight - list.scrollTop;
    await conversation.loadOlder().catch(() => undefined);
    render();
    requestAnimationFrame(() => (list.scrollTop = list.scrollHeight - before));
  }

  let pastCalls: { at: string; view: HTMLLIElement }[] = [];
  async function loadCalls(): Promise<void> {
    const list = await calls.history(id).catch(() => []);
    pastCalls = list
      .filter((call) => call.status === 'ended')
      .map((call) => ({
        at: call.createdAt,
        view: make('li', { class: 'past-call quiet' }, pastCall(call, me)),
      }));
    render();
  }

  const earlier = make(
    'li',
    { class: 'older' },
    button('Earlier messages', () => void older()),
  );
  const render = onFrame(() => {
    if (closed) return;
    const { items, hasOlder, status } = conversation.messages.get();
    if (status === 'removed') return left();
    const byMessageId = new Map(items.flatMap((i) => (i.id ? [[i.id, i] as const] : [])));
    const rows = [
      ...items.map((item) => ({ at: item.createdAt, view: messageView(item, byMessageId) })),
      ...(hasOlder ? [] : pastCalls),
    ].sort((a, b) => a.at.localeCompare(b.at));
    setChildren(list, [...(hasOlder ? [earlier] : []), ...rows.map((row) => row.view)]);
    if (drawn.size > 2 * items.length + 100) {
      const shown = new Set(items.map((item) => item.key));
      for (const key of [...drawn.keys()]) if (!shown.has(key)) drawn.delete(key);
    }
    if (atEnd) list.scrollTop = list.scrollHeight;
    if (document.visibilityState === 'visible') conversation.markRead();
    renderHead();
  });

  function renderHead(): void {
    const item = client.conversations.get().items.find((c) => c.id === id);
    const members = conversation.members.get();
    const own = members.find((m) => m.userId === me);
    byId('title').textContent = item ? titleOf(item, me) : '…';
    const peer = item && peerOf(item, me);
    const presence = peer ? client.presence.store.get().get(peer) : undefined;
    byId('subtitle').textContent = peer
      ? presence?.online
        ? 'online'
        : presence?.lastSeenAt
          ? `last seen ${time(presence.lastSeenAt)}`
          : 'offline'
      : members.map((m) => m.userId).join(', ');
    byId('add-member').hidden = item?.type !== 'group' || own?.role !== 'owner';
    byId('leave').hidden = item?.type !== 'group';
    const typing = conversation.typing.get();
    byId('typing').textContent =
      typing.length > 0 ? `${typing.join(', ')} ${typing.length > 1 ? 'are' : 'is'} typing…` : '';
  }

  /** A message is drawn anew only when something in it changed. */
  const drawn = new Map<
    string,
    { item: MessageItem; quoted: MessageItem | undefined; mark: string; view: HTMLLIElement }
  >();
  function messageView(item: MessageItem, all: Map<string, MessageItem>): HTMLLIElement {
    const quoted = item.replyTo ? all.get(item.replyTo) : undefined;
    const mark = ticks(item).className + ticks(item).textContent;
    const before = drawn.get(item.key);
    if (before?.item === item && before.quoted === quoted && before.mark === mark) return before.view;
    const view = drawMessage(item, quoted);
    drawn.set(item.key, { item, quoted, mark, view });
    return view;
  }

  function drawMessage(item: MessageItem, quoted: MessageItem | undefined): HTMLLIElement {
    const own = item.senderId === me;
    const state = item.deletedAt ? 'gone' : item.status;
    const view = make(
      'li',
      { class: `message ${own ? 'own' : ''} ${state}` },
      !own && make('div', { class: 'who' }, item.senderId ?? 'System'),
      item.replyTo !== null &&
        make(
          'div',
          { class: 'quote' },
          quoted ? `${quoted.senderId ?? 'System'}: ${quoted.text ?? 'deleted'}` : 'an earlier message',
        ),
      make('div', { class: 'body' }, item.deletedAt ? 'deleted' : (item.text ?? '')),
      ...item.attachments.map((a) => attachmentView(a)),
      make(
        'div',
        { class: 'foot' },
        make('span', { class: 'acts' }, ...actions(item, own)),
        item.editedAt !== null && 'edited',
        time(item.createdAt),
        own && ticks(item),
      ),
    );
    view.dataset['id'] = item.id ?? '';
    return view;
  }

  function attachmentView(a: MessageItem['attachments'][number]): HTMLElement {
    const holder = make(
      'a',
      { target: '_blank', rel: 'noreferrer', title: a.name },
      a.mimeType.startsWith('image/') ? '' : `📎 ${a.name}`,
    );
    urlOf(client, a.id).then(
      ({ url }) => {
        holder.href = url;
        if (a.mimeType.startsWith('image/'))
          holder.replaceChildren(
            make('img', {
              src: url,
              alt: a.name,
              onload: () => atEnd && (list.scrollTop = list.scrollHeight),
            }),
          );
      },
      () => holder.replaceChildren(`${a.name} cannot be loaded`),
    );
    return holder;
  }

  function actions(item: MessageItem, own: boolean): HTMLElement[] {
    const problem = (error: unknown) => composer.say(error instanceof Error ? error.message : String(error));
    if (item.status === 'failed')
      return [
        button('Try again', () => conversation.retry(item.clientMsgId!)),
        button('Discard', () => conversation.discard(item.clientMsgId!)),
      ];
    if (item.status !== 'sent' || item.deletedAt || item.id === null) return [];
    const { id: messageId } = item;
    return [
      button('Reply', () => composer.replyTo(item)),
      ...(own
        ? [
            button('Edit', () => composer.edit(item)),
            button('Delete', () => void conversation.delete(messageId).catch(problem)),
          ]
        : []),
    ];
  }

  /** ✓ sent, ✓✓ delivered to everybody else, highlighted when read by everybody else. */
  function ticks(item: MessageItem): HTMLElement {
    if (item.status === 'pending') return make('span', { class: 'ticks', title: 'on its way' }, '…');
    if (item.status === 'failed') return make('span', { class: 'ticks problem' }, 'not sent');
    const others = conversation.members.get().filter((m) => m.userId !== me);
    const by = (mark: 'lastReadSeq' | 'lastDeliveredSeq') =>
      others.length > 0 && others.every((m) => m[mark] >= item.seq!);
    if (by('lastReadSeq')) return make('span', { class: 'ticks read', title: 'read' }, '✓✓');
    if (by('lastDeliveredSeq')) return make('span', { class: 'ticks', title: 'delivered' }, '✓✓');
    return make('span', { class: 'ticks', title: 'sent' }, '✓');
  }

  const unsubscribe = [
    conversation.messages.subscribe(render),
    conversation.members.subscribe(render),
    conversation.typing.subscribe(render),
    client.conversations.subscribe(render),
    client.presence.store.subscribe(render),
  ];
  document.addEventListener('visibilitychange', render);
  byId('add-member').onclick = () => void addMember(conversation, composer);
  byId('leave').onclick = () => void conversation.leave().then(left, (e: Error) => composer.say(e.message));
  conversation.loadMembers().then(render, () => undefined);
  render();

  void loadCalls();

  return {
    id,
    callsChanged: () => void loadCalls(),
    close: () => {
      closed = true;
      document.removeEventListener('visibilitychange', render);
      for (const end of unsubscribe) end();
      composer.close();
      conversation.close();
    },
  };
}

/** Download addresses last 5 minutes; each is asked for once in that time, however often the list is drawn. */
const urls = new Map<string, { asked: number; answer: Promise<{ url: string }> }>();
function urlOf(client: Client, id: string): Promise<{ url: string }> {
  const known = urls.get(id);
  if (known && Date.now() - known.asked < 240_000) return known.answer;
  const answer = client.uploads.attachmentUrl(id);
  urls.set(id, { asked: Date.now(), answer });
  return answer;
}

async function addMember(conversation: ConversationHandle, composer: Composer): Promise<void> {
  const name = prompt('Who joins?')?.trim();
  if (!name) return;
  await conversation.addMembers([name]).catch(() => composer.say(`Nobody called ${name} has been here yet.`));
}

function pastCall(call: Awaited<ReturnType<Calls['history']>>[number], me: string): string {
  const kind = call.kind === 'video' ? 'Video call' : 'Call';
  const mine = call.participants.find((p) => p.userId === me)?.state;
  if (mine === 'missed')
    return `Missed ${kind.toLowerCase()} from ${call.createdBy}, ${time(call.createdAt)}`;
  const { durationSeconds: seconds } = call;
  const length = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  return `${kind} by ${call.createdBy}, ${call.answeredAt ? length : (call.endReason ?? '')}, ${time(call.createdAt)}`;
}
