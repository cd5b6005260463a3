import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parley } from '../support/cli.ts';
import { environments } from '../support/service.ts';
import { connect } from '../support/socket.ts';
import { devToken, nowSeconds, signToken } from '../support/tokens.ts';
import { text } from './live-scene.ts';
import { useService } from '../support/use.ts';
import { createScene } from '../support/scene.ts';

/** Live sockets whose right to be there ends (socket#put-out), and tokens that are renewed in time. */

const { service, scene } = useService();

test('users#deactivate: deactivation closes every socket of the user with 4003, and of nobody else', async () => {
  const { actor, socket } = await scene.person();
  const second = await scene.online(actor);
  const other = await scene.person();
  assert.equal((await scene.server('POST', `/v1/users/${actor.id}/deactivate`)).status, 200);
  assert.equal((await socket.closed).code, 4003);
  assert.equal((await second.closed).code, 4003);
  await other.socket.barrier();
  await scene.server('POST', `/v1/users/${actor.id}/reactivate`);
  const { body } = await scene.server('POST', '/v1/tokens', { userId: actor.id });
  await connect(service, body.token);
});

test('identity#revocation: revoke-tokens closes the sockets with 4001; a token minted afterwards works', async () => {
  const { actor, socket } = await scene.person();
  assert.equal((await scene.server('POST', `/v1/users/${actor.id}/revoke-tokens`)).status, 200);
  assert.equal((await socket.closed).code, 4001);
  const { body } = await scene.server('POST', '/v1/tokens', { userId: actor.id });
  const again = await connect(service, body.token);
  await again.barrier();
});

test('identity#revocation: logins that race a revocation never leave a live socket with the old token', async () => {
  for (let round = 0; round < 5; round++) {
    const actor = await scene.actor();
    const token = scene.token(actor, { iat: nowSeconds() - 5 });
    const logins = Array.from({ length: 8 }, () => connect(service, token).catch(() => null));
    const revoked = scene.server('POST', `/v1/users/${actor.id}/revoke-tokens`);
    const sockets = await Promise.all(logins);
    await revoked;
    for (const socket of sockets) if (socket) assert.equal((await socket.closed).code, 4001);
  }
});

test('socket#put-out: erasure closes the sockets with 4001', async () => {
  const { actor, socket } = await scene.person();
  assert.equal((await scene.server('DELETE', `/v1/users/${actor.id}`)).status, 204);
  assert.equal((await socket.closed).code, 4001);
});

test('identity#key-revoked: a revoked key ends the sockets of the tokens it signed, and no others (4001)', async () => {
  const actor = await scene.actor();
  const { secretKey } = await parley(service, 'key', 'create', environments.dev.id);
  const signed = await connect(service, signToken({ sub: actor.id }, { secretKey }));
  const other = await scene.online(actor);
  const moved = await scene.online(actor);
  await moved.request('token.refresh', { token: signToken({ sub: actor.id }, { secretKey }) });
  await parley(service, 'key', 'revoke', environments.dev.id, secretKey.split('_')[2]);
  assert.equal((await signed.closed).code, 4001);
  assert.equal((await moved.closed).code, 4001, 'the key of the last token counts');
  await other.barrier();
});

test('identity#suspended: a suspended environment closes its sockets with 4003, and no others', async () => {
  const theirs = await createScene(service.url, 'other').person();
  const ours = await scene.person();
  await parley(service, 'env', 'set', environments.other.id, '--status', 'suspended');
  assert.equal((await theirs.socket.closed).code, 4003);
  await ours.socket.barrier();
  await assert.rejects(createScene(service.url, 'other').online(theirs.actor), /"code":4003/);
  await parley(service, 'env', 'set', environments.other.id, '--status', 'active');
  await createScene(service.url, 'other').online(theirs.actor);
});

test('identity#dev-tokens: where they are switched off, sockets that came with one close with 4003, and no others', async () => {
  const { id, secretKey } = environments.other;
  const unsigned = await connect(service, devToken({ sub: 'ann' }), { env: id });
  const signed = await connect(service, signToken({ sub: 'ann' }, { secretKey }));
  const elsewhere = await connect(service, devToken({ sub: 'ann' }), { env: environments.dev.id });
  await parley(service, 'env', 'set', id, '--dev-tokens', 'false');
  assert.equal((await unsigned.closed).code, 4003);
  for (const socket of [signed, elsewhere]) await socket.barrier();
  await parley(service, 'env', 'set', id, '--dev-tokens', 'true');
});

test('socket#token-expiring: token.refresh extends the session, for the same user and environment only', async () => {
  const { actor, socket } = await scene.person();
  const exp = nowSeconds() + 9_000;
  const ack = await socket.request('token.refresh', { token: scene.token(actor, { exp }) });
  assert.equal(ack.expiresAt, new Date(exp * 1000).toISOString());
  const other = await scene.actor();
  await socket.refused('token.refresh', { token: scene.token(other) }, 'forbidden');
  const namesake = signToken({ sub: actor.id }, { environment: 'other' });
  await socket.refused('token.refresh', { token: namesake }, 'forbidden');
  await socket.refused('token.refresh', { token: environments.dev.secretKey }, 'forbidden');
  const conv = await scene.group(actor, []);
  await socket.request('message.send', text(conv.id));
  socket.send('token.refresh', { token: 'nonsense' }, 'last');
  assert.equal((await socket.closed).code, 4001);
});

test('socket#token-expiring: token.refresh with an expired token closes 4001', async () => {
  const { actor, socket } = await scene.person();
  const now = nowSeconds();
  socket.send('token.refresh', { token: scene.token(actor, { iat: now - 60, exp: now - 1 }) }, 1);
  assert.deepEqual((await socket.closed).code, 4001);
});
