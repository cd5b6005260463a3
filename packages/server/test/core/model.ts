import type { EventName } from '@parley/protocol';

/** What the service should do, in the simplest way: everything in memory, nothing counted ahead. */

export interface ModelMessage {
  seq: number;
  id: string;
  sender: string | null;
  text: string;
  version: number;
  deleted: null | 'soft' | 'hard';
  /** Whom it names, members or not. */
  named: readonly string[];
  /** Those whom it concerns: who was a member when it named them. */
  mentions: Set<string>;
  forAll: boolean;
}

export type SentMessage = Pick<ModelMessage, 'id' | 'sender' | 'text'> &
  Partial<Pick<ModelMessage, 'named' | 'forAll'>>;

export interface ModelMember {
  role: 'owner' | 'member';
  lastReadSeq: number;
  muted: boolean;
}

export interface ModelConversation {
  id: string;
  type: 'direct' | 'group';
  name: string | null;
  deleted: boolean;
  members: Map<string, ModelMember>;
  /** Who left, and did not come back. */
  departed: Set<string>;
  /** seq is the index plus one. */
  events: { type: EventName; message?: ModelMessage }[];
  messages: ModelMessage[];
  /** The step of the model at which something last happened here. */
  active: number;
}

export class Model {
  conversations: ModelConversation[] = [];
  #step = 0;

  append(conv: ModelConversation, type: EventName, message?: ModelMessage): number {
    conv.active = ++this.#step;
    conv.events.push(message ? { type, message } : { type });
    return conv.events.length;
  }

  create(id: string, type: 'direct' | 'group', members: string[], owner: string | null): ModelConversation {
    const conv: ModelConversation = {
      id,
      type,
      name: null,
      deleted: false,
      members: new Map(
        members.map((user) => [
          user,
          { role: user === owner ? 'owner' : 'member', lastReadSeq: 0, muted: false },
        ]),
      ),
      departed: new Set(),
      events: [],
      messages: [],
      active: 0,
    };
    this.conversations.push(conv);
    this.append(conv, 'conversation.created');
    return conv;
  }

  /** @param own by the user itself, which reads everything up to it. */
  send(conv: ModelConversation, message: SentMessage, own: boolean) {
    const kept: ModelMessage = {
      named: [],
      forAll: false,
      ...message,
      seq: 0,
      version: 1,
      deleted: null,
      mentions: new Set(),
    };
    kept.mentions = new Set(kept.named.filter((user) => conv.members.has(user)));
    kept.seq = this.append(conv, 'message.new', kept);
    conv.messages.push(kept);
    if (own) conv.members.get(message.sender!)!.lastReadSeq = kept.seq;
    return kept;
  }

  join(conv: ModelConversation, user: string): void {
    const seq = this.append(conv, 'member.added');
    conv.members.set(user, { role: 'member', lastReadSeq: seq, muted: false });
    conv.departed.delete(user);
  }

  leave(conv: ModelConversation, user: string): void {
    this.append(conv, 'member.removed');
    conv.members.delete(user);
    conv.departed.add(user);
  }

  unread(conv: ModelConversation, user: string): number {
    const { lastReadSeq } = conv.members.get(user)!;
    return conv.messages.filter((m) => m.deleted === null && m.seq > lastReadSeq && m.sender !== user).length;
  }

  /** An edit that replaces whom the message mentions. */
  mention(conv: ModelConversation, message: ModelMessage, named: readonly string[], forAll: boolean): void {
    for (const user of message.named) if (!named.includes(user)) message.mentions.delete(user);
    for (const user of named)
      if (!message.named.includes(user) && conv.members.has(user)) message.mentions.add(user);
    Object.assign(message, { named, forAll });
  }

  mentionsUnread(conv: ModelConversation, user: string): number {
    const { lastReadSeq } = conv.members.get(user)!;
    return conv.messages.filter(
      (m) =>
        m.deleted === null && m.seq > lastReadSeq && m.sender !== user && (m.forAll || m.mentions.has(user)),
    ).length;
  }

  lastMessage(conv: ModelConversation): ModelMessage | undefined {
    return conv.messages.filter((m) => m.deleted === null).at(-1);
  }

  /** A user's conversations, newest activity first. */
  listOf(user: string): ModelConversation[] {
    return this.conversations
      .filter((c) => !c.deleted && c.members.has(user))
      .sort((a, b) => b.active - a.active);
  }

  removedOf(user: string): ModelConversation[] {
    return this.conversations.filter((c) => c.departed.has(user) || (c.deleted && c.members.has(user)));
  }
}
