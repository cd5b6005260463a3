import type { Input, Output } from '@parley/protocol';
import { addressOf, prepare } from './address.ts';
import type { CallName } from './address.ts';
import { noteAnswer } from './away.ts';
import { noteServerDate } from './clock.ts';
import { routes } from './generated/routes.ts';

/** One way to call the service: the operation table, with the session's cookie. */

/** An answer of the service that says no. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly param: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, error: Partial<ErrorFields>) {
    super(error.message ?? 'The dashboard does not understand the answer of the service.');
    this.status = status;
    this.code = error.code ?? 'unknown';
    this.param = error.param;
    this.requestId = error.requestId;
    this.retryAfterMs = error.retryAfterMs;
  }
}

interface ErrorFields {
  code: string;
  message: string;
  param: string;
  requestId: string;
  retryAfterMs: number;
}

/** @param env the environment that the call concerns; null: none. */
export async function call<N extends CallName>(
  name: N,
  input: Input<N>,
  env: string | null,
  signal?: AbortSignal,
): Promise<Output<N>> {
  const given = input as Record<string, unknown>;
  const { method, path, body } = prepare(name, given);
  // By its address alone, so that an answer that the page's head has asked for is found.
  const get = method === 'GET';
  let response: Response;
  try {
    response = await fetch(get ? addressOf(name, given, env) : path, {
      method,
      credentials: 'same-origin',
      headers: {
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(env === null || get ? {} : { 'Chat-Env': env }),
      },
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    noteAnswer(0);
    throw new ApiFailure(0, { code: 'offline', message: 'The service does not answer.' });
  }
  noteAnswer(response.status);
  noteServerDate(response.headers.get('date'));
  if (response.status === 204) return undefined as Output<N>;
  const answer = (await response.json().catch(() => ({}))) as { error?: Partial<ErrorFields> };
  if (!response.ok) throw new ApiFailure(response.status, answer.error ?? {});
  return answer as Output<N>;
}

/** The same call for a terminal: with a secret key where it may, else with the session. */
export function asCurl(name: CallName, input: Record<string, unknown>, env: string | null): string {
  const { method, path, body } = prepare(name, input);
  const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const credential = routes[name].key
    ? [`-H "Authorization: Bearer $PARLEY_SECRET_KEY"`]
    : [
        `-H "Cookie: parley_session=$PARLEY_SESSION"`,
        // A change with the cookie must come from our own page.
        ...(method === 'GET' ? [] : [`-H ${quoted(`Origin: ${location.origin}`)}`]),
        ...(env === null ? [] : [`-H ${quoted(`Chat-Env: ${env}`)}`]),
      ];
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(location.origin + path)}`,
    ...credential,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${quoted(body)}`]),
  ].join(' \\\n  ');
}

/** An answer of many lines, each JSON, as they come. */
export async function* lines<T>(address: string, signal: AbortSignal): AsyncGenerator<T> {
  const response = await fetch(address, { credentials: 'same-origin', signal });
  if (!response.ok) {
    const answer = (await response.json().catch(() => ({}))) as { error?: Partial<ErrorFields> };
    throw new ApiFailure(response.status, answer.error ?? {});
  }
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const complete = (rest + part.value).split('\n');
    rest = complete.pop()!;
    for (const line of complete) if (line !== '') yield JSON.parse(line) as T;
  }
}
