import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { saveCredentials } from '../../src/features/push/sql/credentials.ts';
import { findEnvironment } from '../../src/features/tenancy/sql/environments.ts';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { createVault, loadMasterKey } from '../../src/platform/secrets.ts';
import { act, done, hasten, pretendNode, start } from '../calls/tools.ts';
import { useStandingHere } from '../gateway/here.ts';
import { startWebpush } from '../push/vendors/webpush.ts';
import type { Delivered } from '../push/vendors/vendor.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import type { TestSocket } from '../support/socket.ts';
import { lazy, setUp, use } from '../support/use.ts';
import { settled, until } from './tools.ts';

/** docs/push.md: what a socket that was found dead did not confirm is pushed, once. */

const masterKey = randomBytes(32).toString('base64');
const { here, time } = useStandingHere({
  env: { CHAT_ALLOW_PRIVATE_TARGETS: 'true', CHAT_MASTER_KEY: masterKey },
});
const scene = lazy(() => createScene(here.url, 'dev', time.now));
const db = use(
  () =>
    Promise.resolve(new PgDb({ connectionString: here.databaseUrl }, { max: 4, onError: () => undefined })),
  (opened) => opened.close(),
);
const vendor = use(
  () => startWebpush(time.now),
  (v) => v.close(),
);
setUp(async () => {
  const vault = createVault(await loadMasterKey(masterKey, '', false));
  const { no } = (await findEnvironment(db, 'env_dev'))!;
  await db.tx((tx) => saveCredentials(tx, vault, no, 'webpush', vendor.credentials));
  await pretendNode(db);
});

async function withDevice(): Promise<Actor> {
  const actor = await scene.actor();
  const token = vendor.tokenOf(actor.id);
  assert.equal((await actor.api('POST', '/v1/push/devices', { provider: 'webpush', token })).status, 201);
  return actor;
}
const told = (actor: Actor): Delivered[] =>
  vendor.delivered.filter((d) => d.token === vendor.tokenOf(actor.id));
const bodies = (actor: Actor) => told(actor).map((d) => d.body);

async function conversation() {
  const [sender, member] = [await scene.actor(), await withDevice()];
  const { id } = await scene.group(sender, [member]);
  const socket = await scene.online(member);
  const send = async (text: string, to: TestSocket | null = socket): Promise<number> => {
    const { seq } = await scene.send(sender, id, { text });
    if (to) await to.event('message.new', id);
    return seq;
  };
  return { id, member, socket, send };
}

/** The store's time goes on while that of the service stands: what the conversation has is as new as the service says. */
async function justNow(id: string): Promise<void> {
  const soon = `clock_timestamp() + interval '1 hour'`;
  await here.sql(
    `UPDATE messages SET created_at = ${soon} WHERE conv = (SELECT no FROM conversations WHERE id = $1)`,
    [id],
  );
  await here.sql(`UPDATE conversations SET last_activity_at = ${soon} WHERE id = $1`, [id]);
}

describe('a socket that was found dead', () => {
  it('by 60 s of silence: what it did not confirm is pushed once, in order', async () => {
    const { id, member, socket, send } = await conversation();
    socket.isSilent = true;
    const seq = await send('confirmed');
    socket.send('delivered', { items: [{ cid: id, seq }] });
    await socket.barrier();
    for (const text of ['one', 'two', 'three']) await send(text);
    await settled(db);
    assert.deepEqual(bodies(member), [], 'as long as it counts as live');
    time.advance(61_000);
    await until(() => told(member).length === 3, 'the pushes');
    await settled(db);
    assert.deepEqual(bodies(member), ['one', 'two', 'three']);
    await send('later', null);
    await settled(db);
    assert.deepEqual(bodies(member), ['one', 'two', 'three', 'later']);
    assert.deepEqual(vendor.violations, []);
  });

  it('by a connection that broke: also marks that were not written yet count as confirmed', async () => {
    const { id, member, socket, send } = await conversation();
    const seq = await send('confirmed');
    await send('lost');
    await settled(db);
    socket.send('delivered', { items: [{ cid: id, seq }] });
    await socket.barrier();
    await justNow(id);
    socket.ws.terminate();
    await until(() => told(member).length === 1, 'the push');
    await settled(db);
    assert.deepEqual(bodies(member), ['lost']);
  });

  it('nothing is pushed while the user has another socket, nor what was read', async () => {
    const { id, member, socket, send } = await conversation();
    const other = await scene.online(member);
    await send('seen');
    socket.ws.terminate();
    await socket.closed;
    const seq = await send('also seen', other);
    await settled(db);
    assert.equal((await member.api('POST', `/v1/conversations/${id}/read`, { seq })).status, 200);
    await send('not seen', other);
    await justNow(id);
    other.ws.terminate();
    await until(() => told(member).length === 1, 'the push');
    await settled(db);
    assert.deepEqual(bodies(member), ['not seen']);
  });

  it('a client that says that it closes got what was sent before', async () => {
    const { id, member, socket, send } = await conversation();
    await send('seen');
    await settled(db);
    await justNow(id);
    await socket.close();
    await until(async () => {
      await send('later', null);
      await settled(db);
      return told(member).length > 0;
    }, 'a push');
    assert.ok(!bodies(member).includes('seen'));
  });
});

describe('push#silent-clients: a client that fell silent', () => {
  const types = (actor: Actor) => told(actor).map((d) => d.data['type']);
  const reached = async (actor: Actor): Promise<boolean> =>
    (
      await db.query<{ reached: boolean }>(
        'SELECT p.reached FROM call_participants p JOIN users u ON u.no = p.usr WHERE u.id = $1',
        [actor.id],
      )
    )[0]!.reached;

  it('a call that no socket confirmed within seconds is pushed, and when missed that too; others get none', async () => {
    const [caller, silent, live] = [await scene.actor(), await withDevice(), await withDevice()];
    const { id } = await scene.group(caller, [silent, live]);
    const deaf = await scene.online(silent);
    deaf.ws.pong = () => undefined;
    await scene.online(live);
    const call = await start(caller, id, { kind: 'audio' });
    await deaf.ephemeral('call.incoming');
    await until(() => reached(live), 'the confirmation of the other');
    assert.equal(await reached(silent), false);
    await settled(db);
    assert.deepEqual([types(silent), types(live)], [[], []]);
    await hasten(db, call.id, 'unheard');
    await until(() => told(silent).length === 1, 'the push of the call');
    await done(act(caller, call.id, 'leave'));
    await until(() => told(silent).length === 2, 'the push of the missed call');
    await settled(db);
    assert.deepEqual([types(silent), types(live)], [['call.incoming', 'call.missed'], []]);
  });
});
