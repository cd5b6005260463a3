import { createHmac } from 'node:crypto';
import { createClient } from '../../src/index.ts';
import type { Client, ConversationHandle } from '../../src/index.ts';
import type { FaultyProxy } from './proxy.ts';
import type { Random } from './random.ts';

/** A user with a real SDK client behind a faulty proxy, who talks at random. */
export interface Actor {
  userId: string;
  client: Client;
  proxy: FaultyProxy;
  conversations: ConversationHandle[];
  /** Texts that the server has acknowledged, by conversation. */
  acknowledged: Map<string, string[]>;
  failed: string[];
  said: number;
  /** Acknowledgements, of all conversations. */
  heard: number;
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export function tokenFor(secretKey: string, userId: string): string {
  const now = Math.floor(Date.now() / 1000);
  const signed = `${encode({ alg: 'HS256', kid: secretKey.split('_')[2] })}.${encode({ sub: userId, iat: now, exp: now + 3600 })}`;
  return `${signed}.${createHmac('sha256', secretKey).update(signed).digest('base64url')}`;
}

export function createActor(userId: string, secretKey: string, proxy: FaultyProxy, random: Random): Actor {
  const client = createClient({
    url: proxy.url,
    token: () => tokenFor(secretKey, userId),
    random: () => random.next(),
  });
  const actor: Actor = {
    userId,
    client,
    proxy,
    conversations: [],
    acknowledged: new Map(),
    failed: [],
    said: 0,
    heard: 0,
  };
  client.on('sent', (item) => {
    const list = actor.acknowledged.get(item.conversationId) ?? [];
    list.push(item.text!);
    actor.heard++;
    actor.acknowledged.set(item.conversationId, list);
  });
  client.on('failed', (item) => actor.failed.push(`${item.text}: ${item.error?.code}`));
  return actor;
}

/** One random thing: mostly a message, sometimes a read, an edit or a delete. */
export function act(actor: Actor, random: Random): void {
  const conversation = random.pick(actor.conversations);
  const what = random.next();
  if (what < 0.7) {
    conversation.send(`${actor.userId} ${actor.said++}`);
    return;
  }
  if (what < 0.85) {
    conversation.markRead();
    return;
  }
  const own = conversation.messages
    .get()
    .items.filter((i) => i.senderId === actor.userId && i.status === 'sent' && i.id !== null && !i.deletedAt);
  if (own.length === 0) return;
  const item = random.pick(own);
  // These may fail while everything breaks: they are requests, not promises.
  if (what < 0.95)
    conversation
      .edit(item.id!, { metadata: { edited: random.int(1_000) }, expectedVersion: item.version })
      .catch(() => undefined);
  else conversation.delete(item.id!).catch(() => undefined);
}
