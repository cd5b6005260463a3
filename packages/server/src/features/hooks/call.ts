import type { HookVerdict } from '@parley/protocol';
import { limits } from '@parley/protocol';
import type { Clock, Ids, Timers } from '../../platform/clock.ts';
import { OutboundRefused, OutboundTimeout, OutboundUnresolved } from '../../platform/outbound/outbound.ts';
import type { Outbound, OutboundResponse } from '../../platform/outbound/outbound.ts';
import type { Circuit, Pass } from '../../platform/flow/circuit.ts';
import type { Places } from '../../platform/flow/places.ts';
import type { Recorder } from '../logs/recorder.ts';
import { signedHeaders } from '../webhooks/signature.ts';
import type { HookRow } from './sql.ts';

/**
 * One call of a hook: one attempt, within the hook's time. The time begins with the call and includes waiting for a
 * place, the look-up of the name, connecting and the whole answer. Nothing is held meanwhile but the place.
 */

/** Why a hook gave no answer; logs, metrics and webhooks name it. */
type HookErrorClass =
  'timeout' | 'name' | 'refused_address' | 'connection' | 'status' | 'answer' | 'overloaded' | 'circuit_open';

/** The hook gave no answer that can be used. */
export class HookFailed extends Error {
  override name = 'HookFailed';
  readonly errorClass: HookErrorClass;
  readonly status: number | null;
  /** Milliseconds until a call may be made again, if it is known. */
  readonly waitMs: number | undefined;
  constructor(errorClass: HookErrorClass, message: string, more: { status?: number; waitMs?: number } = {}) {
    super(message);
    this.errorClass = errorClass;
    this.status = more.status ?? null;
    this.waitMs = more.waitMs;
  }
}

/** A hook as it is called: its settings, its secrets, and how its calls have ended. */
export interface LiveHook extends HookRow {
  env: { no: number; id: string };
  /** Newest first; `until` in milliseconds, null: it has no end. */
  secrets: readonly { key: Buffer; until: number | null }[];
  circuit: Circuit;
}

export interface HookRequest<T extends { verdict: HookVerdict }> {
  type: string;
  data: object;
  /** Makes the result from the answer, undefined if it has no content; throws HookFailed if it is not valid. */
  read: (answer: unknown) => T | Promise<T>;
}

export interface HookResult {
  hook: LiveHook;
  type: string;
  verdict: HookVerdict | null;
  status: number | null;
  ms: number;
  requestId: string;
  failure: HookFailed | null;
}

export interface CallOptions {
  outbound: Pick<Outbound, 'request' | 'failed'>;
  places: Places;
  clock: Clock;
  timers: Timers;
  ids: Ids;
  recorder: Pick<Recorder, 'add'>;
  /** Called after every attempt. */
  attempted: (result: HookResult) => void;
  /** The circuit opened because of this failure (or stayed open after a trial), or closed. */
  changed: (hook: LiveHook, failure: HookFailed | null) => void;
}

const userAgent = 'Parley-Hooks/1.0';
/** What the log calls a request of which nothing depends. */
const testType = 'hook.test';

