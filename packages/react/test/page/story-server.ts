import type { ClientOptions } from '@parley/client';

/**
 * A service inside the page, for pictures and measurements: what it says is a function of the place in the conversation.
 * So a conversation of any length takes no memory, and its pages no time.
 */

type Json = Record<string, unknown>;

export interface Line {
  senderId: string;
  text: string;
  createdAt: string;
  replyTo?: string | null;
  attachments?: readonly Json[];
}
export interface Story {
  id: string;
  type: 'direct' | 'group';
  name: string | null;
  members: readonly string[];
  /** So many messages are there; the seq of the first is 1. */
  length: number;
  line(seq: number): Line;
  unread?: number;
  /** What the user has read to; all but the unread ones unless given. */
  lastRead?: number;
  muted?: boolean;
  /** How far the others have read; all of it unless given. */
  read?: number;
}

const maxSent = 200;

export class StoryServer {
  readonly stories: Map<string, Story>;
  /** What the user of the page wrote, by seq. */
  #sent = new Map<string, Line>();
  #sockets = new Set<StorySocket>();
  #reactions = new Map<string, readonly { userId: string; emoji: string }[]>();
  /** Events of a conversation that are no messages. */
  #others = new Map<string, number>();
  #me: string;
  #names: ReadonlyMap<string, string>;
  online = new Set<string>();
  /** Addresses of attachments, by id. */
  files = new Map<string, string>();
  offline = false;
  /** What asks for older messages, or more conversations, is refused with this code. */
  failing: string | null = null;
  /** A first page, of conversations or of messages, is refused with this code. */
  failingFirst: string | null = null;
  /** Where more conversations begin, if there are more. */
  cursor: string | null = null;
  /** Sockets are closed with this code when they say who they are. */
  refused: number | null = null;
  /** Messages are sent, and no answer comes. */
  silent = false;
  /** What `hello` names; undefined: the service is older than features. */
  features: readonly string[] | undefined;
  /** What was reported. */
  reports: Json[] = [];
  /** Sees each frame: `out` is what the page says. */
  watch: (way: 'out' | 'in', frame: Json) => void = () => undefined;
  /** Milliseconds until a page of messages is there. */
  latencyMs = 0;

  constructor(me: string, names: ReadonlyMap<string, string>, stories: readonly Story[]) {
    this.#me = me;
    this.#names = names;
    this.stories = new Map(stories.map((story) => [story.id, story]));
  }

  options = (): ClientOptions => ({
    url: 'http://story.test',
    env: 'env_story',
    token: () => this.#me,
    fetch: this.#fetch as typeof fetch,
    WebSocket: this.#socketClass(),
    wake: () => () => undefined,
  });

