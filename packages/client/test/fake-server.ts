import type { SocketLike } from '../src/connection/connection.ts';
import type { Clock } from '../src/clock.ts';
import type { ConversationRules, EventFrame, Message, MessageOrTombstone } from '../src/types.ts';

interface Conv {
  id: string;
  type: 'direct' | 'group';
  name: string | null;
  members: Map<
    string,
    {
      role: 'owner' | 'moderator' | 'member';
      lastReadSeq: number;
      lastDeliveredSeq: number;
      muted: boolean;
      activeAt: number;
    }
  >;
  events: EventFrame[];
  messages: MessageOrTombstone[];
  activeAt: number;
  createdAt: string;
}

export class Refusal extends Error {
  code: string;
  status: number;
  retryAfterMs: number | undefined;
  constructor(code: string, status = 400, retryAfterMs?: number) {
    super(code);
    this.code = code;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

export type Json = Record<string, any>;

/** Just enough of chat.v1 and its REST calls, in memory, with every answer in the hands of the test. */
export class FakeServer {
  clock: Clock;
  conversations = new Map<string, Conv>();
  sockets = new Set<FakeSocket>();
  /** Events at or below it are no longer kept. */
  floor = 0;
  epoch = 'life ';
  features = ['reactions', 'pins', 'mentions'];
  /** Throws a Refusal to refuse, `Error` to fail on the way; may delay. `after`: the work was done, the answer is lost. */
  onRest: (method: string, path: string, when: 'before' | 'after') => void | Promise<void> = () => {};
  onFrame: (socket: FakeSocket, frame: Json) => 'ignore' | void = () => {};
  /** Delay of frames to clients; equal delays keep their order. */
  latency: () => number = () => 0;
  frames: Json[] = [];
  requests: string[] = [];
  urls: string[] = [];
  protocols: string[] = [];
  accept: (token: string) => number | null = () => null;
  /** Tokens are the user's id, with anything after a `#`. */
  userOf: (token: string) => string = (token) => token.split('#')[0]!;
  #ids = 0;
  #dedup = new Map<string, MessageOrTombstone>();
  #removed = new Map<string, Map<string, number>>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  now = (): string => new Date(this.clock.now()).toISOString();

  // What happens to conversations.

  create(members: string[], id = `conv_${++this.#ids}`): string {
    const conv: Conv = {
      id,
      type: 'group',
      name: id,
      members: new Map(
        members.map((userId) => [
          userId,
          { role: 'member', lastReadSeq: 0, lastDeliveredSeq: 0, muted: false, activeAt: 0 },
        ]),
      ),
      events: [],
      messages: [],
      activeAt: 0,
      createdAt: this.now(),
    };
    this.conversations.set(id, conv);
    this.#event(conv, 'conversation.created', { conversation: this.#record(conv) });
    return id;
  }
  send(cid: string, senderId: string, d: Json): MessageOrTombstone {
    const conv = this.conv(cid, senderId);
    const key = `${cid} ${senderId} ${d.clientMsgId}`;
    const before = d.clientMsgId === undefined ? undefined : this.#dedup.get(key);
    if (before) return conv.messages.find((m) => m.id === before.id) ?? before;
    if ([...(d.text ?? '')].length > 5_000) throw new Refusal('text_too_long', 422);
    const message: Message = {
      id: `msg_${++this.#ids}`,
      conversationId: cid,
      seq: conv.events.length + 1,
      senderId,
      text: d.text ?? null,
      replyTo: d.replyTo ?? null,
      attachments: [],
      metadata: d.metadata ?? {},
      version: 1,
      createdAt: this.now(),
      editedAt: null,
      deletedAt: null,
    };
    conv.messages.push(message);
    if (d.clientMsgId !== undefined) this.#dedup.set(key, message);
    if (conv.members.has(senderId)) conv.members.get(senderId)!.lastReadSeq = message.seq;
    this.#event(
      conv,
      'message.new',
      d.clientMsgId === undefined ? { message } : { message, clientMsgId: d.clientMsgId },
    );
    return message;
  }
  edit(id: string, text: string): MessageOrTombstone {
    const [conv, at] = this.#find(id);
    const old = conv.messages[at] as Message;
    if (old.deletedAt) throw new Refusal('not_found', 404);
    const message = { ...old, text, version: old.version + 1, editedAt: this.now() };
    conv.messages[at] = message;
    this.#event(conv, 'message.updated', { message });
    return message;
  }
  delete(id: string, hard = false): MessageOrTombstone {
    const [conv, at] = this.#find(id);
    const { seq, senderId, conversationId, createdAt, deletedAt } = conv.messages[at]!;
    const stone = {
      id,
      conversationId,
      seq,
      senderId,
      text: null,
      attachments: [],
      createdAt,
      deletedAt: deletedAt ?? this.now(),
    } as unknown as MessageOrTombstone;
    if (hard) conv.messages.splice(at, 1);
    else conv.messages[at] = stone;
    if (hard || !deletedAt) this.#event(conv, 'message.deleted', { id, deletedAt: stone.deletedAt, hard });
    return stone;
  }
  pin(id: string, pinned: boolean, actorId: string | null = null): Json | undefined {
    const [conv, at] = this.#find(id);
    const { pinnedAt, pinnedBy, ...rest } = conv.messages[at] as Message;
    if (pinned === (pinnedAt !== undefined))
      return pinned ? { messageId: id, pinnedAt, pinnedBy } : undefined;
    const mark = { pinnedAt: this.now(), pinnedBy: actorId };
    conv.messages[at] = pinned ? { ...rest, ...mark } : rest;
    this.#event(conv, 'message.pinned', { id, pinned, actorId, at: mark.pinnedAt });
    return pinned ? { messageId: id, ...mark } : undefined;
  }
  rename(cid: string, name: string): void {
    const conv = this.conversations.get(cid)!;
    conv.name = name;
    this.#event(conv, 'conversation.updated', { changes: { name }, actorId: null });
  }
  setRules(cid: string, rules: ConversationRules): void {
    this.#event(this.conversations.get(cid)!, 'conversation.updated', { changes: { rules }, actorId: null });
  }
  addMember(cid: string, userId: string): void {
    const conv = this.conversations.get(cid)!;
    const lastReadSeq = conv.events.length + 1;
    conv.members.set(userId, { role: 'member', lastReadSeq, lastDeliveredSeq: 0, muted: false, activeAt: 0 });
    this.#removed.get(userId)?.delete(cid);
    this.#event(conv, 'member.added', { userIds: [userId], userId, actorId: null, via: 'added' });
  }
  removeMember(cid: string, userId: string): void {
    const conv = this.conversations.get(cid)!;
    this.#event(conv, 'member.removed', { userId, actorId: null, reason: 'removed' });
    conv.members.delete(userId);
    if (!this.#removed.has(userId)) this.#removed.set(userId, new Map());
    this.#removed.get(userId)!.set(cid, this.clock.now());
  }
  read(cid: string, userId: string, seq: number): Json {
    const conv = this.conv(cid, userId);
    const member = conv.members.get(userId)!;
    const mark = Math.min(seq, conv.events.length);
    if (mark > member.lastReadSeq) {
      member.lastReadSeq = mark;
      member.activeAt = this.clock.now();
      this.#tell(conv, { t: 'receipt', d: { cid, userId, lastReadSeq: mark } });
    }
    return { cid, lastReadSeq: member.lastReadSeq };
  }
  unread(conv: Conv, userId: string): number {
    const { lastReadSeq } = conv.members.get(userId)!;
    return conv.messages.filter((m) => m.senderId !== userId && !m.deletedAt && m.seq > lastReadSeq).length;
  }
  listItem(conv: Conv, userId: string): Json {
    const { lastReadSeq, muted } = conv.members.get(userId)!;
    const last = conv.messages.filter((m) => !m.deletedAt).at(-1) as Message | undefined;
    return {
      id: conv.id,
      type: conv.type,
      name: conv.name,
      metadata: {},
      lastSeq: conv.events.length,
      unreadCount: this.unread(conv, userId),
      lastReadSeq,
      muted,
      level: muted ? 'none' : 'all',
      lastMessage: last
        ? { id: last.id, seq: last.seq, senderId: last.senderId, text: last.text, createdAt: last.createdAt }
        : null,
      lastActivityAt: new Date(conv.activeAt).toISOString(),
      createdAt: conv.createdAt,
    };
  }
  of(userId: string): Conv[] {
    return [...this.conversations.values()]
      .filter((conv) => conv.members.has(userId))
      .sort((a, b) => b.activeAt - a.activeAt);
  }
  conv(cid: string, userId: string): Conv {
    const conv = this.conversations.get(cid);
    if (!conv) throw new Refusal('not_found', 404);
    if (!conv.members.has(userId)) throw new Refusal('not_member', 403);
    return conv;
  }

  // REST.

  fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input as string);
    const method = init.method ?? 'GET';
    const path = url.pathname.replace(/^\/v1/, '');
    this.requests.push(`${method} ${path}${url.search}`);
    const user = this.userOf((init.headers as Record<string, string>).authorization!.split(' ')[1]!);
    let body: unknown;
    let status = 200;
    try {
      await this.onRest(method, path, 'before');
      body = this.#rest(
        user,
        method,
        path.split('/').slice(1).map(decodeURIComponent),
        url.searchParams,
        init.body,
      );
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      status = e.status;
      body = {
        error: { type: '', code: e.code, message: e.code, requestId: 'req_1', retryAfterMs: e.retryAfterMs },
      };
    }
    const text = JSON.stringify(body);
    await this.onRest(method, path, 'after');
    return new Response(body === undefined ? null : text, { status: body === undefined ? 204 : status });
  };

  #rest(user: string, method: string, path: string[], query: URLSearchParams, raw: unknown): unknown {
    const body = (typeof raw === 'string' ? JSON.parse(raw) : {}) as Json;
    const limit = Number(query.get('limit') ?? 50);
    const [root, id = '', sub = ''] = path;
    if (root === 'conversations' && id === '' && method === 'POST')
      return this.#record(this.conv(this.create([user, ...(body.members as string[])]), user));
    if (root === 'conversations' && id === '') {
      const from = Number(query.get('cursor') ?? 0);
      const all = this.of(user);
      const nextCursor = all.length > from + limit ? String(from + limit) : null;
      return { data: all.slice(from, from + limit).map((c) => this.listItem(c, user)), nextCursor };
    }
    if (root === 'users')
      return {
        data: (body.userIds as string[])
          .filter((userId) => userId !== 'nobody')
          .map((userId) => ({ id: userId, name: userId[0]!.toUpperCase() + userId.slice(1) })),
      };
    if (root === 'messages') {
      const [conv] = this.#find(id);
      this.conv(conv.id, user);
      if (sub === 'pin') return this.pin(id, method === 'PUT', user);
      return method === 'PATCH' ? this.edit(id, body.text as string) : this.delete(id);
    }
    const conv = this.conv(id, user);
    switch (`${method} ${sub}`) {
      case 'GET ':
        return this.#record(conv);
      case 'POST messages':
        return this.send(id, user, body);
      case 'GET messages': {
        const before = Number(query.get('before') ?? Infinity);
        const after = query.get('after');
        if (after !== null) {
          const rest = conv.messages.filter((m) => m.seq > Number(after));
          return { data: rest.slice(0, limit).reverse(), hasMore: rest.length > limit };
        }
        const rest = conv.messages.filter((m) => m.seq < before);
        return { data: rest.slice(-limit).reverse(), hasMore: rest.length > limit };
      }
      case 'GET events': {
        const after = Number(query.get('after'));
        if (after < this.floor || conv.events.length - after > 1_000)
          throw new Refusal('resync_required', 410, 0);
        const rest = conv.events.filter((e) => e.seq > after);
        const data = rest.slice(0, limit).map((e) => ({ seq: e.seq, type: e.e, ...this.#now(conv, e) }));
        return { data, hasMore: rest.length > limit };
      }
      case 'GET pins': {
        const pinned = (conv.messages as Message[]).filter((m) => m.pinnedAt);
        return { data: pinned.sort((a, b) => (a.pinnedAt! < b.pinnedAt! ? 1 : -1)) };
      }
      case 'GET members':
        return { data: [...conv.members].map(([userId, m]) => ({ userId, ...m })), nextCursor: null };
      case 'PUT mute':
      case 'DELETE mute':
        Object.assign(conv.members.get(user)!, { muted: method === 'PUT', activeAt: this.clock.now() });
        return {
          conversationId: id,
          muted: method === 'PUT',
        };
    }
    throw new Refusal('not_found', 404);
  }

  /** Where the message of an event was deleted since, the event shows the tombstone. */
  #now(conv: Conv, { e, d }: EventFrame): Json {
    if (e !== 'message.new' && e !== 'message.updated') return d;
    const now = conv.messages.find((m) => m.id === d.message.id);
    return {
      message:
        now && !now.deletedAt ? d.message : (now ?? { ...d.message, text: null, deletedAt: this.now() }),
    };
  }

  /** The store goes back to where the conversation had so many events, and nobody was active since. */
  restore(cid: string, lastSeq: number): void {
    const conv = this.conversations.get(cid)!;
    conv.events.splice(lastSeq);
    conv.messages = conv.messages.filter((m) => m.seq <= lastSeq);
    conv.activeAt = 0;
    for (const member of conv.members.values()) {
      member.lastReadSeq = Math.min(member.lastReadSeq, lastSeq);
      member.activeAt = 0;
    }
    this.epoch += 'x';
    for (const socket of [...this.sockets]) socket.end(1012, '');
  }

  // The socket.

  WebSocket = (): new (url: string, protocols: string[]) => SocketLike => {
    const server = this;
    return class extends FakeSocket {
      constructor(url: string, protocols: string[]) {
        super(server);
        server.urls.push(url);
        server.protocols = protocols;
      }
    };
  };

  receive(socket: FakeSocket, frame: Json): void {
    if (frame.t !== 'hb') this.frames.push(frame);
    if (this.onFrame(socket, frame) === 'ignore') return;
    const d = frame.d as Json;
    if (frame.t === 'auth') {
      const refused = this.accept(d.token as string);
      if (refused !== null) return socket.end(refused, '');
      socket.user = this.userOf(d.token as string);
      return socket.push({
        t: 'hello',
        d: {
          sessionId: 'ses_1',
          userId: socket.user,
          serverTime: this.now(),
          heartbeatMs: 25_000,
          tokenExpiresAt: this.now(),
          limits: { maxFrameBytes: 16_384, sendsPerSecond: 10 },
          storeEpoch: this.epoch,
          features: this.features,
        },
      });
    }
    try {
      const ack = this.#run(socket.user, frame.t as string, d);
      if (ack) socket.push({ t: 'ack', re: frame.id, d: ack });
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      socket.push({ t: 'error', re: frame.id, code: e.code, message: e.code, retryAfterMs: e.retryAfterMs });
    }
  }

  #run(user: string, t: string, d: Json): Json | void {
    switch (t) {
      case 'message.send': {
        const m = this.send(d.cid as string, user, d) as Message;
        return { clientMsgId: d.clientMsgId, id: m.id, seq: m.seq, createdAt: m.createdAt ?? this.now() };
      }
      case 'read':
        return this.read(d.cid as string, user, d.seq as number);
      case 'sync': {
        // events#sync: activity later than the cursor minus 5 s.
        const since = d.cursor === null ? -Infinity : Date.parse(d.cursor as string) - 5_000;
        const active = (c: Conv) => Math.max(c.activeAt, c.members.get(user)!.activeAt) > since;
        return {
          conversations: this.of(user)
            .filter(active)
            .map((c) => ({ id: c.id, lastSeq: c.events.length, unreadCount: this.unread(c, user) })),
          removed: [...(this.#removed.get(user) ?? [])].filter(([, at]) => at > since).map(([cid]) => cid),
          cursor: this.now(),
          fullReload: false,
        };
      }
      case 'presence.watch':
        return {
          presence: (d.userIds as string[]).map((userId) => ({ userId, online: true, lastSeenAt: null })),
        };
      case 'token.refresh':
        return { expiresAt: this.now() };
      case 'typing':
        for (const socket of this.sockets)
          if (socket.user !== user)
            socket.push({ t: 'typing', d: { cid: d.cid, userId: user, state: d.state } });
        return;
      case 'delivered':
        for (const { cid, seq } of d.items as { cid: string; seq: number }[]) {
          const member = this.conversations.get(cid)?.members.get(user);
          if (member) member.lastDeliveredSeq = Math.max(member.lastDeliveredSeq, seq);
        }
    }
  }

  #event(conv: Conv, e: string, d: Json): void {
    conv.activeAt = Math.max(this.clock.now(), conv.activeAt + 1);
    const event = { t: 'event', e, cid: conv.id, seq: conv.events.length + 1, d } as EventFrame;
    conv.events.push(event);
    this.#tell(conv, event);
  }
  #tell(conv: Conv, frame: Json): void {
    for (const socket of this.sockets) if (conv.members.has(socket.user)) socket.push(frame);
  }
  #record(conv: Conv): Json {
    return {
      id: conv.id,
      type: conv.type,
      name: conv.name,
      metadata: {},
      lastSeq: conv.events.length,
      createdAt: conv.createdAt,
      members: [...conv.members].map(([userId, { role }]) => ({ userId, role })),
    };
  }
  #find(id: string): [Conv, number] {
    for (const conv of this.conversations.values()) {
      const at = conv.messages.findIndex((m) => m.id === id);
      if (at >= 0) return [conv, at];
    }
    throw new Refusal('not_found', 404);
  }
}

