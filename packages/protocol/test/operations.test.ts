import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  acceptsIdempotencyKey,
  accountRoles,
  clientFrames,
  costOf,
  errorRow,
  httpCallers,
  operation,
  operationList,
  operations,
  permissions,
  roleMay,
} from '../src/index.ts';
import type { Operation, Permission } from '../src/index.ts';

/** SPEC 4, row by row; callers as SPEC 4 and DECISIONS ("the server may do all that a member may", the explorer) give them. */
const rows: Record<string, string[]> = {
  Tokens: ['POST /v1/tokens server'],
  Users: [
    'PUT /v1/users/{} server',
    'GET /v1/users/{} server,client,dashboard',
    'GET /v1/users server,dashboard',
    // Additive: names for what a client shows, in one request.
    'POST /v1/users/lookup server,client',
    'POST /v1/users/{}/deactivate server,dashboard',
    'POST /v1/users/{}/reactivate server,dashboard',
    'POST /v1/users/{}/revoke-tokens server,dashboard',
    'DELETE /v1/users/{} server,dashboard',
  ],
  Conversations: [
    'POST /v1/conversations server,client',
    'GET /v1/conversations server,client,dashboard',
    'GET /v1/conversations/{} server,client,dashboard',
    'PATCH /v1/conversations/{} server,client',
    'DELETE /v1/conversations/{} server',
    'PUT /v1/conversations/{}/mute client',
    'DELETE /v1/conversations/{}/mute client',
  ],
  Members: [
    'GET /v1/conversations/{}/members server,client,dashboard',
    'POST /v1/conversations/{}/members server,client',
    'DELETE /v1/conversations/{}/members/{} server,client',
    'PATCH /v1/conversations/{}/members/{} server',
  ],
  Messages: [
    'POST /v1/conversations/{}/messages server,client',
    'GET /v1/conversations/{}/messages server,client,dashboard',
    'GET /v1/messages/{} server,client,dashboard',
    'PATCH /v1/messages/{} server,client',
    'DELETE /v1/messages/{} server,client',
  ],
  'Sync and events': ['POST /v1/sync client', 'GET /v1/conversations/{}/events server,client,dashboard'],
  'Read state': ['POST /v1/conversations/{}/read client'],
  Webhooks: [
    'POST /v1/webhooks server,dashboard',
    'GET /v1/webhooks server,dashboard',
    'GET /v1/webhooks/{} server,dashboard',
    'PATCH /v1/webhooks/{} server,dashboard',
    'DELETE /v1/webhooks/{} server,dashboard',
    'POST /v1/webhooks/{}/rotate-secret server,dashboard',
    'POST /v1/webhooks/{}/test server,dashboard',
    'GET /v1/webhooks/{}/deliveries server,dashboard',
    'POST /v1/webhooks/{}/deliveries/{}/replay server,dashboard',
    'POST /v1/webhooks/{}/replay-failed server,dashboard',
  ],
  'Uploads and attachments': [
    'POST /v1/uploads server,client',
    'POST /v1/uploads/{}/complete server,client',
    'GET /v1/attachments/{}/url server,client',
  ],
  Calls: [
    'POST /v1/calls server,client',
    'GET /v1/calls server,client,dashboard',
    'GET /v1/calls/{} server,client,dashboard',
    'POST /v1/calls/{}/join client',
    'POST /v1/calls/{}/decline client',
    'POST /v1/calls/{}/leave client',
    'POST /v1/calls/{}/end server,dashboard',
    'POST /v1/calls/{}/participants/{}/remove server,dashboard',
    'POST /v1/calls/{}/participants/{}/mute server,dashboard',
  ],
  Analytics: ['GET /v1/analytics server,dashboard', 'GET /v1/usage server,dashboard'],
  Session: [
    'POST /v1/session anyone',
    'GET /v1/session dashboard',
    'POST /v1/session/reauth dashboard',
    'DELETE /v1/session dashboard',
    'POST /v1/session/passkey anyone',
    'POST /v1/session/passkey/options anyone',
    'POST /v1/password/forgot anyone',
    'POST /v1/password/reset anyone',
  ],
  Environments: [
    'POST /v1/environments dashboard',
    'GET /v1/environments dashboard',
    'GET /v1/environments/{} dashboard',
    'PATCH /v1/environments/{} dashboard',
  ],
  Keys: ['GET /v1/keys dashboard', 'POST /v1/keys dashboard', 'DELETE /v1/keys/{} dashboard'],
  Audit: ['GET /v1/audit dashboard'],
  Storage: [
    'GET /v1/storage dashboard',
    'PATCH /v1/storage dashboard',
    'PUT /v1/storage/database/{} dashboard',
    'POST /v1/storage/database/{}/rotate-secret dashboard',
    'POST /v1/storage/database/test dashboard',
    'POST /v1/storage/database/migrate dashboard',
    'POST /v1/storage/database/promote/{} dashboard',
    'POST /v1/storage/database/resync dashboard',
    'PUT /v1/storage/media dashboard',
    'POST /v1/storage/media/test dashboard',
    'DELETE /v1/storage/media dashboard',
  ],
  'Push devices': ['POST /v1/push/devices client', 'DELETE /v1/push/devices/{} client'],
};

