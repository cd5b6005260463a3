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

for (const op of Object.values<Operation>(operations)) {
  test(`${op.name}: the declaration agrees with itself`, () => {
    const inPath = [...op.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    assert.deepEqual(Object.keys(op.params.properties), inPath, 'params are those of the path');
    const names = [op.params, op.query, op.body].flatMap((part) => Object.keys(part?.properties ?? {}));
    assert.equal(new Set(names).size, names.length, `names collide: ${names.join(' ')}`);
    assert.ok(!names.includes('env'), '`env` names the environment (identity#environment)');
    for (const part of [op.params, op.query, op.body]) {
      if (part) {
        const { additionalProperties } = part as { additionalProperties?: unknown };
        assert.equal(additionalProperties, false, 'requests are closed (api#unknown-fields)');
      }
    }
    assert.equal(
      op.response === null,
      op.statuses.every((status) => status === 204),
    );
    for (const code of op.errors) assert.ok(errorRow(code).http, `${code} can be sent over REST`);
    assert.equal(
      acceptsIdempotencyKey(op),
      ['POST', 'PATCH', 'DELETE'].includes(op.method),
      'api#idempotency',
    );
  });
}

test('routes are unique', () => {
  const routes = operationList.map((op) => `${op.method} ${op.path.replaceAll(/\{\w+\}/g, '{}')}`);
  assert.equal(new Set(routes).size, routes.length);
});

test('socket#envelopes: a frame that runs an operation has fields that the operation takes from clients', () => {
  for (const [type, frame] of Object.entries(clientFrames)) {
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

test('dashboard#roles: what the dashboard may call names a permission, or is about the caller alone', () => {
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

test('dashboard#roles: a viewer reads, and never what people wrote', () => {
  const viewer = operationList.filter((op) => op.permission !== null && roleMay('viewer', op.permission));
  for (const op of viewer) {
    assert.ok(op.changesNothing || op.name === 'organizations.leave', op.name);
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
    const input = { type: 'direct', members: [], userIds: [], entries: [] };
    if (costOf(op.name as keyof typeof operations, input) === 0)
      assert.ok(op.repeatable || op.changesNothing, op.name);
  }
});
