import type { Api, ConversationChange, Edit } from '../api.ts';
import { asError, isGone, ParleyError } from '../errors.ts';
import type { ErrorInfo } from '../errors.ts';
import type { Extension, ExtensionHost } from '../features/conversation.ts';
import type { PinsSnapshot } from '../features/pins.ts';
import type { Action, Rules } from '../features/rules.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { Draft } from '../outbox/storage.ts';
import { Derived, Lazy } from '../store.ts';
import type { Store } from '../store.ts';
import { GapRepair } from '../sync/gap-repair.ts';
import type {
  Attachment,
  EphemeralFrames,
  EventFrame,
  Member,
  Message,
  MessageOrTombstone,
} from '../types.ts';
import type { UploadFile, UploadOptions, Uploads } from '../features/uploads.ts';
import { Members } from './members.ts';
import { entryItem, serverItem } from './message-item.ts';
import type { MessageItem, MessagesSnapshot } from './message-item.ts';
import { MessageWindow } from './message-window.ts';
import type { Told } from './told.ts';
import { Typing } from './typing.ts';

/** What a conversation needs from its client. */
export interface ConversationHost extends ExtensionHost {
  api: Api;
  outbox: Outbox;
  uploads: Uploads;
  random(): number;
  /** The message, marked if the user blocks its sender. */
  marked(item: MessageItem): MessageItem;
  events(cid: string, after: number): Promise<{ data: EventFrame[]; hasMore: boolean }>;
  sendTyping(cid: string, state: 'start' | 'stop'): void;
  markRead(cid: string, seq?: number): void;
  send(cid: string, draft: string | Draft): MessageItem;
  /** An event, in its order in the stream. */
  onEvent(event: EventFrame): void;
  /** Messages of others have arrived, and everything up to `seq` is known. */
  onCaughtUp(cid: string, seq: number): void;
  onGone(cid: string, error: ErrorInfo): void;
  onClose(cid: string): void;
}

const pageSize = 50;
const maxKeys = 1_000;
/** Methods that load the module in which they are. */
const extensions =
  'react unreact reactors vote closePoll pin unpin setRole silence ban unrestrict restrictions mute unmute setLevel setRules createInvite invites revokeInvite can';

/** An open conversation: its window follows the stream until `close`. */
export class ConversationHandle {
  readonly id: string;
  readonly messages: Store<MessagesSnapshot>;
  readonly members: Store<readonly Member[]>;
  readonly typing: Store<readonly string[]>;
  /** The pinned messages, which are loaded when somebody first looks. */
  readonly pins: Store<PinsSnapshot>;
  /** From when on the user may send again (slow mode, a silence), in milliseconds; Infinity: never. Null: now, as far as is known. */
  readonly sendableAt: Store<number | null>;
  /** The rules of the group, and what the user may do here; empty until somebody looks and they are loaded. */
  readonly rules: Store<Rules>;
  readonly allowed: Store<readonly Action[]>;
  #host: ConversationHost;
  #window: MessageWindow;
  #gap: GapRepair<EventFrame>;
  #members = new Members();
  #typing: Typing;
  #store: Derived<MessagesSnapshot>;
  #status: MessagesSnapshot['status'] = 'loading';
  #error: ParleyError | undefined;
  #views = new WeakMap<MessageOrTombstone, MessageItem>();
  #keys = new Map<string, string>();
  #unacked = false;
  /** Entries whose event came before their ack; false if it may be the event of another message. */
  #echoed = new Map<string, boolean>();
  #loading: { older?: Promise<void>; newer?: Promise<void> } = {};
  #extension: Lazy<Extension>;

