import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Conversation, Message } from '@parley/protocol';
import { assertError } from '../support/api.ts';
import type { Api } from '../support/api.ts';
import { Model } from './model.ts';
import type { ModelConversation, ModelMessage } from './model.ts';

/** Random operations, each run on the service and on the model. Numbers pick from what there is, by remainder. */

const pick = fc.nat(1_000);
export const operation = (name: string, weight: number) => ({
  weight,
  arbitrary: fc.record({ name: fc.constant(name), conv: pick, user: pick, other: pick, message: pick }),
});
export const operations = [
  operation('createGroup', 2),
  operation('createDirect', 2),
  operation('send', 8),
  operation('sendOnBehalf', 5),
  operation('sendSystem', 3),
  operation('sendAgain', 2),
  operation('edit', 4),
  operation('editStale', 1),
  operation('softDelete', 4),
  operation('hardDelete', 3),
  operation('read', 6),
  operation('mute', 1),
  operation('add', 3),
  operation('remove', 2),
  operation('leave', 2),
  operation('role', 1),
  operation('rename', 1),
  operation('deleteConversation', 1),
];
export const script = fc.array(fc.oneof(...operations), { minLength: 5, maxLength: 40, size: 'max' });
export type Step = { name: string; conv: number; user: number; other: number; message: number };

type Named = { type: 'user'; userId: string } | { type: 'everyone' | 'here' };
const isUser = (m: Named): m is Named & { userId: string } => m.type === 'user';
const namesOf = (mentions: readonly Named[]): string[] => mentions.filter(isUser).map((m) => m.userId);
const isForAll = (mentions: readonly Named[]): boolean => mentions.some((m) => !isUser(m));

export class World {
  readonly model = new Model();
  readonly server: Api;
  readonly clients: Map<string, Api>;
  #texts = 0;

  constructor(server: Api, clients: Map<string, Api>) {
    this.server = server;
    this.clients = clients;
  }

  get users(): string[] {
    return [...this.clients.keys()];
  }

  async run(step: Step): Promise<void> {
    const user = this.users[step.user % this.users.length]!;
    const other = this.users[step.other % this.users.length]!;
    if (step.name === 'createGroup') return this.#createGroup(step, user, other);
    if (step.name === 'createDirect') return this.#createDirect(user, other);
    const { conversations } = this.model;
    if (conversations.length === 0) return;
    const conv = conversations[step.conv % conversations.length]!;
    const message = conv.messages[step.message % Math.max(1, conv.messages.length)];
    const run = this.#operations[step.name];
    assert.ok(run, step.name);
    await run(conv, user, message, step);
  }

