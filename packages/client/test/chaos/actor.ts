import { createHmac } from 'node:crypto';
import { createClient } from '../../src/index.ts';
import type { Client, ClientOptions, ConversationHandle } from '../../src/index.ts';
import type { FaultyProxy } from './proxy.ts';
import type { Random } from './random.ts';

/** A user with a real SDK client behind a faulty proxy, who talks at random. */
export interface Actor {
  userId: string;
  client: Client;
  proxy: FaultyProxy;
  /** Where it is a member, and which of these it has open. */
  cids: string[];
  conversations: ConversationHandle[];
  /** Texts that the server has acknowledged, by conversation. */
  acknowledged: Map<string, string[]>;
  failed: string[];
  /** The last few that its client has told of, with their time. */
  errors: string[];
  /** The last frames that went out and came in, but for events. */
  wire: string[];
  said: number;
  /** Acknowledgements, of all conversations. */
  heard: number;
  /** Edits and deletes that have no answer yet. */
  changing: number;
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export function tokenFor(secretKey: string, userId: string): string {
  const now = Math.floor(Date.now() / 1000);
  const signed = `${encode({ alg: 'HS256', kid: secretKey.split('_')[2] })}.${encode({ sub: userId, iat: now, exp: now + 3600 })}`;
  return `${signed}.${createHmac('sha256', secretKey).update(signed).digest('base64url')}`;
}

/** Node's socket, which notes what goes over it. */
function tapped(wire: string[]): ClientOptions['WebSocket'] {
  const note = (way: string, data: unknown): void => {
    wire.push(`${new Date().toISOString().slice(11)} ${way} ${String(data).slice(0, 160)}`);
    if (wire.length > 30) wire.shift();
  };
  class Tapped extends globalThis.WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols);
      note('opening', '');
      this.addEventListener('message', ({ data }) => {
        if (!String(data).startsWith('{"t":"event"')) note('<', data);
      });
      this.addEventListener('close', ({ code }) => note('closed', code));
    }
    override send(data: string): void {
      note('>', data);
      super.send(data);
    }
  }
  return Tapped as unknown as ClientOptions['WebSocket'];
}

export function createActor(
  userId: string,
  secretKey: string,
  proxy: FaultyProxy,
  random: Random,
  WebSocket?: ClientOptions['WebSocket'],
): Actor {
  const wire: string[] = [];
  const client = createClient({
    url: proxy.url,
    token: () => tokenFor(secretKey, userId),
    random: () => random.next(),
    WebSocket: WebSocket ?? tapped(wire),
  });
  const actor: Actor = {
    userId,
    client,
    proxy,
    cids: [],
    conversations: [],
    acknowledged: new Map(),
    failed: [],
    errors: [],
    wire,
    said: 0,
    heard: 0,
    changing: 0,
  };
  client.on('sent', (item) => {
    const list = actor.acknowledged.get(item.conversationId) ?? [];
    list.push(item.text!);
    actor.heard++;
    actor.acknowledged.set(item.conversationId, list);
  });
  client.on('error', ({ code, message }) => {
    actor.errors.push(`${new Date().toISOString()} ${code} ${message}`);
    if (actor.errors.length > 5) actor.errors.shift();
  });
  client.on('failed', (item) =>
    actor.failed.push(`${item.text}: ${item.error?.code} ${item.error?.message}`),
  );
  return actor;
}

/** One random thing: mostly a message, sometimes a read, an edit or a delete. @param sends the share of messages. */
export function act(actor: Actor, random: Random, sends: number): void {
  const { conversations } = actor.client;
  const cid = random.pick(actor.cids);
  const isMessage = random.chance(sends);
  const what = 0.7 + random.next() * 0.3;
  if (isMessage) {
    conversations.send(cid, `${actor.userId} ${actor.said++}`);
    return;
  }
  if (what < 0.85) {
    conversations.markRead(cid);
    return;
  }
  const conversation = actor.conversations.find((c) => c.id === cid);
  if (!conversation) return;
  const own = conversation.messages
    .get()
    .items.filter((i) => i.senderId === actor.userId && i.status === 'sent' && i.id !== null && !i.deletedAt);
  if (own.length === 0) return;
  const item = random.pick(own);
  // These may fail while everything breaks: they are requests, not promises.
  actor.changing++;
  const change =
    what < 0.95
      ? conversation.edit(item.id!, {
          metadata: { edited: random.int(1_000) },
          expectedVersion: item.version,
        })
      : conversation.delete(item.id!);
  void change.then(
    () => actor.changing--,
    () => actor.changing--,
  );
}
