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
import type { Folder } from './run.ts';

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

export function checkRun(name: string, label: string, output: string): void {
  const expected = refused[name];
  if (expected) assert.match(output, expected, `${name} in ${label}`);
  else assert.doesNotMatch(output, /^$|failed with|"error":\s*\{/, `${name} in ${label}`);
}

/** How the examples of a language are run one after another by one process, each behind a line with its name. */
const runners: Record<string, { end: string; runner: string; start: (file: string) => [string, string[]] }> =
  {
    curl: {
      end: 'sh',
      runner:
        'for name in $NAMES; do echo "=== $name"; sh -eu "$name.sh" || echo "failed with $?"; echo; done',
      start: (file) => ['sh', [file]],
    },
    Node: {
      end: 'mjs',
      runner: `for (const name of process.env.NAMES.split(' ')) {
      console.log('=== ' + name);
      await import('./' + name + '.mjs').catch((error) => console.log('failed with', error));
    }`,
      start: (file) => [process.execPath, [file]],
    },
    Python: {
      end: 'py',
      runner: `import os, runpy, urllib.error
for name in os.environ["NAMES"].split(" "):
    print("=== " + name)
    try:
        runpy.run_path(name + ".py")
    except urllib.error.HTTPError as error:
        print("failed with", error, error.read().decode())
`,
      start: (file) => ['python3', [file]],
    },
  };

export async function runSamples(
  folder: Folder,
  stage: Stage,
  names: string[],
  label: string,
): Promise<void> {
  const { end, runner, start } = runners[label]!;
  for (const name of names) {
    const call = stage.calls.get(name);
    assert.ok(call, `there is no operation ${name}`);
    await folder.write(`${name}.${end}`, stage.sample(call, label));
  }
  const [program, args] = start(await folder.write(`all.${end}`, runner));
  const { code, output } = await folder.run(program, args, { ...stage.env, NAMES: names.join(' ') });
  assert.equal(code, 0, output);
  const said = new Map(output.split(/^=== /m).map((part) => [part.split('\n', 1)[0]!, part]));
  for (const name of names) checkRun(name, label, said.get(name) ?? '');
}
