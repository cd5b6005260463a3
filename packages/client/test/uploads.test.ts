import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { ParleyError } from '../src/errors.ts';
import type { Http } from '../src/http.ts';
import { createUploads } from '../src/features/uploads.ts';
import type { UploadTicket } from '../src/features/uploads.ts';
import { FakeClock } from './fake-clock.ts';
import { connected, world } from './harness.ts';

const file = Object.assign(new Blob(['picture'], { type: 'image/png' }), { name: 'cat.png' });
const attachment = { id: 'att_1', name: 'cat.png', size: 7, mimeType: 'image/png', status: 'ready' };
const put: UploadTicket['upload'] = {
  method: 'PUT',
  url: 'http://media.test/o',
  headers: { 'content-type': 'image/png' },
};

type Transfer = (url: string, init: RequestInit) => Promise<Response>;
const status = (code: number) => Promise.resolve(new Response(null, { status: code }));

/** The service and the storage, each answer in the hands of the test. */
function setting(
  upload: UploadTicket['upload'],
  transfer: Transfer,
  complete: () => unknown = () => attachment,
) {
  const calls: string[] = [];
  const http = {
    call: async (method: string, path: string, { body }: { body?: unknown } = {}) => {
      calls.push(`${method} ${path}`);
      if (path !== '/uploads') return complete();
      calls.push(JSON.stringify(body));
      return { attachmentId: 'att_1', upload, expiresAt: '' };
    },
  } as unknown as Http;
  const clock = new FakeClock();
  const fetcher = ((url: string, init: RequestInit) => {
    calls.push(`${init.method} ${url}`);
    return transfer(url, init);
  }) as typeof fetch;
  return { calls, clock, uploads: createUploads(http, { fetch: fetcher, clock, random: () => 0.5 }) };
}
const notReady = () => {
  throw new ParleyError('attachment_not_ready');
};
const rejected = async (promise: Promise<unknown>, code: string) =>
  assert.rejects(promise, (e: ParleyError) => e.code === code);

test('uploads#ticket: ticket, the file with the ticket’s headers, completion', async () => {
  let sent: RequestInit = {};
  const { calls, uploads } = setting(put, (_url, init) => {
    sent = init;
    return status(201);
  });
  const progress: number[] = [];
  const ready = await uploads.upload('conv_1', file, { width: 2, onProgress: (p) => progress.push(p) });
  assert.deepEqual(ready, attachment);
  assert.deepEqual(calls, [
    'POST /uploads',
    '{"conversationId":"conv_1","filename":"cat.png","size":7,"contentType":"image/png","width":2}',
    'PUT http://media.test/o',
    'POST /uploads/att_1/complete',
  ]);
  assert.equal(sent.body, file);
  assert.deepEqual(sent.headers, put.headers);
  assert.deepEqual(progress, [1]);
});

test('uploads#voice: length and waveform of a voice note are announced as they were given', async () => {
  const { calls, uploads } = setting(put, () => status(201));
  await uploads.upload('conv_1', file, { durationMs: 1_500, waveform: 'AAEC' });
  const { durationMs, waveform } = JSON.parse(calls[1]!) as Record<string, unknown>;
  assert.deepEqual([durationMs, waveform], [1_500, 'AAEC']);
});

test('uploads#ticket: a form has every field of the ticket, then the file as `file`', async () => {
  let form = new FormData();
  const ticket: UploadTicket['upload'] = {
    method: 'POST',
    url: put.url,
    fields: { key: 'k', signature: 's' },
  };
  const { uploads } = setting(ticket, (_url, init) => {
    form = init.body as FormData;
    return status(200);
  });
  await uploads.upload('conv_1', new Blob(['x']), { filename: 'notes.txt' });
  assert.deepEqual([...form.keys()], ['key', 'signature', 'file']);
  assert.equal((form.get('file') as File).name, 'notes.txt');
});

test('a lost answer is no second transfer when the file is there', async () => {
  const { calls, uploads } = setting(put, () => Promise.reject(new TypeError('reset')));
  assert.deepEqual(await uploads.upload('conv_1', file), attachment);
  assert.equal(calls.filter((c) => c.startsWith('PUT')).length, 1);
});

