import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { hookHandler } from '../src/index.ts';
import type { BeforeSend, BeforeSendDecision } from '../src/index.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

const message = (text: string): BeforeSend => ({
  conversation: { id: 'conv_1', type: 'group', name: null, metadata: {} },
  senderId: 'anna',
  clientMsgId: 'c1',
  edit: null,
  message: { text, replyTo: null, threadId: null, mentions: [], attachments: [], metadata: {} },
});
/** A request as the service makes it. */
function asked(
  data: object,
  { key = secret, type = 'message.before_send', at = new Date() } = {},
): RequestInit {
  const body = JSON.stringify({ id: 'evt_1', type, createdAt: at.toISOString(), env: 'env_1', data });
  return {
    method: 'POST',
    body,
    headers: {
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(key).sign('evt_1', at, body),
    },
  };
}

const errors: unknown[] = [];
const handle = hookHandler({
  secret,
  onError: (error) => errors.push(error),
  beforeSend: ({ message: { text } }): BeforeSendDecision => {
    if (text === 'bad') return { action: 'reject', reason: 'No.' };
    if (text === 'loud') return { action: 'rewrite', text: 'quiet' };
    if (text === 'broken') throw new Error('no database');
    return undefined;
  },
});

/** The status and the body of each answer, in both forms of the handler. */
const expected: [what: string, init: RequestInit, status: number, body: string][] = [
  ['allows', asked(message('fine')), 204, ''],
  ['rejects', asked(message('bad')), 200, '{"action":"reject","reason":"No."}'],
  ['rewrites', asked(message('loud')), 200, '{"action":"rewrite","text":"quiet"}'],
  ['fails', asked(message('broken')), 500, 'The hook failed.'],
  [
    'was signed with another key',
    asked(message('bad'), { key: `whsec_${Buffer.alloc(32, 8).toString('base64')}` }),
    401,
    'No signature matches.',
  ],
  [
    'is a request of yesterday',
    asked(message('bad'), { at: new Date(Date.now() - 86_400_000) }),
    401,
    'The timestamp is too far from now.',
  ],
  ['is not signed', { method: 'POST', body: '{}' }, 401, 'The header webhook-id is missing.'],
  ['asks something else', asked({}, { type: 'interaction' }), 404, 'This hook decides on messages.'],
  ['is too large', asked(message('x'.repeat(1_100_000))), 413, 'The body is too large.'],
];

test('hooks#handler: as a handler of fetch requests', async () => {
  for (const [what, init, status, body] of expected) {
    const answer = await handle(new Request('http://hook.example/', init));
    assert.deepEqual([answer.status, await answer.text()], [status, body], what);
  }
  assert.equal(errors.length, 1);
});

test('hooks#handler: as a handler of Node’s http server', async () => {
  const server = createServer((request, response) => void handle(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    // What is too large is answered before it has all been read, which a client may see as a broken connection.
    for (const [what, init, status, body] of expected.slice(0, -1)) {
      const answer = await fetch(url, init);
      assert.deepEqual([answer.status, await answer.text()], [status, body], what);
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('hooks#handler: the example rejects, rewrites and allows', async () => {
  const file = new URL('../../../examples/before-send-hook/hook.mjs', import.meta.url).pathname;
  const example = spawn(process.execPath, [file], {
    env: { ...process.env, HOOK_SECRET: secret, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const said = await new Promise<string>((resolve) => {
      let output = '';
      example.stdout.on('data', (piece: Buffer) => {
        output += piece.toString();
        if (output.includes('listening')) resolve(output);
      });
    });
    const url = /http:\S+/.exec(said)![0];
    const answers = await Promise.all(
      ['Visit our Casino', 'Call +49 30 123 4567', 'Hello'].map(async (text) =>
        (await fetch(url, asked(message(text)))).json(),
      ),
    );
    assert.deepEqual(answers, [
      { action: 'reject', reason: 'Advertising is not welcome here.' },
      { action: 'rewrite', text: 'Call (number hidden)' },
      { action: 'allow' },
    ]);
  } finally {
    example.kill('SIGKILL');
  }
});