  /** A message arrives; `line` tells what it says. */
  arrive(id: string): void {
    const story = this.stories.get(id)!;
    const seq = ++story.length;
    this.#tell({ t: 'event', e: 'message.new', cid: id, seq, d: { message: this.#message(story, seq) } });
  }
  typing(cid: string, userId: string, state: 'start' | 'stop'): void {
    this.#tell({ t: 'typing', d: { cid, userId, state } });
  }
  /** A member reacts to a message. Messages that arrive afterwards would have the seq of this event. */
  react(messageId: string, userId: string, emoji: string): Json {
    const cid = messageId.slice('msg_'.length, messageId.lastIndexOf('_'));
    const all = [...(this.#reactions.get(messageId) ?? []), { userId, emoji }];
    this.#reactions.set(messageId, all);
    const counts = [...new Set(all.map((one) => one.emoji))].map((each) => {
      const userIds = all.filter((one) => one.emoji === each).map((one) => one.userId);
      return { emoji: each, count: userIds.length, userIds: userIds.slice(-3) };
    });
    const reactions = { revision: all.length, total: all.length, counts };
    const changes = [{ userId, emoji, on: true }];
    const d = { id: messageId, ...reactions, changes, more: false };
    this.#tell({ t: 'event', e: 'message.reactions', cid, seq: this.#next(cid), d });
    const own = all.filter((one) => one.userId === this.#me).map((one) => one.emoji);
    return { messageId, reactions: { ...reactions, own } };
  }
  /** A message is changed; what arrives afterwards would have the seq of this event. */
  edit(cid: string, seq: number, change: Partial<Line> & Json): void {
    const message = { ...this.#message(this.stories.get(cid)!, seq), ...change };
    this.#sent.set(`${cid} ${seq}`, message as unknown as Line);
    this.#tell({ t: 'event', e: 'message.updated', cid, seq: this.#next(cid), d: { message } });
  }
  #next(cid: string): number {
    const others = (this.#others.get(cid) ?? 0) + 1;
    this.#others.set(cid, others);
    return this.stories.get(cid)!.length + others;
  }
  /** Another member has read up to `seq`. */
  read(cid: string, userId: string, seq: number): void {
    this.#tell({ t: 'receipt', d: { cid, userId, lastReadSeq: seq } });
  }
  /** The last thing that happens in a group: what follows would have the same seq. */
  setRules(cid: string, rules: Json): void {
    const seq = this.stories.get(cid)!.length + 1;
    this.#tell({ t: 'event', e: 'conversation.updated', cid, seq, d: { changes: { rules }, actorId: null } });
  }
  cut(offline: boolean): void {
    this.offline = offline;
    if (offline) for (const socket of this.#sockets) socket.end();
  }

  #tell(frame: Json): void {
    for (const socket of this.#sockets) socket.push(frame);
  }
  #message(story: Story, seq: number): Json {
    const line = this.#sent.get(`${story.id} ${seq}`) ?? story.line(seq);
    return {
      id: `msg_${story.id}_${seq}`,
      conversationId: story.id,
      seq,
      replyTo: null,
      attachments: [],
      metadata: {},
      version: 1,
      editedAt: null,
      deletedAt: null,
      ...line,
    };
  }
  #item(story: Story): Json {
    const last = this.#message(story, story.length);
    return {
      id: story.id,
      type: story.type,
      name: story.name,
      metadata: {},
      lastSeq: story.length,
      unreadCount: story.unread ?? 0,
      lastReadSeq: story.lastRead ?? story.length - (story.unread ?? 0),
      muted: story.muted ?? false,
      lastMessage: { ...last, attachments: undefined },
      lastActivityAt: last['createdAt'],
      createdAt: '2026-01-01T00:00:00.000Z',
      ...(story.type === 'direct'
        ? { members: story.members.map((userId) => ({ userId, role: 'member' })) }
        : {}),
    };
  }
  #fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    if (this.offline) throw new TypeError('There is no network.');
    const url = new URL(input);
    if (this.latencyMs > 0) await new Promise((done) => setTimeout(done, this.latencyMs));
    const body = typeof init.body === 'string' ? (JSON.parse(init.body) as Json) : {};
    const [, root, id = '', sub = '', last = ''] = url.pathname.replace(/^\/v1/, '').split('/');
    if (this.failing !== null && (url.searchParams.has('before') || url.searchParams.has('cursor')))
      return Response.json({ error: { code: this.failing, message: 'Not now.' } }, { status: 503 });
    const list = root === 'conversations' && (id === '' || sub === 'messages');
    // For so long the client does not try again by itself.
    const error = { code: this.failingFirst, message: 'Not now.', retryAfterMs: 600_000 };
    if (this.failingFirst !== null && list && !url.searchParams.has('before'))
      return Response.json({ error }, { status: 503 });
    if (root === 'messages' && sub === 'reactions' && last === '')
      return Response.json({ data: this.#reactions.get(decodeURIComponent(id)) ?? [], nextCursor: null });
    if (root === 'messages' && sub === 'reactions')
      return Response.json(this.react(decodeURIComponent(id), this.#me, decodeURIComponent(last)));
    return Response.json(this.#answer(root!, decodeURIComponent(id), sub, url.searchParams, body));
  };
  #answer(root: string, id: string, sub: string, query: URLSearchParams, body: Json): Json {
    if (root === 'users')
      return {
        data: (body['userIds'] as string[]).map((one) => ({
          id: one,
          name: this.#names.get(one) ?? one,
          imageUrl: null,
          metadata: {},
        })),
      };
    if (root === 'reports') return (this.reports.push(body), { id: 'rep_1', status: 'open' });
    if (root === 'attachments')
      return { url: this.files.get(id) ?? '', expiresAt: new Date(Date.now() + 600_000).toISOString() };
    if (id === '')
      return {
        data: [...this.stories.values()].map((story) => this.#item(story)),
        nextCursor: query.has('cursor') ? null : this.cursor,
      };
    const story = this.stories.get(id)!;
    if (sub === 'members')
      return {
        data: story.members.map((userId) => ({
          userId,
          role: 'member',
          lastReadSeq: story.read ?? story.length,
          lastDeliveredSeq: story.length,
        })),
        nextCursor: null,
      };
    if (sub === 'messages') {
      const limit = Number(query.get('limit') ?? 50);
      const after = query.get('after');
      const before = Number(query.get('before') ?? story.length + 1);
      const from = after === null ? Math.max(1, before - limit) : Number(after) + 1;
      const to = after === null ? before - 1 : Math.min(story.length, from + limit - 1);
      const data = [];
      for (let seq = to; seq >= from; seq--) data.push(this.#message(story, seq));
      return { data, hasMore: after === null ? from > 1 : to < story.length };
    }
    return { data: [], hasMore: false };
  }
  run(socket: StorySocket, frame: Json): void {
    this.watch('out', frame);
    const d = (frame['d'] ?? {}) as Json;
    const now = new Date().toISOString();
    const ack = (data: Json): void => socket.push({ t: 'ack', re: frame['id'], d: data });
    switch (frame['t']) {
      case 'auth':
        if (this.refused !== null) return socket.end(this.refused);
        return socket.push({
          t: 'hello',
          d: {
            sessionId: 'ses_1',
            userId: this.#me,
            serverTime: now,
            heartbeatMs: 25_000,
            tokenExpiresAt: now,
            limits: { maxFrameBytes: 16_384, sendsPerSecond: 10 },
            storeEpoch: 'one',
            ...(this.features ? { features: this.features } : {}),
          },
        });
      case 'sync':
        return ack({
          conversations: [...this.stories.values()].map(({ id, length, unread = 0 }) => ({
            id,
            lastSeq: length,
            unreadCount: unread,
          })),
          removed: [],
          cursor: now,
          fullReload: false,
        });
      case 'presence.watch':
        return ack({
          presence: (d['userIds'] as string[]).map((userId) => ({
            userId,
            online: this.online.has(userId),
            lastSeenAt: null,
          })),
        });
      case 'read':
        return ack({ cid: d['cid'], lastReadSeq: d['seq'] });
      case 'message.send': {
        if (this.silent) return;
        const story = this.stories.get(d['cid'] as string)!;
        const seq = ++story.length;
        const key = `${story.id} ${seq}`;
        this.#sent.set(key, { senderId: this.#me, text: d['text'] as string, createdAt: now });
        if (this.#sent.size > maxSent) this.#sent.delete(this.#sent.keys().next().value!);
        const { clientMsgId } = d as { clientMsgId: string };
        const message = this.#message(story, seq);
        ack({ clientMsgId, id: message['id'], seq, createdAt: now });
        return this.#tell({
          t: 'event',
          e: 'message.new',
          cid: story.id,
          seq,
          d: { message, clientMsgId },
        });
      }
      default: // Heartbeats, delivery marks and typing need no answer.
    }
  }
  #socketClass() {
    const [server, sockets] = [this, this.#sockets];
    return class extends StorySocket {
      constructor() {
        super(server, sockets);
      }
    };
  }
}

class StorySocket {
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  #server: StoryServer;
  #sockets: Set<StorySocket>;
  constructor(server: StoryServer, sockets: Set<StorySocket>) {
    this.#server = server;
    this.#sockets = sockets;
    queueMicrotask(() => {
      if (server.offline) return this.end();
      sockets.add(this);
      (this.onopen as (() => void) | null)?.();
    });
  }
  send(data: string): void {
    const frame = JSON.parse(data) as Json;
    queueMicrotask(() => this.#server.run(this, frame));
  }
  push(frame: Json): void {
    this.#server.watch('in', frame);
    const data = JSON.stringify(frame);
    queueMicrotask(() => (this.onmessage as ((event: { data: string }) => void) | null)?.({ data }));
  }
  close(): void {
    this.#sockets.delete(this);
  }
  end(code = 1006): void {
    this.#sockets.delete(this);
    queueMicrotask(() => (this.onclose as ((event: object) => void) | null)?.({ code, reason: '' }));
  }
}