  readonly #operations: Record<
    string,
    (conv: ModelConversation, user: string, message: ModelMessage | undefined, step: Step) => Promise<void>
  > = {
    send: async (conv, user, message, step) => {
      const text = `t${++this.#texts}`;
      const replyTo = step.other % 4 === 0 && message?.deleted !== 'hard' ? message : undefined;
      const answer = await this.#as(user)('POST', `/v1/conversations/${conv.id}/messages`, {
        clientMsgId: text,
        text,
        ...(replyTo ? { replyTo: replyTo.id } : {}),
        mentions: this.#mentions(step).filter(isUser),
      });
      if (!this.#allowed(conv, user, answer)) return;
      assert.equal(answer.status, 201);
      const sent = answer.body as Message;
      const named = namesOf(this.#mentions(step));
      assert.equal(this.model.send(conv, { id: sent.id, sender: user, text, named }, true).seq, sent.seq);
      assert.equal(sent.replyTo, replyTo?.id ?? null);
    },
    sendOnBehalf: async (conv, user, _message, step) => {
      const text = `t${++this.#texts}`;
      const mentions = this.#mentions(step).filter((m) => isUser(m) || conv.type === 'group');
      const answer = await this.server('POST', `/v1/conversations/${conv.id}/messages`, {
        text,
        senderId: user,
        mentions,
      });
      if (!this.#allowed(conv, user, answer)) return;
      const sent = answer.body as Message;
      const kept = { id: sent.id, sender: user, text, named: namesOf(mentions), forAll: isForAll(mentions) };
      assert.equal(this.model.send(conv, kept, false).seq, sent.seq);
    },
    sendSystem: async (conv) => {
      const text = `t${++this.#texts}`;
      const answer = await this.server('POST', `/v1/conversations/${conv.id}/messages`, { text });
      if (conv.deleted) return void assertError(answer, 404, 'not_found');
      const sent = answer.body as Message;
      assert.equal(this.model.send(conv, { id: sent.id, sender: null, text }, false).seq, sent.seq);
    },
    /** The original comes back as it is now; nothing is committed. */
    sendAgain: async (conv, _user, message) => {
      const original = conv.events.length;
      if (!message?.sender || !conv.members.has(message.sender) || conv.deleted) return;
      const first = await this.server('POST', `/v1/conversations/${conv.id}/messages`, {
        text: 'dup',
        senderId: message.sender,
        clientMsgId: `again ${message.id}`,
      });
      const kept = first.body as Message;
      if (kept.seq === original + 1)
        this.model.send(conv, { id: kept.id, sender: message.sender, text: 'dup' }, false);
      const { status, body } = await this.server('POST', `/v1/conversations/${conv.id}/messages`, {
        text: 'other words',
        senderId: message.sender,
        clientMsgId: `again ${message.id}`,
      });
      assert.deepEqual([status, (body as Message).id, (body as Message).seq], [201, kept.id, kept.seq]);
    },
    edit: (conv, user, message, step) => this.#edit(conv, user, message, step, 0),
    editStale: (conv, user, message, step) => this.#edit(conv, user, message, step, 1),
    softDelete: async (conv, user, message, step) => {
      if (!message) return;
      const byServer = step.other % 3 === 0;
      const answer = await (byServer ? this.server : this.#as(user))('DELETE', `/v1/messages/${message.id}`);
      if (conv.deleted || message.deleted === 'hard') return void assertError(answer, 404, 'not_found');
      const member = conv.members.get(user);
      if (!byServer && !member) return void assertError(answer, 403, 'not_member');
      if (!byServer && message.sender !== user && member!.role !== 'owner')
        return void assertError(answer, 403, 'forbidden');
      assert.equal(answer.status, 200);
      if (message.deleted) return;
      message.deleted = 'soft';
      this.model.append(conv, 'message.deleted', message);
    },
    hardDelete: async (conv, _user, message) => {
      if (!message) return;
      const answer = await this.server('DELETE', `/v1/messages/${message.id}?hard=true`);
      if (conv.deleted || message.deleted === 'hard') return void assertError(answer, 404, 'not_found');
      assert.equal(answer.status, 204);
      message.deleted = 'hard';
      this.model.append(conv, 'message.deleted', message);
    },
    read: async (conv, user, _message, step) => {
      const seq = step.other % (conv.events.length + 3);
      const answer = await this.#as(user)('POST', `/v1/conversations/${conv.id}/read`, { seq });
      if (!this.#allowed(conv, user, answer)) return;
      const member = conv.members.get(user)!;
      member.lastReadSeq = Math.max(member.lastReadSeq, Math.min(seq, conv.events.length));
      assert.deepEqual(answer.body, {
        conversationId: conv.id,
        lastReadSeq: member.lastReadSeq,
        unreadCount: this.model.unread(conv, user),
        mentionUnreadCount: this.model.mentionsUnread(conv, user),
      });
    },
    mute: async (conv, user, _message, step) => {
      const muted = step.other % 2 === 0;
      const answer = await this.#as(user)(muted ? 'PUT' : 'DELETE', `/v1/conversations/${conv.id}/mute`);
      if (this.#allowed(conv, user, answer)) conv.members.get(user)!.muted = muted;
    },
    add: async (conv, user) => {
      const answer = await this.server('POST', `/v1/conversations/${conv.id}/members`, { userIds: [user] });
      if (conv.deleted) return void assertError(answer, 404, 'not_found');
      if (conv.type === 'direct') return void assertError(answer, 400, 'invalid_request');
      if (conv.members.has(user)) return void assertError(answer, 409, 'already_member');
      assert.equal(answer.status, 200);
      this.model.join(conv, user);
    },
    remove: (conv, user) => this.#leave(conv, user, this.server, false),
    leave: (conv, user) => this.#leave(conv, user, this.#as(user), true),
    role: async (conv, user, _message, step) => {
      const role = step.other % 2 ? 'owner' : 'member';
      const answer = await this.server('PATCH', `/v1/conversations/${conv.id}/members/${user}`, { role });
      if (conv.deleted) return void assertError(answer, 404, 'not_found');
      if (conv.type === 'direct') return void assertError(answer, 400, 'invalid_request');
      const member = conv.members.get(user);
      if (!member) return void assertError(answer, 404, 'not_found');
      if (member.role === role) return;
      member.role = role;
      this.model.append(conv, 'member.updated');
    },
    rename: async (conv, _user, _message, step) => {
      const name = `name ${step.other % 3}`;
      const answer = await this.server('PATCH', `/v1/conversations/${conv.id}`, { name });
      if (conv.deleted) return void assertError(answer, 404, 'not_found');
      if (conv.name === name) return;
      conv.name = name;
      this.model.append(conv, 'conversation.updated');
    },
    deleteConversation: async (conv) => {
      assert.equal((await this.server('DELETE', `/v1/conversations/${conv.id}`)).status, 204);
      if (conv.deleted) return;
      conv.deleted = true;
      this.model.append(conv, 'conversation.deleted');
    },
  };

  /** One user of the world, member or not; sometimes everyone or here besides, sometimes nobody. */
  #mentions({ message, other }: Step): Named[] {
    const userId = this.users[other % this.users.length]!;
    const all: Named[] = message % 5 === 0 ? [{ type: message % 2 ? 'everyone' : 'here' }] : [];
    return message % 2 === 0 ? all : [{ type: 'user', userId }, ...all];
  }

  #as(user: string): Api {
    return this.clients.get(user)!;
  }

  /** False when the caller was rightly refused. */
  #allowed(conv: ModelConversation, user: string, answer: Awaited<ReturnType<Api>>): boolean {
    if (conv.deleted) assertError(answer, 404, 'not_found');
    else if (!conv.members.has(user)) assertError(answer, 403, 'not_member');
    else {
      assert.ok(answer.status < 300, JSON.stringify(answer.body));
      return true;
    }
    return false;
  }

  async #createGroup(step: Step, user: string, other: string): Promise<void> {
    const byServer = step.conv % 2 === 0;
    const members = [...new Set([user, other])];
    const owner = byServer ? (step.message % 2 ? user : null) : user;
    const { status, body } = await (byServer ? this.server : this.#as(user))('POST', '/v1/conversations', {
      type: 'group',
      members,
      ...(byServer && owner ? { ownerId: owner } : {}),
    });
    assert.equal(status, 201);
    this.model.create((body as Conversation).id, 'group', members, owner);
  }

  async #createDirect(user: string, other: string): Promise<void> {
    const answer = await this.#as(user)('POST', '/v1/conversations', { type: 'direct', members: [other] });
    if (user === other) return void assertError(answer, 400, 'invalid_request');
    const { id } = answer.body as Conversation;
    const found = this.model.conversations.find(
      (c) => c.type === 'direct' && c.members.has(user) && c.members.has(other),
    );
    assert.equal(answer.status, found && !found.deleted ? 200 : 201);
    if (!found) this.model.create(id, 'direct', [user, other], null);
    else {
      assert.equal(id, found.id);
      if (found.deleted) {
        found.deleted = false;
        this.model.append(found, 'conversation.created');
      }
    }
  }

  async #edit(
    conv: ModelConversation,
    user: string,
    message: ModelMessage | undefined,
    step: Step,
    off: number,
  ): Promise<void> {
    if (!message) return;
    const byServer = step.other % 2 === 0;
    const text = `t${++this.#texts}`;
    // Every second edit says anew whom it mentions.
    const mentions =
      step.conv % 2 === 0
        ? this.#mentions(step).filter((m) => isUser(m) || (byServer && conv.type === 'group'))
        : undefined;
    const answer = await (byServer ? this.server : this.#as(user))('PATCH', `/v1/messages/${message.id}`, {
      text,
      expectedVersion: message.version + off,
      ...(mentions ? { mentions } : {}),
    });
    if (conv.deleted || message.deleted === 'hard') return void assertError(answer, 404, 'not_found');
    if (!byServer && !conv.members.has(user)) return void assertError(answer, 403, 'not_member');
    if (!byServer && message.sender !== user) return void assertError(answer, 403, 'forbidden');
    if (message.deleted) return void assertError(answer, 404, 'not_found');
    if (off) return void assertError(answer, 409, 'version_conflict');
    assert.equal(answer.status, 200);
    message.text = text;
    message.version++;
    if (mentions) this.model.mention(conv, message, namesOf(mentions), isForAll(mentions));
    this.model.append(conv, 'message.updated', message);
  }

  async #leave(conv: ModelConversation, user: string, api: Api, self: boolean): Promise<void> {
    const answer = await api('DELETE', `/v1/conversations/${conv.id}/members/${user}`);
    if (conv.deleted) return void assertError(answer, 404, 'not_found');
    if (self && !conv.members.has(user)) return void assertError(answer, 403, 'not_member');
    if (conv.type === 'direct') return void assertError(answer, 400, 'invalid_request');
    if (!conv.members.has(user)) return void assertError(answer, 404, 'not_found');
    assert.equal(answer.status, 204);
    this.model.leave(conv, user);
  }
}