test('a transfer that did not arrive is tried three times', async () => {
  const { calls, clock, uploads } = setting(put, () => Promise.reject(new TypeError('reset')), notReady);
  const failed = rejected(uploads.upload('conv_1', file), 'network');
  await clock.advance(60_000);
  await failed;
  assert.equal(calls.filter((c) => c.startsWith('PUT')).length, 3);

  let arrived = false;
  const second = setting(
    put,
    () => {
      if (second.calls.filter((c) => c.startsWith('PUT')).length === 1) return status(503);
      arrived = true;
      return status(201);
    },
    () => (arrived ? attachment : notReady()),
  );
  const done = second.uploads.upload('conv_1', file);
  await second.clock.advance(60_000);
  assert.deepEqual(await done, attachment);
});

test('what the storage refuses is final and not completed', async () => {
  const { calls, uploads } = setting(put, () => status(403));
  await rejected(uploads.upload('conv_1', file), 'upload_refused');
  assert.ok(!calls.some((c) => c.endsWith('/complete')));
});

test('aborting rejects at once, stops the transfer and completes nothing', async () => {
  const abort = new AbortController();
  let signal: AbortSignal | null | undefined;
  let started = () => {};
  const transferring = new Promise<void>((resolve) => (started = resolve));
  const { calls, uploads } = setting(put, (_url, init) => {
    signal = init.signal;
    started();
    return new Promise((_, reject) => signal!.addEventListener('abort', () => reject(new Error('aborted'))));
  });
  const failed = rejected(uploads.upload('conv_1', file, { signal: abort.signal }), 'aborted');
  await transferring;
  abort.abort();
  await failed;
  assert.equal(signal!.aborted, true);
  assert.ok(!calls.some((c) => c.endsWith('/complete')));
  const before = calls.length;
  await rejected(uploads.upload('conv_1', file, { signal: abort.signal }), 'aborted');
  assert.equal(calls.length, before, 'an aborted signal asks for no ticket');
});

class FakeXhr {
  static made: FakeXhr[] = [];
  upload: { onprogress?: (e: object) => void } = {};
  onload = () => {};
  onabort = () => {};
  status = 0;
  headers: Record<string, string> = {};
  line = '';
  body: unknown;
  open = (method: string, url: string) => void (this.line = `${method} ${url}`);
  setRequestHeader = (name: string, value: string) => void (this.headers[name] = value);
  send = (body: unknown) => {
    this.body = body;
    FakeXhr.made.push(this);
  };
  abort = () => this.onabort();
}
afterEach(() => {
  delete (globalThis as { XMLHttpRequest?: unknown }).XMLHttpRequest;
  FakeXhr.made = [];
});
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('where there is XMLHttpRequest it tells the progress, and can be aborted', async () => {
  (globalThis as { XMLHttpRequest?: unknown }).XMLHttpRequest = FakeXhr;
  const { uploads } = setting(put, () => assert.fail('fetch'));
  const progress: number[] = [];
  const done = uploads.upload('conv_1', file, { onProgress: (p) => progress.push(p) });
  await turn();
  const [xhr] = FakeXhr.made;
  assert.deepEqual([xhr!.line, xhr!.headers, xhr!.body], ['PUT http://media.test/o', put.headers, file]);
  xhr!.upload.onprogress!({ lengthComputable: true, loaded: 3, total: 6 });
  xhr!.status = 201;
  xhr!.onload();
  assert.deepEqual(await done, attachment);
  assert.deepEqual(progress, [0.5, 1]);

  const abort = new AbortController();
  const failed = rejected(uploads.upload('conv_1', file, { signal: abort.signal }), 'aborted');
  await turn();
  let aborted = false;
  FakeXhr.made[1]!.abort = () => (aborted = true);
  abort.abort();
  await failed;
  assert.ok(aborted);
});

test('an attachment goes out with a message through the outbox, also after a lost connection', async () => {
  const { clock, server, client } = world();
  const id = server.create(['alice', 'bob']);
  const alice = await connected(client('alice'), clock);
  const conversation = alice.conversations.open(id);
  await clock.advance(0);
  for (const socket of server.sockets) socket.end(1006, '');
  const item = conversation.send({ text: 'look', attachments: ['att_1'] });
  assert.deepEqual([item.status, item.attachmentIds], ['pending', ['att_1']]);
  await clock.advance(60_000);
  const sent = server.frames.filter((f) => f['t'] === 'message.send').at(-1);
  assert.deepEqual([sent!['d'].cid, sent!['d'].attachments], [id, ['att_1']]);
});
