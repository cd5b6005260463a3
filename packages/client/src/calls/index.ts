import type { Client } from '../client-types.ts';
import { Emitter } from '../emitter.ts';
import type { ParleyError } from '../errors.ts';
import { asError } from '../errors.ts';
import { Derived, Value } from '../store.ts';
import type { Store } from '../store.ts';
import type { Call, CallProducer, EndedHere } from '../types.ts';
import { CallHandle } from './call.ts';
import type { CallHost, JoinOptions, UnsupportedSource } from './host.ts';
import { listDevices, watchDevices } from './devices.ts';
import type { MediaDevice } from './devices.ts';
import { testRoutes } from './self-test.ts';
import type { RouteResult } from './self-test.ts';

/** Voice and video calls for `@parley/client`, in a separate entry point, so that pages that only chat do not load them. */

export interface StartOptions extends JoinOptions {
  kind: 'audio' | 'video';
  metadata?: Record<string, unknown>;
}

export interface CallsEvents {
  /** A call rings on this device. */
  incoming: CallHandle;
  /** Somebody sends a camera or a screen that this device cannot decode. */
  unsupported: UnsupportedSource;
  /** An error that ended no call: a camera that may not be used, or sound that the browser blocks. */
  error: ParleyError;
}

export interface Calls extends Store<readonly CallHandle[]> {
  on<K extends keyof CallsEvents>(name: K, fn: (value: CallsEvents[K]) => void): () => void;
  /** Calls the other members of a conversation, or joins the call that is already live there. */
  start(conversationId: string, options: StartOptions): Promise<CallHandle>;
  /** Joins a live call late, or again. */
  join(callId: string, options?: JoinOptions): Promise<CallHandle>;
  /** After a reload of the page: joins the call that it was in, if that is still live. */
  rejoin(options?: JoinOptions): Promise<CallHandle | null>;
  /** The running calls in this user's conversations, also calls that this device has not joined: it may join them late. */
  live: Store<readonly Call[]>;
  /** Calls of a conversation, newest first, including ended ones. */
  history(conversationId: string): Promise<Call[]>;
  /**
   * Tests which routes lead to the media server; `found` is called with each result as soon as it is known. Nobody is
   * called.
   */
  test(found?: (result: RouteResult) => void): Promise<RouteResult[]>;
  devices: { list(): Promise<MediaDevice[]>; watch(changed: () => void): () => void };
  /** Leaves every call and ignores further ones. */
  close(): void;
}

const maxLive = 100;
const markOf = (me: string): string => `parley.call.${me}`;

