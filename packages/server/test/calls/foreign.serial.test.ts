import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { environments } from '../support/service.ts';
import type { Actor } from '../support/scene.ts';
import { useService } from '../support/use.ts';
import { startMediaService } from './media-service.ts';
import { start } from './tools.ts';

/** docs/calls.md, A client of your own: one that others wrote the media part of (examples/call-client, in Go with pion). */

const { service, scene, server } = useService({ start: (env) => startMediaService(env, 1) });
const source = fileURLToPath(new URL('../../../../examples/call-client', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'parley-call-client-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Milliseconds that building may take, with what it downloads. */
const buildMs = 300_000;

const program = join(folder, 'call-client');
const built = spawnSync('go', ['build', '-buildvcs=false', '-o', program, '.'], {
  cwd: source,
  encoding: 'utf8',
  timeout: buildMs,
});
const hasProgram = built.status === 0;
if (!hasProgram) {
  const reason = built.error?.message ?? built.stderr.trim().split('\n').at(-1) ?? '';
  console.log(
    `!!! THE CALL CLIENT IN GO COULD NOT BE BUILT (${reason}): CALLS WERE NOT TESTED WITH A FOREIGN CLIENT.`,
  );
}

/** Runs it until the call ends; `received` is what it says of the first source that arrived. */
function joinCall(actor: Actor, callId: string): { received: Promise<any>; ended: Promise<void> } {
  const given = {
    url: service.url,
    env: environments.dev.id,
    token: scene.token(actor),
    call: callId,
    limit: '5m',
  };
  const args = Object.entries(given).flatMap(([name, value]) => [`-${name}`, value]);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  after(() => child.kill('SIGKILL'));
  let said = '';
  child.stderr.on('data', (data: Buffer) => (said += data.toString()));
  const ended = once(child, 'close').then(([code]) => assert.equal(code, 0, said));
  const received = new Promise<any>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      said += `${line}\n`;
      const told = JSON.parse(line) as { step: string };
      if (told.step === 'received') resolve(told);
    });
    ended.then(() => reject(new Error(`it ended before it received anything:\n${said}`)), reject);
  });
  return { received, ended };
}

it('a client in Go, written from the documents, joins a call, sends a microphone and receives the other’s', async () => {
  const [a, b] = await Promise.all([scene.actor(), scene.actor()]);
  const { id: cid } = await scene.direct(a, b);
  const { id } = await start(a, cid);
  const end = () => server('POST', `/v1/calls/${id}/end`);
  // Said above, loudly.
  if (!hasProgram) return void (await end());
  const people = [joinCall(a, id), joinCall(b, id)];
  const received = await Promise.all(people.map((one) => one.received));
  const mic = { step: 'received', source: 'mic', kind: 'audio', packets: 50 };
  assert.deepEqual(received, [
    { ...mic, userId: b.id },
    { ...mic, userId: a.id },
  ]);
  const { body } = await server('GET', `/v1/calls/${id}`);
  assert.deepEqual(
    [body.status, ...body.participants.map((p: any) => p.state)],
    ['active', 'joined', 'joined'],
  );
  await end();
  await Promise.all(people.map((one) => one.ended));
});
