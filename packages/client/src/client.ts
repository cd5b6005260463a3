import type { Client, ClientEvents, ClientOptions, ConversationEvent } from './client-types.ts';
import { createApi } from './api.ts';
import type { Api } from './api.ts';
import { systemClock } from './clock.ts';
import { Connection } from './connection/connection.ts';
import type { ConnectionState } from './connection/connection.ts';
import { TokenRefresh } from './connection/token-refresh.ts';
import { Tokens } from './connection/tokens.ts';
import { browserWake } from './connection/wake.ts';
import { Conversations } from './conversations.ts';
import { Emitter } from './emitter.ts';
import { asError, ParleyError } from './errors.ts';
import type { ErrorInfo } from './errors.ts';
import type { ClientExtension } from './features/client.ts';
import type { Uploads } from './features/uploads.ts';
import { Http, responseError } from './http.ts';
import { memoryStorage } from './outbox/memory.ts';
import { Outbox } from './outbox/outbox.ts';
import type { SendResult } from './outbox/outbox.ts';
import type { Draft, OutboxEntry } from './outbox/storage.ts';
import { randomId, utf8Length } from './random-id.ts';
import { ConversationList } from './state/conversation-list.ts';
import { ConversationHandle } from './state/conversation.ts';
import type { ConversationHost } from './state/conversation.ts';
import { entryItem } from './state/message-item.ts';
import type { MessageItem } from './state/message-item.ts';
import { Presence } from './state/presence.ts';
import { Users } from './state/users.ts';
import { Lazy, Value } from './store.ts';
import { Delivered } from './sync/delivered.ts';
import { Reads } from './sync/reads.ts';
import { SavedList } from './sync/saved-list.ts';
import { Syncer } from './sync/syncer.ts';
import type { EventFrame, Hello, MessageOrTombstone, NotificationLevel, ServerFrame } from './types.ts';

const catchUpMs = 10_000;
/** Applications get `conversationId` instead of the wire's short `cid`. */
const named = <T extends { cid: string }>({ cid, ...rest }: T) => ({ conversationId: cid, ...rest });

