import type { Client } from '@parley/client';
import { byId, make, onFrame } from './dom.ts';

type Item = ReturnType<Client['conversations']['get']>['items'][number];

/** What a conversation is called: a group's name, or whom one talks to. */
export const titleOf = (item: Item, me: string): string =>
  item.type === 'direct'
    ? (item.members?.find((m) => m.userId !== me)?.userId ?? 'Somebody')
    : (item.name ?? 'Group');

export const peerOf = (item: Item, me: string): string | null =>
  item.type === 'direct' ? (item.members?.find((m) => m.userId !== me)?.userId ?? null) : null;

export function showList(
  client: Client,
  me: string,
  open: (id: string) => void,
  current: () => string | null,
): () => void {
  const list = byId<HTMLUListElement>('conversations');
  let watched = '';

  const render = onFrame(() => {
    const { items, unreadTotal, hasMore } = client.conversations.get();
    const presence = client.presence.store.get();
    document.title = unreadTotal > 0 ? `(${unreadTotal}) Parley playground` : 'Parley playground';
    byId('no-conversations').hidden = items.length > 0;
    list.replaceChildren(
      ...items.map((item) => {
        const peer = peerOf(item, me);
        const last = item.lastMessage;
        const row = make(
          'button',
          { type: 'button', onclick: () => open(item.id) },
          make('span', { class: peer && presence.get(peer)?.online ? 'dot on' : 'dot' }),
          make('span', { class: 'name' }, titleOf(item, me)),
          item.unreadCount > 0 && make('span', { class: 'badge', title: 'unread' }, String(item.unreadCount)),
          make(
            'span',
            { class: 'last' },
            last
              ? `${last.senderId === me ? 'You' : (last.senderId ?? 'System')}: ${last.text ?? (last.attachments ? `📎 ${last.attachments.name}` : '')}`
              : 'Nothing yet',
          ),
        );
        row.setAttribute('aria-current', String(item.id === current()));
        return make('li', {}, row);
      }),
      ...(hasMore
        ? [
            make(
              'li',
              {},
              make(
                'button',
                { type: 'button', class: 'link', onclick: () => void client.conversations.loadMore() },
                'More',
              ),
            ),
          ]
        : []),
    );
    const peers = items.flatMap((item) => peerOf(item, me) ?? []).slice(0, 199);
    if (peers.join() !== watched) {
      watched = peers.join();
      client.presence.watch([me, ...peers]).catch(() => (watched = ''));
    }
  });

  client.conversations.subscribe(render);
  client.presence.store.subscribe(render);
  render();
  return render;
}