export function createCaller(options: CallOptions) {
  const { outbound, places, clock, timers, ids } = options;

  /** Waits for a place until the deadline; resolves to the function that gives it back. */
  async function placeFor(hook: LiveHook, deadline: number): Promise<() => void> {
    const { promise: begun, resolve, reject } = Promise.withResolvers<void>();
    const leave = places.enter(hook.env.no, resolve);
    if (!leave) throw new HookFailed('overloaded', 'too many calls of this hook wait already');
    const cancel = timers.after(Math.max(0, deadline - timers.monotonic()), () => {
      leave();
      reject(new HookFailed('overloaded', 'no call of this hook ended in time'));
    });
    await begun.finally(cancel);
    return leave;
  }

  async function request(
    hook: LiveHook,
    { type, data }: { type: string; data: object },
    timeoutMs: number,
    requestId: string,
    test: boolean,
  ): Promise<{ status: number; answer: unknown }> {
    const now = clock.now();
    const id = ids.make('event');
    const body = JSON.stringify({
      id,
      type,
      createdAt: new Date(now).toISOString(),
      env: hook.env.id,
      ...(test ? { test } : {}),
      data,
    });
    const keys = hook.secrets.filter(({ until }) => until === null || until > now).map(({ key }) => key);
    let response: OutboundResponse;
    try {
      const failed = outbound.failed(hook.url);
      if (failed) throw failed;
      response = await outbound.request({
        url: hook.url,
        method: 'POST',
        headers: signedHeaders(keys, { userAgent, requestId, id, now, body }),
        body,
        timeoutMs,
        maxBytes: limits.hookAnswerBytes,
        tenant: hook.env.no,
      });
    } catch (error) {
      throw failureOf(error);
    }
    return { status: response.status, answer: answerOf(response) };
  }

  /** Makes one attempt and says how it went. */
  async function attempt<T extends { verdict: HookVerdict }>(
    hook: LiveHook,
    asked: HookRequest<T>,
    timeoutMs: number,
    release: () => void,
    test = false,
  ): Promise<{ result: HookResult; value?: T | undefined; error: unknown }> {
    const began = timers.monotonic();
    const at = clock.now();
    const requestId = ids.make('request');
    const type = test ? testType : asked.type;
    const result: HookResult = { hook, type, requestId, verdict: null, status: null, ms: 0, failure: null };
    let value: T | undefined;
    let error: unknown;
    try {
      let answer: unknown;
      try {
        ({ status: result.status, answer } = await request(hook, asked, timeoutMs, requestId, test));
      } finally {
        result.ms = Math.round(timers.monotonic() - began);
        release();
      }
      value = await asked.read(answer);
      result.verdict = value.verdict;
    } catch (caught) {
      error = caught;
      // An error that is not the hook's, as when the store cannot be asked, says nothing about the hook.
      if (!(caught instanceof HookFailed)) return { result, error };
      result.status ??= caught.status;
      result.failure = caught;
    }
    note(at, result);
    return { result, value, error };
  }

  /** Adds the attempt to the environment's log. */
  function note(at: number, { hook, type, requestId, status, ms, verdict, failure }: HookResult): void {
    options.recorder.add({
      env: hook.env.no,
      at,
      kind: 'hook',
      failed: failure !== null,
      ms,
      requestId,
      method: 'POST',
      operation: type,
      status,
      code: failure?.errorClass ?? (verdict === 'allow' ? null : verdict),
    });
  }

  async function passed<T extends { verdict: HookVerdict }>(
    hook: LiveHook,
    asked: HookRequest<T>,
    pass: Pass,
  ): Promise<T> {
    const deadline = timers.monotonic() + hook.timeoutMs;
    let made = false;
    let failure: HookFailed | null = null;
    try {
      const release = await placeFor(hook, deadline);
      if (!hook.circuit.holds(pass)) {
        release();
        throw circuitOpen(hook);
      }
      made = true;
      const left = Math.max(1, deadline - timers.monotonic());
      const { result, value, error } = await attempt(hook, asked, left, release);
      options.attempted(result);
      failure = result.failure;
      made = failure !== null || value !== undefined;
      if (value === undefined) throw error as Error;
      return value;
    } finally {
      const change = hook.circuit.ended(pass, !made ? 'unmade' : failure ? 'failed' : 'succeeded');
      if (change === 'opened') options.changed(hook, failure);
      else if (made && !failure && (change === 'closed' || hook.failingSince !== null))
        options.changed(hook, null);
    }
  }

  return {
    /** Asks the hook; throws HookFailed if it gave no answer that can be used. */
    call<T extends { verdict: HookVerdict }>(hook: LiveHook, asked: HookRequest<T>): Promise<T> {
      const pass = hook.circuit.begin();
      if (!pass) return Promise.reject(circuitOpen(hook));
      return passed(hook, asked, pass);
    },

    /** Asks once, whatever happened before, and counts nothing. */
    async test<T extends { verdict: HookVerdict }>(
      hook: LiveHook,
      asked: HookRequest<T>,
    ): Promise<HookResult> {
      const release = await placeFor(hook, timers.monotonic() + hook.timeoutMs);
      const { result, error } = await attempt(hook, asked, hook.timeoutMs, release, true);
      if (error !== undefined && !(error instanceof HookFailed)) throw error as Error;
      return result;
    },
  };
}

const circuitOpen = (hook: LiveHook): HookFailed =>
  new HookFailed('circuit_open', 'the hook failed too often', { waitMs: hook.circuit.waitMs });

const utf8 = new TextDecoder('utf-8', { fatal: true });

function answerOf({ status, body, truncated }: OutboundResponse): unknown {
  if (status === 204) return undefined;
  if (status !== 200) throw new HookFailed('status', `the answer was ${status}`, { status });
  if (truncated)
    throw new HookFailed('answer', `the answer is over ${limits.hookAnswerBytes / 1024} KB`, { status });
  try {
    return JSON.parse(utf8.decode(body));
  } catch {
    throw new HookFailed('answer', 'the answer is not JSON', { status });
  }
}

function failureOf(error: unknown): HookFailed {
  if (error instanceof OutboundTimeout)
    return new HookFailed(
      'timeout',
      'no answer in time',
      error.status === undefined ? {} : { status: error.status },
    );
  if (error instanceof OutboundRefused) return new HookFailed('refused_address', `refused: ${error.message}`);
  if (error instanceof OutboundUnresolved)
    return new HookFailed('name', `the name does not resolve (${error.message})`);
  const { code } = error as { code?: unknown };
  return new HookFailed(
    'connection',
    typeof code === 'string' ? `no connection (${code})` : 'the connection broke',
  );
}