export function createClient(options: ClientOptions): Client {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  const newId = options.newId ?? randomId;
  const url = options.url.replace(/\/+$/, '');
  const query = [
    ...(options.env === undefined ? [] : [`env=${encodeURIComponent(options.env)}`]),
    `sdk=${encodeURIComponent(options.sdk ?? 'parley-js/0.1.0')}`,
  ].join('&');
  const realtimeUrl = `${(options.realtimeUrl ?? url).replace(/\/+$/, '').replace(/^ws/, 'http')}/v1`;
  const address = realtimeUrl.replace(/^http/, 'ws');
  const Socket = options.WebSocket ?? (globalThis.WebSocket as ClientOptions['WebSocket']);
  if (!Socket)
    throw new ParleyError('no_websocket', 'No WebSocket here: pass one as `WebSocket`, or use Node 22.');
  for (const at of [url, realtimeUrl])
    if (!/^https?:\/\/[^/]/.test(at)) throw new ParleyError('invalid_url', `Not an http or https URL: ${at}`);

  const events = new Emitter<ClientEvents>();
  const on: Client['on'] = (name, fn) => events.on(name, fn);
  const stateStore = new Value<ConnectionState>('idle');
  const tokens = new Tokens(options.token);
  const fetcher: typeof fetch = options.fetch ?? ((input, init) => fetch(input, init));
  const http = new Http({
    url,
    env: options.env,
    tokens,
    fetch: fetcher,
    clock,
    random,
    newId,
  });
  const api: Api = createApi(http);
  const uploads = new Lazy(async () =>
    (await import('./features/uploads.ts')).createUploads(http, { fetch: fetcher, clock, random }),
  ).lend({}, 'createUpload completeUpload attachmentUrl upload') as Uploads;
  const onError = (error: ParleyError) => events.emit('error', error);

  let me: string | null = null;
  let session = '';
  let features: readonly string[] | null = null;
  let clockOffset = 0;
  let maxFrameBytes = 16_384;
  const tooBig = new Set<string>();
  const open = new Map<string, ConversationHandle>();
  const openUser = async (user: string) => {
    list.me = me = user;
    await saved?.open(user);
    await outbox.open(`${options.env ?? ''}/${user}/`);
  };

  const connection: Connection = new Connection({
    openSocket: () => new Socket(`${address}?${query}`, ['chat.v1']),
    address,
    diagnose: () =>
      fetcher(realtimeUrl)
        .then(async (r) => responseError(r.status, await r.text()), asError)
        .then((e) => new ParleyError('network', `${address} opens no socket: ${e.message}`, e)),
    tokens,
    clock,
    random,
    onHello,
    probe: (timeoutMs) => syncer.now(timeoutMs),
    onFrame,
    onLost,
    onState: (state, error) => {
      stateStore.set(state);
      events.emit('state', { state, error });
    },
    onError,
  });

  const outbox = new Outbox({
    storage: options.storage ?? memoryStorage(),
    clock,
    random,
    newId,
    send: sendEntry,
    onChange: (cid) => {
      const conversation = open.get(cid);
      if (conversation) conversation.outboxChanged();
      else outbox.seen(cid, Infinity);
    },
    onEnd: (entry) => {
      tooBig.delete(entry.clientMsgId);
      if (entry.status === 'sent') list.read(entry.conversationId, entry.seq!);
      events.emit(entry.status === 'sent' ? 'sent' : 'failed', item(entry));
    },
    onError,
  });
  const item = (entry: OutboxEntry) => entryItem(entry, me, outbox.errorOf(entry));

  const list = new ConversationList({
    byMessage: options.sort === 'message',
    doubt: () => syncer.soon(),
    readPending: (cid) => reads.has(cid),
    wentBack: (cid) => {
      open.get(cid)?.restart();
      followers?.wentBack();
    },
    levelEnds: () => extend((e) => void e.levelEnds()),
    mentions: isForMe,
    now: () => new Date(clock.now() + clockOffset).toISOString(),
  });
  const syncer = new Syncer({
    clock,
    random,
    request: (cursor, timeoutMs) => connection.request('sync', { cursor }, timeoutMs),
    begin: () => list.begin(),
    apply: (result, started, thorough) => {
      for (const cid of list.applySync(result, started, thorough)) drop(cid);
      if (result.fullReload) {
        conversations.reset();
        for (const conversation of open.values()) conversation.restart();
        followers?.wentBack();
      }
      for (const conversation of open.values()) void conversation.resume();
    },
    details: async () => {
      await conversations.refresh().catch(onError);
      followers?.synced();
    },
  });
  const followers =
    options.catchUp?.({ clock, random, list, fetch: api.events, onEvent: emitEvent, onError }) ?? null;
  const saved = options.storage
    ? new SavedList({
        storage: options.storage,
        env: options.env,
        clock,
        list,
        syncer,
        followers,
        conversations: () => conversations,
        onError,
      })
    : null;
  const delivered = new Delivered(clock, (items) => connection.send('delivered', { items }));
  const reads = new Reads({
    clock,
    send: (cid, seq) => connection.request('read', { cid, seq }),
    onDone: (cid) => list.readDone(cid),
    onError,
  });
  const users = new Users(api);
  const presence = new Presence(async (userIds) =>
    connection.ready ? connection.request('presence.watch', { userIds }) : { presence: [] },
  );
  const tokenRefresh = new TokenRefresh({
    clock,
    random,
    refresh: async () => {
      const token = await tokens.refresh(connection.token);
      await connection.request('token.refresh', { token });
      connection.token = token;
    },
    onError,
  });

  const host: ConversationHost = {
    api,
    list,
    outbox,
    uploads,
    clock,
    random,
    me: () => me,
    features: () => features,
    check,
    marked: (item) => extension.it?.mark(item) ?? item,
    on,
    clockOffset: () => clockOffset,
    http: (...args) => http.call(...args),
    sendTyping: (cid, state) => void connection.send('typing', { cid, state }),
    markRead,
    send,
    events: api.events,
    onEvent: followers ? () => {} : emitEvent,
    onCaughtUp: (cid, seq) => {
      list.contiguous(cid, seq);
      delivered.mark(cid, seq);
    },
    onGone: (cid, error) => drop(cid, { code: error.code, message: error.message }),
    onClose: (cid) => {
      open.delete(cid);
      outbox.seen(cid, Infinity);
    },
  };
  const conversations = new Conversations({
    api,
    list,
    open: (cid) => {
      let conversation = open.get(cid);
      if (!conversation) {
        open.set(cid, (conversation = new ConversationHandle(cid, host)));
        if (connection.ready) void conversation.resume();
      }
      conversation.refs++;
      return conversation;
    },
    markRead,
    send,
    soon: (failure) => syncer.soon(failure),
  });

  const extension = new Lazy(async () =>
    (await import('./features/client.ts')).extend({
      ...host,
      on,
      enter: conversations.enter,
      isOn: () => connection.ready,
      onError,
      soon: () => syncer.soon(),
      changed: () => {
        for (const conversation of open.values()) conversation.outboxChanged();
      },
    }),
  );
  const extend = (run: (it: ClientExtension) => void): void => void extension.bind().then(run).catch(onError);
  extension.lend(conversations, 'join discover');
  let unwake: (() => void) | null = null;

  /** sdk#procedure: `connected` when it resolves. */
  async function onHello(hello: Hello): Promise<void> {
    if (session) users.stale();
    session = hello.sessionId;
    features = hello.features ?? [];
    list.defaultLevel = (hello.defaultLevel ?? 'all') as NotificationLevel;
    // A user without personal changes blocks nobody.
    if (hello.personalRev) extend((e) => e.hello(hello.personalRev!));
    clockOffset = Date.parse(hello.serverTime) - clock.now();
    maxFrameBytes = hello.limits.maxFrameBytes;
    await openUser(hello.userId);
    outbox.online();
    reads.online();
    delivered.start();
    if (presence.watching) presence.refresh().catch(onError);
    await syncer.start(hello.storeEpoch);
    let timer: unknown;
    const timeout = new Promise<void>((resolve) => (timer = clock.setTimeout(resolve, catchUpMs)));
    await Promise.race([Promise.all([...open.values()].map((c) => c.resume())), timeout]);
    clock.clearTimeout(timer);
  }

  function onLost(code: number): void {
    if (code === 1009) {
      // sdk#closes: that frame is not sent again; REST accepts messages that are too large for a frame.
      for (const cid of outbox.conversationsInFlight()) tooBig.add(outbox.inFlight(cid)!.clientMsgId);
    }
    outbox.offline();
    reads.offline();
    syncer.stop();
    delivered.stop();
    tokenRefresh.stop();
    followers?.pause();
    void saved?.flush();
    for (const conversation of open.values()) conversation.pause();
  }

  function onFrame(frame: ServerFrame): void {
    switch (frame.t) {
      case 'event':
        return onEvent(frame);
      case 'receipt': {
        const { cid, userId, lastReadSeq } = frame.d;
        if (userId === me && lastReadSeq !== undefined) list.read(cid, lastReadSeq);
        open.get(cid)?.receiveReceipt(frame.d);
        return events.emit('receipt', named(frame.d));
      }
      case 'typing':
        open.get(frame.d.cid)?.receiveTyping(frame.d.userId, frame.d.state);
        return events.emit('typing', named(frame.d));
      case 'presence':
        presence.receive(frame.d);
        return events.emit('presence', frame.d);
      case 'reaction.own':
        return open.get(frame.d.cid)?.tell({ e: 'reaction.own', d: frame.d });
      case 'personal':
        extend((e) => e.personal(frame.d));
        return events.emit('personal', frame.d);
      case 'user.updated':
        return users.receive([frame.d.user]);
      case 'resync_required':
        open.get(frame.d.cid)?.reload();
        list.markStale(frame.d.cid);
        return syncer.soon();
      case 'resync_hint':
        if (presence.watching) presence.refresh().catch(onError);
        return void syncer.now(undefined, true).catch(() => syncer.soon());
      case 'token_expiring':
        return tokenRefresh.expiring();
      default:
        events.emit('frame', frame as { t: string; d: unknown });
    }
  }

  function onEvent(event: EventFrame): void {
    const { cid, seq } = event;
    const known = list.lastSeq(cid) !== undefined;
    const sending = outbox.inFlight(cid);
    const ours =
      event.e === 'message.new' && sending !== undefined && event.d.clientMsgId === sending.clientMsgId;
    const applied = list.applyEvent(event, ours);
    const conversation = open.get(cid);
    if (applied && !known) events.emit('conversation', { conversationId: cid, change: 'added' });
    if (
      applied &&
      (event.e === 'conversation.deleted' || (event.e === 'member.removed' && event.d.userId === me))
    ) {
      if (followers) followers.end(event);
      else emitEvent(event);
      return drop(cid);
    }
    followers?.push(event);
    if (conversation) {
      conversation.push(event);
      if (!known) void conversation.resume();
    } else if (applied) {
      if (!followers) emitEvent(event);
      const fromOther = event.e === 'message.new' && event.d.message.senderId !== me;
      if (fromOther && applied.contiguous) delivered.mark(cid, seq);
    }
    // Another tab may have sent the message that waits here too.
    if (event.e === 'message.new' && event.d.message.senderId === me) outbox.flush(cid);
  }

  function emitEvent(event: EventFrame): void {
    const { cid: conversationId, seq, e: type, d: data } = event;
    events.emit('event', { conversationId, seq, type, data } as ConversationEvent);
    if (event.e === 'message.reactions') events.emit('reaction', { conversationId, seq, data: event.d });
    if (event.e !== 'message.new') return;
    const { message } = event.d;
    events.emit('message', { conversationId, seq, message });
    if (isForMe(message)) events.emit('mention', { conversationId, seq, message });
  }

  function drop(cid: string, error?: ErrorInfo): void {
    list.remove(cid);
    reads.drop(cid);
    delivered.drop(cid);
    followers?.drop(cid);
    open.get(cid)?.removed();
    events.emit('conversation', { conversationId: cid, change: 'removed', ...(error ? { error } : {}) });
  }

  /** Whether the message of somebody else is for this user, by name or for all. */
  function isForMe({ senderId, mentions }: MessageOrTombstone): boolean {
    return (
      senderId !== me &&
      !extension.it?.isBlocked(senderId) &&
      !!mentions?.some(({ type, userId }) => type !== 'user' || userId === me)
    );
  }

  function markRead(cid: string, seq?: number): void {
    const lastSeq = list.lastSeq(cid);
    if (lastSeq === undefined) return;
    const mark = Math.min(seq ?? lastSeq, lastSeq);
    if (list.read(cid, mark)) reads.mark(cid, mark);
  }

  function check(feature: string): void {
    if (features?.includes(feature) === false)
      throw new ParleyError('feature_disabled', `${feature} is off in this environment.`);
  }

  function send(cid: string, draft: string | Draft): MessageItem {
    let given = typeof draft === 'string' ? { text: draft } : draft;
    const { poll, mentions } = given;
    if (mentions) check('mentions');
    if (poll) {
      check('polls');
      const options = poll.options.map((option, i) => ({ id: i + 1, ...option }));
      given = {
        text: poll.question,
        ...given,
        poll: { multiple: false, anonymous: false, ...poll, options },
      };
    }
    const entry = outbox.add(cid, given);
    open.get(cid)?.stopTyping();
    return item(entry);
  }

  async function sendEntry(entry: OutboxEntry): Promise<SendResult> {
    const { clientMsgId, conversationId: cid, draft } = entry;
    const d = { cid, clientMsgId, ...draft };
    const frame = JSON.stringify({ t: 'message.send', id: Number.MAX_SAFE_INTEGER, d });
    if (utf8Length(frame) > maxFrameBytes || tooBig.has(clientMsgId)) {
      const { id, seq, createdAt } = await api.sendMessage(entry);
      return { id, seq, createdAt };
    }
    return connection.request('message.send', d);
  }

  const own: Omit<Client, 'report' | 'acceptInvite' | 'previewInvite'> = {
    get state() {
      return connection.state;
    },
    get userId() {
      return me;
    },
    get features() {
      return features;
    },
    stateStore,
    conversations,
    mentions: extension.store('mentions', { items: [], hasMore: false, status: 'loading' }, 'load loadMore'),
    blocks: extension.store('blocks', [], 'add remove'),
    presence,
    users,
    uploads,
    push: { add: api.addPushDevice, remove: api.removePushDevice },
    on,
    wire: {
      request: (t, d, ms) => connection.request(t, d, ms),
      http: (...args) => http.call(...args),
      session: () => session,
    },
    connect: () =>
      new Promise((resolve, reject) => {
        if (connection.state === 'connected') return resolve();
        // After a `disconnect` the next `connect` decides: React's StrictMode connects, disconnects and connects again.
        const off = events.on('state', ({ state, error }) => {
          if (state === 'connected') resolve();
          else if (state === 'failed') reject(error!);
          else return;
          off();
        });
        unwake ??= (options.wake ?? browserWake)(() => connection.wake());
        // Unsent messages are shown before the first hello if the token names the user.
        tokens.get().then(
          () => {
            if (tokens.user && !me) return openUser(tokens.user);
          },
          () => {},
        );
        connection.start();
      }),
    disconnect: () => {
      unwake?.();
      unwake = null;
      connection.stop();
      onLost(1000);
    },
  };
  return extension.lend(own, 'report acceptInvite previewInvite') as Client;
}
