import assert from 'node:assert/strict';
import { readOpenApi } from '../src/build/documents.ts';
import { callsOf } from '../src/build/reference-call.ts';
import type { Call } from '../src/build/reference-call.ts';
import { idOf, samples } from '../src/build/samples.ts';
import type { Answer, Api } from '../../server/test/support/api.ts';
import { until } from '../../server/test/start/npm-start.ts';
import { environments } from '../../server/test/support/service.ts';
import { signToken } from '../../server/test/support/tokens.ts';
import { refused } from './reference-order.ts';
import { ownNames } from './run.ts';
import type { Folder, Ran } from './run.ts';

/** What the examples of the reference speak of, made for real: people, a group with a message, a file, a webhook. */

/** Nothing listens there. */
const nowhere = 'http://127.0.0.1:9/parley';

export interface Stage {
  calls: Map<string, Call>;
  env: Record<string, string>;
  /** An example with real ids in it. */
  sample(call: Call, label: string): string;
}

const done = async (answer: Promise<Answer>): Promise<Answer['body']> => {
  const { status, body } = await answer;
  assert.ok(status < 300, JSON.stringify(body));
  return body;
};

export async function makeStage(url: string, server: Api): Promise<Stage> {
  const own = ownNames();
  const [alice, bob, carol, dave] = ['alice', 'bob', 'carol', 'dave'].map(own) as [
    string,
    string,
    string,
    string,
  ];
  for (const id of [carol, dave]) await done(server('PUT', `/v1/users/${id}`, {}));
  const members = [alice, bob];
  const group = await done(server('POST', '/v1/conversations', { type: 'group', members, ownerId: alice }));
  const at = `/v1/conversations/${group.id}`;
  const message = await done(server('POST', `${at}/messages`, { senderId: alice, text: 'Hello' }));
  const file = Buffer.from('Two chairs');
  const ticket = await done(
    server('POST', '/v1/uploads', {
      conversationId: group.id,
      filename: 'order.txt',
      size: file.length,
      contentType: 'text/plain',
    }),
  );
  const { upload } = ticket;
  assert.ok((await fetch(upload.url, { method: upload.method, headers: upload.headers, body: file })).ok);
  const webhook = await done(server('POST', '/v1/webhooks', { url: nowhere, events: ['message.created'] }));
  await done(server('POST', `${at}/messages`, { senderId: bob, text: 'For the webhook' }));
  const delivery = await firstDelivery(server, webhook.id);
  const ids: [string, string][] = [
    [idOf('conv'), group.id],
    [idOf('msg'), message.id],
    [idOf('att'), ticket.attachmentId],
    [idOf('wh'), webhook.id],
    [idOf('whd'), delivery],
    ['https://example.com/parley', nowhere],
    ['order-4812-shipped', own('order-alice')],
  ];
  return {
    calls: new Map(callsOf(await readOpenApi()).map((call) => [call.op.operationId, call])),
    env: {
      PARLEY_URL: url,
      PARLEY_SECRET_KEY: environments.dev.secretKey,
      PARLEY_TOKEN: signToken({ sub: alice }),
    },
    sample(call, label) {
      const text = samples(call).find((one) => one.label === label)!.text;
      return ids.reduce((made, [from, to]) => made.replaceAll(from, to), own(text));
    },
  };
}

async function firstDelivery(server: Api, webhookId: string): Promise<string> {
  let found: string | undefined;
  await until(async () => {
    found = (await done(server('GET', `/v1/webhooks/${webhookId}/deliveries`))).data[0]?.id;
    return found !== undefined;
  });
  return found!;
}

export function checkRun(name: string, label: string, { code, output }: Ran): void {
  const expected = refused[name];
  if (expected) assert.match(output, expected, `${name} in ${label}`);
  else {
    assert.equal(code, 0, `${name} in ${label}:\n${output}`);
    assert.doesNotMatch(output, /"error":\s*\{/, `${name} in ${label}`);
  }
}

/** Languages whose examples are started one by one. */
export const starters: Record<string, { file: string; command: (file: string) => [string, string[]] }> = {
  curl: { file: 'example.sh', command: (file) => ['sh', ['-eu', file]] },
  Node: { file: 'example.mjs', command: (file) => [process.execPath, [file]] },
  Python: { file: 'example.py', command: (file) => ['python3', [file]] },
};

export async function runSample(folder: Folder, stage: Stage, name: string, label: string): Promise<void> {
  const call = stage.calls.get(name);
  assert.ok(call, `there is no operation ${name}`);
  const { file, command } = starters[label]!;
  const [program, args] = command(await folder.write(file, stage.sample(call, label)));
  checkRun(name, label, await folder.run(program, args, stage.env));
}