for (const [tag, expected] of Object.entries(rows)) {
  test(`SPEC 4, ${tag}: every row and no other, with its callers`, () => {
    const actual = operationList
      .filter((op) => op.tag === tag)
      .map((op) => `${op.method} ${op.path.replaceAll(/\{\w+\}/g, '{}')} ${httpCallers(op).join(',')}`);
    assert.deepEqual(actual.sort(), [...expected].sort());
  });
}

test('SPEC 4: request fields are those named', () => {
  const fields = (name: keyof typeof operations) => ({
    query: Object.keys(operations[name].query.properties).sort().join(' '),
    body: Object.keys(operations[name].body?.properties ?? {})
      .sort()
      .join(' '),
  });
  assert.deepEqual(fields('tokens.create'), { query: '', body: 'expiresIn userId' });
  assert.deepEqual(fields('users.upsert'), { query: '', body: 'imageUrl metadata name' });
  assert.deepEqual(fields('users.list'), { query: 'cursor limit namePrefix prefix', body: '' });
  assert.deepEqual(fields('users.erase'), { query: 'confirm messages', body: '' });
  assert.deepEqual(fields('conversations.create'), {
    query: '',
    body: 'members metadata name ownerId type',
  });
  assert.deepEqual(fields('conversations.list'), { query: 'cursor limit userId', body: '' });
  assert.deepEqual(fields('conversations.update'), { query: '', body: 'metadata name' });
  assert.deepEqual(fields('conversations.read'), { query: '', body: 'seq' });
  assert.deepEqual(fields('members.add'), { query: '', body: 'userIds' });
  assert.deepEqual(fields('members.update'), { query: '', body: 'role' });
  assert.deepEqual(fields('messages.send'), {
    query: '',
    body: 'attachments clientMsgId metadata replyTo senderId text',
  });
  assert.deepEqual(fields('messages.list'), { query: 'after before limit', body: '' });
  assert.deepEqual(fields('messages.update'), { query: '', body: 'expectedVersion metadata text' });
  assert.deepEqual(fields('messages.delete'), { query: 'hard', body: '' });
  assert.deepEqual(fields('sync'), { query: '', body: 'cursor' });
  assert.deepEqual(fields('events.list'), { query: 'after before limit', body: '' });
  assert.deepEqual(fields('uploads.create'), {
    query: '',
    body: 'contentType conversationId filename height size width',
  });
  assert.deepEqual(fields('attachments.url'), { query: 'expiresIn', body: '' });
});

