import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { Message } from '@parley/protocol';
import { clientApi, createApi } from '../support/api.ts';
import { environments } from '../support/service.ts';
import { createGroup } from './tools.ts';
import { setUp, useService } from '../support/use.ts';

/** With everything logged, nothing of what people write or keep secret is. */

const words = 'Hidden-Words';
const password = 'hidden-password';
const { service, server, sql } = useService({
  env: { CHAT_LOG_LEVEL: 'trace', CHAT_BOOTSTRAP_PASSWORD: password },
});
let token: string;
let foreign: string;

setUp(async () => {
  const me = await clientApi(service.url, 'ann');
  token = me.token;
  foreign = `${token.slice(0, -6)}AAAAAA`;
  const id = await createGroup(server, ['ann'], { name: words, metadata: { words } });
  const path = `/v1/conversations/${id}/messages`;
  const key = { 'idempotency-key': randomUUID() };
  const { body } = await me('POST', path, { clientMsgId: 'c1', text: words, metadata: { words } }, key);
  await me('PATCH', `/v1/messages/${(body as Message).id}`, { text: `${words} 2`, expectedVersion: 1 });
  await me('GET', path);
  await server('PUT', '/v1/users/ann', { name: words });
  // Refused and broken requests: their errors must not quote what was sent.
  await me('POST', path, { clientMsgId: 'c2', text: `${words}\u0000` });
  await me('POST', path, { clientMsgId: 'c3', text: words, unknown: words });
  await server('POST', path, `{ "text": "${words}`);
  await server('POST', path, { text: words.repeat(1_000) });
  await createApi(service.url, foreign)('GET', '/v1/conversations');
  await createApi(service.url, `${environments.dev.secretKey.slice(0, -1)}x`)('GET', '/v1/users');
  await server('GET', `/v1/conversations?userId=nobody&cursor=${words}`);
  // A row that the store refuses: PostgreSQL quotes it in its error.
  await sql(`ALTER TABLE messages ADD CHECK (text <> '${words} 3')`);
  const edit = { text: `${words} 3`, expectedVersion: 2 };
  for (const { status } of [
    await me('POST', path, { clientMsgId: 'c4', text: `${words} 3` }),
    await me('PATCH', `/v1/messages/${(body as Message).id}`, edit),
  ])
    assert.equal(status, 500);
  await service.stop();
});

const lines = (): Record<string, unknown>[] =>
  service
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test('SECURITY: no key, token, password or text in the log at any level', () => {
  const output = service.output();
  assert.ok(lines().length > 10, 'something was logged');
  for (const [name, secret] of Object.entries({
    'the secret key': environments.dev.secretKey,
    'its secret part': environments.dev.secretKey.split('_')[3]!,
    'a token': token,
    'its signature': token.split('.')[2]!,
    'a forged token': foreign,
    'the password': password,
    'what was written': words,
  }))
    assert.equal(output.includes(secret), false, name);
});

test('errors#logged: every request has a line with requestId, env, operation and status', () => {
  const requests = lines().filter((line) => line['msg'] === 'request');
  assert.equal(requests.length, 15);
  for (const line of requests) {
    assert.match(String(line['requestId']), /^req_/);
    assert.equal(typeof line['operation'], 'string');
    assert.equal(typeof line['status'], 'number');
    assert.equal(typeof line['ms'], 'number');
  }
  assert.deepEqual(
    requests
      .filter((line) => line['env'] !== 'env_dev')
      .map((line) => line['status'])
      .sort(),
    [400, 401, 401],
    'only a body that is no JSON, and callers that are nobody, have no environment',
  );
  const seen = new Set(requests.map((line) => `${String(line['operation'])} ${String(line['status'])}`));
  for (const expected of [
    'tokens.create 201',
    'messages.send 201',
    'messages.send 400',
    'conversations.list 401',
  ])
    assert.ok(seen.has(expected), `${expected} in ${[...seen].join(', ')}`);
});