export function createCalls(client: Client): Calls {
  const { wire } = client;
  const events = new Emitter<CallsEvents>();
  const known = new Map<string, CallHandle>();
  const store = new Derived<readonly CallHandle[]>(() => [...known.values()]);
  const live = new Value<readonly Call[]>([]);
  /** What was heard while the list is on its way, which may be older; null if it is not. */
  let told: Call[] | null = null;
  const me = (): string => client.userId ?? '';

  /** A conversation has one live call; the newest reported calls are kept. */
  function heard(call: Call): void {
    const others = live.get().filter((one) => one.conversationId !== call.conversationId);
    // What ends may be an earlier call than the one that is known.
    const before = live.get().find((one) => one.conversationId === call.conversationId);
    told?.push(call);
    if (call.status !== 'ended') live.set([call, ...others].slice(0, maxLive));
    else if (before?.id === call.id) live.set(others);
  }
  const mark = globalThis.sessionStorage as Storage | undefined;

  const host: CallHost = {
    wire,
    me,
    online: () => client.state === 'connected',
    onError: (error) => events.emit('error', error),
    onUnsupported: (source) => events.emit('unsupported', source),
    onJoined: (id) => mark?.setItem(markOf(me()), id),
    onEnd: (id) => {
      if (mark?.getItem(markOf(me())) === id) mark.removeItem(markOf(me()));
      known.delete(id);
      store.touch();
    },
  };

  function add(call: Call, state: 'incoming' | 'connecting'): CallHandle {
    const handle = new CallHandle(host, call, state);
    known.set(call.id, handle);
    store.touch();
    return handle;
  }

  const mine = (call: Call): string | undefined => call.participants.find((p) => p.userId === me())?.state;

  function ring(call: Call): void {
    if (known.has(call.id) || call.status === 'ended' || mine(call) !== 'ringing') return;
    events.emit('incoming', add(call, 'incoming'));
  }

  /** Handles what rang or ended while there was no socket. */
  async function catchUp(): Promise<void> {
    const before = [...known];
    for (const [, call] of before) void call.resumed();
    const since: Call[] = (told = []);
    const { data } = await wire
      .http<{ data: Call[] }>('GET', '/calls', { query: { live: 'true', limit: maxLive } })
      .finally(() => {
        if (told === since) told = null;
      });
    live.set(data);
    for (const call of since) heard(call);
    // What was heard meanwhile is newer than the list, and a call that began meanwhile is not in it.
    const byId = new Map([...data, ...since].map((call) => [call.id, call]));
    for (const [id, handle] of before) {
      const call = byId.get(id);
      if (known.get(id) !== handle) continue;
      if (call) handle.update(call);
      else handle.endedBy({ ...handle.get().call, status: 'ended' }, undefined);
    }
    for (const call of byId.values()) ring(call);
  }

  const onError = (e: unknown): void => events.emit('error', asError(e));
  const offs = [
    client.on('state', ({ state }) => {
      if (state === 'connected') catchUp().catch(onError);
    }),
    client.on('frame', ({ t, d }) => {
      const { call, callId, endedHere, producer, closed, levels, dominant } = d as {
        call: Call;
        callId: string;
        endedHere?: EndedHere;
        producer: CallProducer;
        closed?: boolean;
        levels: { userId: string; level: number }[];
        dominant: string | null;
      };
      const handle = known.get(callId ?? call?.id);
      if (call) heard(call);
      if (t === 'call.incoming') ring(call);
      else if (t === 'call.updated') handle?.update(call);
      else if (t === 'call.ended') handle?.endedBy(call, endedHere);
      else if (t === 'call.producer') handle?.producer(producer, closed === true);
      else if (t === 'call.speakers') handle?.speakers(levels, dominant);
      else if (t === 'call.media') handle?.moved();
    }),
  ];
  if (client.state === 'connected') catchUp().catch(onError);

  /** A user is in one call at a time, so all others are left. */
  async function enter(call: Call, options: JoinOptions, answer = false): Promise<CallHandle> {
    const handle = known.get(call.id) ?? add(call, 'connecting');
    try {
      await handle.prepare(options);
      await handle.join({ answer });
    } catch (e) {
      await handle.leave().catch(() => undefined);
      throw e;
    }
    for (const other of [...known.values()])
      if (other !== handle && other.state !== 'incoming') void other.leave().catch(onError);
    return handle;
  }

  const read = (id: string): Promise<Call> => wire.http('GET', `/calls/${encodeURIComponent(id)}`);

  return {
    get: store.get,
    subscribe: store.subscribe,
    live,
    on: (name, fn) => events.on(name, fn),
    start: async (conversationId, { kind, metadata, ...options }) => {
      const draft = { kind, participants: [] } as unknown as Call;
      // Opened before anybody's phone rings: without a microphone there is no call.
      const probe = new CallHandle(host, draft, 'connecting');
      await probe.prepare(options);
      const body = { conversationId, kind, ...(metadata ? { metadata } : {}) };
      try {
        const call = await wire.http<Call>('POST', '/calls', { body });
        if (call.status === 'ended') {
          probe.discard();
          const over = new CallHandle(host, call, 'connecting');
          over.update(call);
          return over;
        }
        heard(call);
        known.set(call.id, probe);
        probe.update(call);
        await probe.join().catch(async (e: unknown) => {
          // A decline at once ends the call before this device joins: the call has ended, it did not fail.
          const now = await read(call.id).catch(() => call);
          if (now.status !== 'ended') throw e;
          probe.update(now);
        });
        store.touch();
        return probe;
      } catch (e) {
        probe.discard();
        throw e;
      }
    },
    join: async (callId, options = {}) => enter(await read(callId), options),
    rejoin: async (options = {}) => {
      const id = mark?.getItem(markOf(me()));
      if (!id) return null;
      const call = await read(id).catch(() => null);
      if (!call || call.status === 'ended') {
        mark?.removeItem(markOf(me()));
        return null;
      }
      return enter(call, options);
    },
    history: async (conversationId) =>
      (await wire.http<{ data: Call[] }>('GET', '/calls', { query: { conversationId } })).data,
    test: (found = () => undefined) => testRoutes(wire, found),
    devices: { list: listDevices, watch: watchDevices },
    close: () => {
      for (const off of offs) off();
      live.set([]);
      for (const call of [...known.values()])
        if (call.state !== 'incoming') void call.leave().catch(() => undefined);
      known.clear();
      store.touch();
    },
  };
}

export type { Call } from '../types.ts';
export type { CallHandle } from './call.ts';
export type { MediaDevice } from './devices.ts';
export type { JoinOptions, UnsupportedSource } from './host.ts';
export type { VideoCodec } from './media.ts';
export type { NetworkQuality } from './network.ts';
export type { Route, RouteResult } from './self-test.ts';
export type { VideoQuality } from './tiles.ts';
export type { CallParticipantView, CallSnapshot, CallState } from './view.ts';