for (const op of Object.values<Operation>(operations)) {
  test(`${op.name}: the declaration agrees with itself`, () => {
    const inPath = [...op.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    assert.deepEqual(Object.keys(op.params.properties), inPath, 'params are those of the path');
    const names = [op.params, op.query, op.body].flatMap((part) => Object.keys(part?.properties ?? {}));
    assert.equal(new Set(names).size, names.length, `names collide: ${names.join(' ')}`);
    assert.ok(!names.includes('env'), '`env` names the environment (SPEC 5.2)');
    for (const part of [op.params, op.query, op.body]) {
      if (part) {
        const { additionalProperties } = part as { additionalProperties?: unknown };
        assert.equal(additionalProperties, false, 'requests are closed (SPEC 1.4)');
      }
    }
    assert.equal(
      op.response === null,
      op.statuses.every((status) => status === 204),
    );
    for (const code of op.errors) assert.ok(errorRow(code).http, `${code} can be sent over REST`);
    assert.equal(acceptsIdempotencyKey(op), ['POST', 'PATCH', 'DELETE'].includes(op.method), 'SPEC 1');
  });
}

test('routes are unique', () => {
  const routes = operationList.map((op) => `${op.method} ${op.path.replaceAll(/\{\w+\}/g, '{}')}`);
  assert.equal(new Set(routes).size, routes.length);
});

test('SPEC 4, Realtime socket: frames with their fields, and the operations they run', () => {
  const expected: Record<string, [string, boolean, string?]> = {
    auth: ['token', false],
    'message.send': ['attachments cid clientMsgId metadata replyTo text', true, 'messages.send'],
    'message.update': ['expectedVersion id metadata text', true, 'messages.update'],
    'message.delete': ['id', true, 'messages.delete'],
    typing: ['cid state', false],
    read: ['cid seq', true, 'conversations.read'],
    delivered: ['items', false],
    sync: ['cursor', true, 'sync'],
    'presence.watch': ['userIds', true],
    'token.refresh': ['token', true],
    hb: ['', false],
    'call.open': ['callId device resume rtpCapabilities tcp', true],
    'call.connect': ['callId dtlsParameters transportId', true],
    'call.restart': ['callId transportId', true],
    'call.produce': ['callId kind paused rtpParameters source', true],
    'call.pause': ['callId paused producerId', true],
    'call.close': ['callId producerId', true],
    'call.consume': ['callId producerIds', true],
    'call.layers': ['callId consumerId paused spatialLayer temporalLayer', true],
    'call.stats': ['callId', true],
  };
  for (const [type, [fields, acked, runs]] of Object.entries(expected)) {
    const frame = clientFrames[type as keyof typeof clientFrames];
    assert.equal(Object.keys(frame.d.properties).sort().join(' '), fields, type);
    assert.equal(frame.ack !== null, acked, type);
    assert.equal('runs' in frame ? frame.runs.operation : undefined, runs, type);
    if (!('runs' in frame)) continue;
    const { operation } = frame.runs;
    const rename: Record<string, string> = frame.runs.rename;
    const op: Operation = operations[operation];
    assert.ok(op.callers.includes('client'), `${type} is a client’s: ${operation} must be too`);
    const accepted = [op.params, op.query, op.body].flatMap((part) => Object.keys(part?.properties ?? {}));
    for (const field of Object.keys(frame.d.properties)) {
      assert.ok(accepted.includes(rename[field] ?? field), `${type}.${field} is a field of ${operation}`);
    }
  }
});

test('the plane follows from the callers, and the scope is an environment unless given', () => {
  const planeOf = (...callers: Operation['callers'][number][]) =>
    operation('sample', 'GET /v1/sample', { summary: '', text: '', tag: '', callers }).plane;
  assert.equal(planeOf('server'), 'tenant');
  assert.equal(planeOf('client', 'server'), 'tenant');
  assert.equal(planeOf('server', 'dashboard'), 'tenant');
  assert.equal(planeOf('dashboard'), 'control');
  assert.equal(planeOf('dashboard', 'operator'), 'control');
  for (const op of Object.values<Operation>(operations))
    if (op.plane === 'tenant') assert.equal(op.scope, 'environment', op.name);
});

test('what the operator alone may call has no endpoint, and a path belongs to one plane', () => {
  for (const op of Object.values<Operation>(operations))
    assert.equal(operationList.includes(op), httpCallers(op).length > 0, op.name);
  const planes = new Map<string, string>();
  for (const { path, plane, name } of Object.values<Operation>(operations)) {
    assert.equal(planes.get(path) ?? plane, plane, name);
    planes.set(path, plane);
  }
});

test('DECISIONS, Control plane: what the dashboard may call names a permission, or is about the caller alone', () => {
  for (const op of operationList) {
    const own = op.scope === 'account' || op.scope === 'organizations';
    assert.equal(op.permission !== null, op.callers.includes('dashboard') && !own, op.name);
    if (op.recent)
      assert.deepEqual(
        op.callers.filter((caller) => caller !== 'operator'),
        ['dashboard'],
        op.name,
      );
    // Answers to those who are not signed in are never kept for an Idempotency-Key.
    if (op.callers.includes('anyone'))
      assert.deepEqual([op.callers, op.scope], [['anyone'], 'account'], op.name);
    if (op.scope === 'organization') {
      const fields = [op.params, op.body].flatMap((part) => Object.keys(part?.properties ?? {}));
      assert.ok(fields.includes('organizationId') || fields.includes('environmentId'), op.name);
    }
  }
});

test('DECISIONS, Control plane: a viewer reads, and never what people wrote', () => {
  const viewer = operationList.filter((op) => op.permission !== null && roleMay('viewer', op.permission));
  for (const op of viewer) {
    assert.ok(op.method === 'GET' || op.name === 'organizations.leave', op.name);
    assert.ok(!['Messages', 'Sync and events'].includes(op.tag), op.name);
  }
  for (const permission of Object.keys(permissions) as Permission[]) {
    assert.ok(
      operationList.some((op) => op.permission === permission),
      `${permission} has a use`,
    );
    const may = accountRoles.filter((role) => roleMay(role, permission));
    assert.deepEqual(may, accountRoles.slice(0, may.length), 'each role may do all that those after it may');
    assert.ok(may.includes('owner'));
  }
});

/** Under an Idempotency-Key an operation that is not repeatable runs inside a transaction, whose connection it must wait for in its turn. */
test('what takes no turn holds no connection while it waits', () => {
  for (const op of operationList) {
    // A test of a webhook is queued instead of run under an Idempotency-Key; sign-ins are few and counted by account.
    if (op.name === 'webhooks.test' || op.plane === 'control') continue;
    const input = { type: 'direct', members: [], userIds: [] };
    if (costOf(op.name as keyof typeof operations, input) === 0)
      assert.ok(op.repeatable || op.changesNothing, op.name);
  }
});
