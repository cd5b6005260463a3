import assert from 'node:assert/strict';
import { operationList, ErrorBody } from '@parley/protocol';
import type { Operation } from '@parley/protocol';
import { ajv } from './schemas.ts';
import { environments } from './service.ts';
import type { EnvironmentName } from './service.ts';

/** Speaks HTTP to the service. Every answer is checked against the operation's declared response or the error shape. */

const schemas = new Map<Operation, ReturnType<typeof ajv.compile>>();
const errorShape = ajv.compile(ErrorBody);

export interface Answer<T = any> {
  status: number;
  body: T;
  headers: Headers;
}

export interface Api {
  (method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

const variables = ({ path }: Operation): number => path.split('{').length;
/** Those with fewer variables first: `/v1/conversations/public` is no id. */
const routes = [...operationList]
  .sort((a, b) => variables(a) - variables(b))
  .map((operation) => ({
    operation,
    pattern: new RegExp(`^${operation.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  }));

let keepsConnections = true;
/**
 * From now on each request has a connection to itself. Where a test moves the service's time, the service resets
 * connections that were idle for a minute of it, and a request may be on its way then.
 */
export const keepNoConnections = (): void => void (keepsConnections = false);

export function createApi(url: string, credential: string | null, fixed: Record<string, string> = {}): Api {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(keepsConnections ? {} : { connection: 'close' }),
        ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...fixed,
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    // A stream of lines, or CSV, is given as it is.
    const isJson = /^application\/json(;|$)/.test(response.headers.get('content-type') ?? '');
    if (!isJson && text !== '') {
      checkFormat(method, path.split('?')[0]!, response);
      return { status: response.status, body: text, headers: response.headers };
    }
    const parsed: unknown = text === '' ? null : JSON.parse(text);
    const answer = { status: response.status, body: parsed, headers: response.headers };
    check(method, path.split('?')[0]!, answer);
    return answer;
  };
}

const routeOf = (method: string, path: string) =>
  routes.find((r) => r.operation.method === method && r.pattern.test(path));

/** An operation answers only in the formats that it declares. */
function checkFormat(method: string, path: string, { headers }: Response): void {
  const type = (headers.get('content-type') ?? '').split(';', 1)[0]!;
  const operation = routeOf(method, path)?.operation;
  if (operation) assert.ok((operation.formats as string[]).includes(type), `${operation.name} as ${type}`);
}

function check(method: string, path: string, answer: Answer<unknown>): void {
  assert.match(
    answer.headers.get('request-id') ?? '',
    /^req_/,
    'api#request-id: every response carries Request-Id',
  );
  for (const name of ['limit', 'remaining', 'reset'])
    assert.match(
      answer.headers.get(`ratelimit-${name}`) ?? '',
      /^\d+$/,
      `plans#rate-headers: RateLimit-${name}`,
    );
  if (answer.status >= 400) {
    if (path === '/readyz') return;
    assert.ok(errorShape(answer.body), `error shape: ${JSON.stringify(answer.body)}`);
    return;
  }
  const route = routeOf(method, path);
  if (!route) return;
  const { operation } = route;
  assert.ok(operation.statuses.includes(answer.status), `${operation.name} answered ${answer.status}`);
  if (answer.status === 204 || !operation.response) {
    assert.equal(answer.body, null);
    return;
  }
  let validate = schemas.get(operation);
  if (!validate) schemas.set(operation, (validate = ajv.compile(operation.response)));
  assert.ok(
    validate(answer.body),
    `${operation.name}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(answer.body)}`,
  );
}

export const serverApi = (url: string, environment: EnvironmentName = 'dev'): Api =>
  createApi(url, environments[environment].secretKey);

/** A client acting as `userId`, with a token minted by the service. */
export async function clientApi(
  url: string,
  userId: string,
  environment: EnvironmentName = 'dev',
): Promise<Api & { token: string }> {
  const { body } = await serverApi(url, environment)('POST', '/v1/tokens', { userId });
  return Object.assign(createApi(url, body.token), { token: body.token as string });
}

/** Asserts the status and the error's code; returns the error. */
export function assertError(answer: Answer, status: number, code: string, param?: string) {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.equal(answer.body.error.code, code);
  if (param !== undefined) assert.equal(answer.body.error.param, param);
  return answer.body.error as { code: string; message: string; param?: string; retryAfterMs?: number };
}