  constructor(id: string, host: ConversationHost) {
    this.id = id;
    this.#host = host;
    this.messages = this.#store = new Derived(() => this.#snapshot());
    this.members = this.#members.store;
    this.#typing = new Typing(host.clock, (state) => host.sendTyping(id, state));
    this.typing = this.#typing.store;
    const changed = () => this.#store.touch();
    this.#extension = new Lazy(async () =>
      (await import('../features/conversation.ts')).extend(host, this, this.#window, changed),
    );
    // Without the module the next event tries again.
    this.#window = new MessageWindow(host.me, () => void this.#extension.bind().then(changed, () => {}));
    this.#extension.lend(this, extensions);
    this.pins = this.#extension.store('pins', { items: [], status: 'loading' });
    this.sendableAt = this.#extension.store('sendable', null);
    this.rules = this.#extension.store('rules', {} as Rules);
    this.allowed = this.#extension.store('allowed', []);
    this.#gap = new GapRepair({
      clock: host.clock,
      random: host.random,
      fetch: (after) => this.#member(() => host.events(id, after)),
      reload: () => this.#member(() => this.#reload()),
      failed: (error) => {
        if (this.#status !== 'loading') return;
        this.#error = error;
        this.#store.touch();
      },
      apply: (event) => this.#apply(event),
      onProgress: () => this.#progress(),
      onGone: (error) => host.onGone(id, error),
    });
  }

  // Methods for the application.

  /** The message is shown at once as pending, and is sent as soon as possible. */
  send(draft: string | Draft): MessageItem {
    return this.#host.send(this.id, draft);
  }
  /** Uploads a file. Put the attachment's id into a message: `send({ attachments: [id] })`. */
  upload(file: UploadFile, options?: UploadOptions): Promise<Attachment> {
    return this.#host.uploads.upload(this.id, file, options);
  }
  retry(clientMsgId: string): boolean {
    return this.#host.outbox.retry(clientMsgId);
  }
  discard(clientMsgId: string): boolean {
    return this.#host.outbox.discard(clientMsgId);
  }
  /** `expectedVersion` is the version shown, unless given; a conflict rejects with `version_conflict`. */
  async edit(
    messageId: string,
    change: Omit<Edit, 'expectedVersion'> & { expectedVersion?: number },
  ): Promise<Message> {
    const shown = this.#window.items.find((m) => m.id === messageId) as Message | undefined;
    const expectedVersion = change.expectedVersion ?? shown?.version;
    if (expectedVersion === undefined)
      throw new ParleyError('not_found', 'The message is not in the window.');
    const message = await this.#host.api.editMessage(messageId, { ...change, expectedVersion });
    this.#upsert(message);
    return message;
  }
  async delete(messageId: string): Promise<void> {
    this.#upsert(await this.#host.api.deleteMessage(messageId));
  }
  /** Shows at once; resolves with the counts when it is committed, or rejects and is taken back. */
  declare react: Extension['react'];
  declare unreact: Extension['unreact'];
  /** The users who reacted with one emoji, or with any, newest first. */
  declare reactors: Extension['reactors'];
  /** Shows at once; resolves when it is committed, or rejects and is taken back. */
  declare pin: Extension['pin'];
  declare unpin: Extension['unpin'];
  /** Votes for these options of a message's poll, instead of those before; none takes the vote back. Shows at once. */
  declare vote: Extension['vote'];
  /** For the author of the message, owners and moderators. */
  declare closePoll: Extension['closePoll'];
  /** Marks messages as read up to `seq`, or all of them. */
  markRead(seq?: number): void {
    this.#host.markRead(this.id, seq);
  }
  /** Call this on every key press, and `stopTyping` on blur; sending a message stops it by itself. */
  startTyping(): void {
    this.#typing.start();
  }
  stopTyping(): void {
    this.#typing.stop();
  }

  loadOlder(): Promise<void> {
    const first = this.#window.items[0];
    if (!first || !this.#window.hasOlder) return Promise.resolve();
    return (this.#loading.older ??= this.#load(async () => {
      const page = await this.#host.api.messages(this.id, { before: first.seq, limit: pageSize });
      return () => this.#window.prepend(page.data, page.hasMore);
    }).finally(() => delete this.#loading.older));
  }
  loadNewer(): Promise<void> {
    const last = this.#window.items.at(-1);
    if (!last || !this.#window.hasNewer) return Promise.resolve();
    return (this.#loading.newer ??= this.#load(async () => {
      const page = await this.#host.api.messages(this.id, { after: last.seq, limit: pageSize });
      return () => this.#window.append(page.data, page.hasMore);
    }).finally(() => delete this.#loading.newer));
  }
  /** Moves the window to around a seq. */
  jumpTo(seq: number): Promise<void> {
    return this.#load(async () => {
      const limit = pageSize / 2;
      const [older, newer] = await Promise.all([
        this.#host.api.messages(this.id, { before: seq + 1, limit }),
        this.#host.api.messages(this.id, { after: seq, limit }),
      ]);
      return () => this.#window.replace([...newer.data, ...older.data], older.hasMore, newer.hasMore);
    });
  }
  /** Moves the window back to the newest messages. */
  async jumpToLatest(): Promise<void> {
    this.#gap.reload();
    await this.#gap.settled();
  }

  loadMembers(): Promise<readonly Member[]> {
    return this.#members.load((cursor) => this.#host.api.members(this.id, cursor));
  }
  addMembers = async (userIds: readonly string[]): Promise<void> =>
    void (await this.#host.api.addMembers(this.id, userIds));
  removeMember = (userId: string): Promise<void> => this.#host.api.removeMember(this.id, userId);
  /** Makes a member a moderator, or a moderator a member; for owners, where the environment allows it. */
  declare setRole: Extension['setRole'];
  /** The member reads everything and writes nothing until the end, or for ever; for owners and moderators. */
  declare silence: Extension['silence'];
  /** The user leaves, and cannot come back until the end. */
  declare ban: Extension['ban'];
  declare unrestrict: Extension['unrestrict'];
  /** The banned and silenced users of the conversation. */
  declare restrictions: Extension['restrictions'];
  declare setRules: Extension['setRules'];
  /** Makes a link by which users join, whose token is shown once; for owners and moderators. */
  declare createInvite: Extension['createInvite'];
  declare invites: Extension['invites'];
  declare revokeInvite: Extension['revokeInvite'];
  declare can: Extension['can'];
  async leave(): Promise<void> {
    const me = this.#host.me();
    if (me === null) throw new ParleyError('disconnected');
    await this.removeMember(me);
  }
  update = async (change: ConversationChange): Promise<void> =>
    void (await this.#host.api.updateConversation(this.id, change));
  declare mute: Extension['mute'];
  declare unmute: Extension['unmute'];
  /** Which messages are pushed to this user. `until` ends `none`; the level before holds again. */
  declare setLevel: Extension['setLevel'];
  /** Call this once for each `open`; after the last call the handle no longer follows the conversation. */
  close(): void {
    if (--this.refs !== 0) return;
    this.pause();
    this.#host.onClose(this.id);
  }

  // Methods for the client.

  /** @internal */
  refs = 0;
  /** @internal */
  push(event: EventFrame): void {
    this.#gap.push(event);
  }
  /** @internal */
  resume(): Promise<void> {
    const lastSeq = this.#host.list.lastSeq(this.id);
    if (this.#status === 'removed') {
      if (lastSeq === undefined) return Promise.resolve();
      this.#status = 'loading'; // The user was added again, so the stream starts over.
      this.#gap.reload();
    }
    this.#gap.resume();
    if (lastSeq !== undefined) this.#gap.reach(lastSeq);
    this.#extension.it?.retry();
    return this.#gap.settled();
  }
  /** @internal */
  pause(): void {
    this.#gap.pause();
    this.#typing.clear();
  }
  /** @internal */
  reload(): void {
    this.#gap.reload();
  }
  /** @internal */
  restart(): void {
    this.#gap.restart();
  }
  /** @internal */
  removed(): void {
    this.#status = 'removed';
    this.pause();
    this.#store.touch();
  }
  /** @internal */
  receiveTyping(userId: string, state: 'start' | 'stop'): void {
    this.#typing.receive(userId, state);
  }
  /** @internal */
  receiveReceipt(receipt: EphemeralFrames['receipt']): void {
    this.#members.receipt(receipt);
  }
  /** @internal */
  tell(what: Told): void {
    if (!this.#window.apply(what)) this.#gap.reload();
    this.#extension.it?.event(what);
    this.#store.touch();
  }
  /** @internal */
  outboxChanged(): void {
    this.#host.outbox.seen(this.id, this.#gap.lastSeq);
    this.#store.touch();
  }

  async #reload(): Promise<(wanted: boolean) => number> {
    const { api, list } = this.#host;
    // The page is requested after this seq is known, so it shows everything up to it.
    const position = list.lastSeq(this.id) ?? (await api.conversation(this.id)).lastSeq;
    const finish = this.#window.load();
    try {
      const page = await api.messages(this.id, { limit: pageSize }, 0);
      return (wanted) => {
        this.#unacked = true;
        this.#members.missed();
        this.#extension.it?.missed();
        finish(wanted ? () => this.#window.replace(page.data, page.hasMore, false) : null, true);
        return position;
      };
    } catch (e) {
      finish(null);
      throw e;
    }
  }

  /** A refusal from before the user was added again does not count. */
  async #member<T>(request: () => Promise<T>): Promise<T> {
    const started = this.#host.list.begin();
    try {
      return await request();
    } catch (e) {
      if (isGone(asError(e)) && this.#host.list.touchedSince(this.id, started))
        throw new ParleyError('network');
      throw e;
    }
  }

  async #load(request: () => Promise<() => void>): Promise<void> {
    const finish = this.#window.load();
    try {
      finish(await request());
      this.#store.touch();
    } catch (e) {
      finish(null);
      throw e;
    }
  }

  #apply(event: EventFrame): void {
    if (!this.#window.apply(event)) this.#gap.reload();
    this.#members.event(event);
    this.#extension.it?.event(event);
    if (event.e === 'message.new') {
      const { message } = event.d;
      this.#unacked ||= message.senderId !== this.#host.me();
      if (message.senderId !== null) this.#typing.receive(message.senderId, 'stop');
      // The event may arrive before the ack. The entry in flight is hidden until the ack tells which message it is. An event that is
      // read later names no clientMsgId: it may be that entry, too, as long as the answer is awaited.
      const sending = this.#host.outbox.inFlight(this.id);
      const { clientMsgId } = event.d;
      if (sending && message.senderId === this.#host.me()) {
        const same = clientMsgId === sending.clientMsgId;
        if (same || clientMsgId === undefined) this.#echoed.set(sending.clientMsgId, same);
      }
    }
    this.#store.invalidate();
    this.#host.onEvent(event);
  }

  #progress(): void {
    this.#status = 'ready';
    this.#error = undefined;
    this.#host.outbox.seen(this.id, this.#gap.lastSeq);
    if (this.#unacked) this.#host.onCaughtUp(this.id, this.#gap.lastSeq);
    this.#unacked = false;
    this.#extension.it?.retry();
    if (this.#members.stale) this.loadMembers().catch(() => {}); // The list stays stale, and the next progress tries again.
    this.#store.touch();
  }

  #upsert(message: MessageOrTombstone): void {
    this.#window.upsert(message);
    this.#store.touch();
  }

  #snapshot(): MessagesSnapshot {
    const { outbox } = this.#host;
    const waiting: MessageItem[] = [];
    for (const entry of outbox.entries(this.id)) {
      if (entry.id !== undefined) {
        this.#keys.set(entry.id, entry.clientMsgId);
        if (this.#keys.size > maxKeys) this.#keys.delete(this.#keys.keys().next().value!);
      }
      const error = outbox.errorOf(entry);
      if (error || entry.status === 'sent') this.#echoed.delete(entry.clientMsgId);
      const hidden = this.#echoed.get(entry.clientMsgId) ?? null;
      if (hidden === null || (!hidden && outbox.inFlight(this.id) !== entry))
        waiting.push(entryItem(entry, this.#host.me(), error));
    }
    const items = this.#window.items.map((m) => {
      let view = this.#views.get(m);
      if (!view) this.#views.set(m, (view = serverItem(m, this.#keys.get(m.id))));
      return this.#host.marked(this.#extension.it?.show(view) ?? view);
    });
    const { hasOlder, hasNewer } = this.#window;
    return {
      items: [...items, ...waiting],
      hasOlder,
      hasNewer,
      status: this.#status,
      ...(this.#error && { error: this.#error }),
    };
  }
}