export class FakeSocket implements SocketLike {
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  user = '';
  closedWith: number | null = null;
  #server: FakeServer;
  #dead = false;
  #last = 0;
  constructor(server: FakeServer) {
    this.#server = server;
    queueMicrotask(() => {
      if (this.closedWith !== null) return;
      server.sockets.add(this);
      (this.onopen as (() => void) | null)?.();
    });
  }
  send(data: string): void {
    const frame = JSON.parse(data) as Json;
    if (new TextEncoder().encode(data).length > 16_384) return this.end(1009, '');
    queueMicrotask(() => !this.#dead && this.#server.receive(this, frame));
  }
  close(code = 1000): void {
    this.closedWith = code;
    this.#dead = true;
    this.#server.sockets.delete(this);
  }
  /** In order, each after the server's latency. */
  push(frame: Json): void {
    if (this.#dead || this.user === '') return;
    const at = Math.max(this.#last, this.#server.clock.now() + this.#server.latency());
    this.#last = at;
    const data = JSON.stringify(frame);
    const deliver = () => !this.#dead && this.receive(data);
    if (at === this.#server.clock.now()) queueMicrotask(deliver);
    else this.#server.clock.setTimeout(deliver, at - this.#server.clock.now());
  }
  receive(data: string): void {
    (this.onmessage as ((event: { data: string }) => void) | null)?.({ data });
  }
  /** Closed by the server. */
  end(code: number, reason: string): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#server.sockets.delete(this);
    queueMicrotask(() => (this.onclose as ((event: object) => void) | null)?.({ code, reason }));
  }
}
