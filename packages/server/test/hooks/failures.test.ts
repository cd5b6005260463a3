import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { useStandingHere } from '../gateway/here.ts';
import { until } from '../push-feature/tools.ts';
import { assertError } from '../support/api.ts';
import { startDns } from '../support/dns.ts';
import { startTcp } from '../support/hostile/servers.ts';
import { createScene } from '../support/scene.ts';
import type { Actor } from '../support/scene.ts';
import { lazy, use } from '../support/use.ts';
import { ok, silent, startReceiver, status } from '../webhooks/receiver.ts';
import type { Answer } from '../webhooks/receiver.ts';
import { addEndpoint } from '../webhooks/tools.ts';
import { beforeSend, json, say, setHook } from './tools.ts';

/** hooks.md with receivers that hang, lie and break off, in a time that stands still for the circuit and the limits. */

const dns = use(
  () => startDns({ 'silent.example': 'silent', 'here.example': ['127.0.0.1'] }),
  (d) => d.close(),
);
const { here, time } = useStandingHere({
  env: () => ({ CHAT_ALLOW_PRIVATE_TARGETS: 'true', CHAT_DNS_SERVERS: dns.address }),
});
const scene = lazy(() => createScene(here.url, 'other', time.now));
const neighbour = lazy(() => createScene(here.url, 'dev', time.now));
const receiver = use(startReceiver, (r) => r.close());
const elsewhere = use(startReceiver, (r) => r.close());
/** Accepts connections and says nothing. */
const mute = use(
  () => startTcp(() => undefined),
  (s) => s.close(),
);

const partly = (res: ServerResponse, text: string): void =>
  void res.writeHead(200, { 'content-length': '100' }).write(text);
const drip: Answer = (_, res) => {
  res.writeHead(200);
  const timer = setInterval(() => res.write(' '), 20);
  res.on('close', () => clearInterval(timer));
};
const flood: Answer = (_, res) => {
  const piece = Buffer.alloc(65_536, ' ');
  let left = 16_384;
  const more = (): void => {
    while (left-- > 0 && !res.destroyed) if (!res.write(piece)) return void res.once('drain', more);
  };
  more();
};

const hostile: Record<string, Answer> = {
  'says nothing': silent,
  drips: drip,
  'sends 1 GB': flood,
  redirects: (received, res) => status(302, { location: elsewhere.url })(received, res),
  'redirects to keep the method': (received, res) => status(307, { location: elsewhere.url })(received, res),
  fails: status(500),
  'answers 201': status(201),
  'answers 200 without a body': status(200),
  'sends garbage': (_, res) => void res.writeHead(200).end(Buffer.from([0xff, 0xfe, 0x00, 0x7b])),
  'sends HTML': (_, res) => void res.writeHead(200).end('<html>allow</html>'),
  'sends null': (_, res) => json(res, null),
  'allows in another way': (_, res) => json(res, { action: 'permit' }),
  'hangs up in the middle': (_, res) => {
    partly(res, '{"action":');
    res.destroy();
  },
  'hangs up at once': (_, res) => void res.destroy(),
};

test('hooks#failures, T6.5: whatever the receiver does, a message is stored unchanged or refused, as set; nobody else waits', async () => {
  const [anna, nora] = await Promise.all([scene.actor(), neighbour.actor()]);
  const [{ id: cid }, { id: theirs }] = await Promise.all([scene.group(anna, []), neighbour.group(nora, [])]);
  await setHook(neighbour.server, elsewhere.url);
  const targets = [
    ...Object.entries(hostile).map(([name, answer]) => ({ name, answer, url: receiver.url })),
    { name: 'never finishes TLS', answer: ok, url: `https://127.0.0.1:${mute.port}/` },
    { name: 'never answers HTTP', answer: ok, url: `http://127.0.0.1:${mute.port}/` },
    { name: 'has a name that never resolves', answer: ok, url: 'http://silent.example/' },
    { name: 'has a name that is not there', answer: ok, url: 'http://missing.example/' },
    { name: 'listens nowhere', answer: ok, url: 'http://127.0.0.1:9/' },
  ];
  let allowed = 0;
  for (const [i, { name, answer, url }] of targets.entries()) {
    receiver.answer = answer;
    const asked = elsewhere.received.length;
    const settings = i % 4 === 0 ? (['reject', 'allow'] as const) : (['reject'] as const);
    allowed += settings.length - 1;
    for (const onFailure of settings) {
      await setHook(scene.server, url, { onFailure, timeoutMs: 100 });
      const sending = say(anna, cid, `${name}, ${onFailure}`);
      assert.equal((await say(nora, theirs, name)).status, 201, `${name}: the neighbour`);
      const sent = await sending;
      if (onFailure === 'reject') assertError(sent, 503, 'hook_unavailable');
      else assert.deepEqual([sent.status, sent.body.text], [201, `${name}, allow`], name);
    }
    assert.equal(
      elsewhere.received.length - asked,
      settings.length,
      `${name}: only the neighbour asked there`,
    );
    time.advance(1_000);
  }
  const { data } = (await anna.api('GET', `/v1/conversations/${cid}/messages?limit=100`)).body;
  assert.equal(data.length, allowed, 'what was refused left nothing');
  const { totals } = (await scene.server('GET', '/v1/analytics')).body;
  assert.deepEqual(
    [totals.hookCalls, totals.hookFailures, totals.hooksFailedOpen],
    [targets.length + allowed, targets.length + allowed, allowed],
  );
  await scene.server('DELETE', beforeSend);
});

test('hooks#circuit: a hook that fails is left alone for five seconds, and webhooks are told once of each change', async () => {
  const anna = await scene.actor();
  const { id: cid } = await scene.group(anna, []);
  await addEndpoint(scene.server, elsewhere.url, ['hook.failing', 'hook.recovered']);
  receiver.answer = status(500);
  await setHook(scene.server, receiver.url, { onFailure: 'reject' });
  receiver.received.length = 0;
  const refused = async (): Promise<number> => {
    const answer = await say(anna, cid, 'hello');
    assertError(answer, 503, 'hook_unavailable');
    return answer.body.error.retryAfterMs as number;
  };
  for (let i = 0; i < 10; i++) await refused();
  assert.equal(receiver.received.length, 10);
  assert.equal(await refused(), 5_000, 'the circuit is open');
  const failing = await elsewhere.next('hook.failing');
  assert.deepEqual([failing.data.kind, failing.data.errorClass], ['before-send', 'status']);
  assert.equal((await scene.server('GET', beforeSend)).body.failingSince, failing.data.since);

  time.advance(5_000);
  await refused();
  await refused();
  assert.equal(receiver.received.length, 11, 'one call tried');
  receiver.answer = ok;
  time.advance(4_999);
  assert.equal(await refused(), 1);
  time.advance(1);
  assert.equal((await say(anna, cid, 'hello again')).status, 201);
  assert.equal(receiver.received.length, 12);
  const recovered = await elsewhere.next('hook.recovered');
  assert.deepEqual(recovered.data, { kind: 'before-send' });
  await until(async () => (await scene.server('GET', beforeSend)).body.failingSince === null, 'it works');

  // While it is open, messages that may go on without an answer do so at once.
  receiver.answer = status(500);
  await setHook(scene.server, receiver.url, { onFailure: 'allow' });
  time.advance(10_000);
  for (let i = 0; i < 12; i++) assert.equal((await say(anna, cid, 'on')).status, 201);
  assert.equal(receiver.received.length, 22);
  await elsewhere.wait(2, (r) => r.type === 'hook.failing');
  // Set anew, it is asked at once.
  receiver.answer = ok;
  await setHook(scene.server, receiver.url);
  assert.equal((await say(anna, cid, 'anew')).status, 201);
  assert.equal(receiver.received.length, 23);
  const told = elsewhere.received.filter((r) => r.type.startsWith('hook.')).map((r) => r.type);
  assert.deepEqual(told, ['hook.failing', 'hook.recovered', 'hook.failing']);
  await scene.server('DELETE', beforeSend);
});

test('hooks#bounds: at most a hundred calls of an environment are under way, and all messages arrive', async () => {
  let [open, most] = [0, 0];
  let isHolding = true;
  const held: (() => void)[] = [];
  receiver.answer = (received, res) => {
    most = Math.max(most, ++open);
    res.on('close', () => (open -= 1));
    if (!isHolding) return ok(received, res);
    held.push(() => ok(received, res));
    if (held.length < 100) return;
    // Whoever could come beyond the bound has had the time to do so when the neighbour has its answer.
    void say(nora, theirs, 'meanwhile').then(() => {
      isHolding = false;
      for (const answer of held) answer();
    });
  };
  const nora = await neighbour.actor();
  const { id: theirs } = await neighbour.group(nora, []);
  await setHook(scene.server, receiver.url, { timeoutMs: 3_000 });
  const people = await Promise.all(Array.from({ length: 15 }, () => scene.actor()));
  const { id: cid } = await scene.group(people[0]!, people.slice(1));
  const sending = people.flatMap((by) => Array.from({ length: 10 }, (_, i) => say(by, cid, `m ${i}`)));
  const answers = await Promise.all(sending);
  assert.deepEqual(new Set(answers.map((a) => a.status)), new Set([201]));
  assert.ok(most <= 100, `${most} at once`);
  await scene.server('DELETE', beforeSend);
});

test('hooks#circuit: calls that wait for a place are not made once the circuit has opened (T6.5)', async () => {
  const held: (() => void)[] = [];
  let isHolding = true;
  receiver.answer = (received, res) => {
    const fail = (): void => status(500)(received, res);
    if (!isHolding) return fail();
    if (held.push(fail) < 100) return;
    isHolding = false;
    for (const answer of held) answer();
  };
  await setHook(scene.server, receiver.url, { onFailure: 'reject' });
  const asked = receiver.received.length;
  const people = await Promise.all(Array.from({ length: 15 }, () => scene.actor()));
  const { id: cid } = await scene.group(people[0]!, people.slice(1));
  const sending = people.flatMap((by) => Array.from({ length: 20 }, (_, i) => say(by, cid, `m ${i}`)));
  for (const answer of await Promise.all(sending)) assertError(answer, 503, 'hook_unavailable');
  // A failure gives its place to the next call; the tenth opens the circuit.
  const calls = receiver.received.length - asked;
  assert.ok(calls < 200, `${calls} of 300 calls were made`);
  await scene.server('DELETE', beforeSend);
});

test('hooks#isolation: edits that wait for the hook hold no turn and no connection, and of two for one version one wins', async () => {
  const anna = await scene.actor();
  const { id: cid } = await scene.group(anna, []);
  const ids: string[] = [];
  for (let i = 0; i < 12; i++) ids.push((await scene.send(anna, cid)).id as string);
  const held: (() => void)[] = [];
  let most = 0;
  receiver.answer = (received, res) => {
    held.push(() => ok(received, res));
    most = Math.max(most, held.length);
    res.on('close', () => held.shift());
  };
  await setHook(scene.server, receiver.url);
  const asked = receiver.received.length;
  // An environment has six turns: of those who held one, no more would come as far as the hook.
  const edit = (id: string, text: string) =>
    anna.api(
      'PATCH',
      `/v1/messages/${id}`,
      { text, expectedVersion: 1 },
      { 'Idempotency-Key': randomUUID() },
    );
  const edits = [...ids, ids[0]!].map((id, i) => edit(id, `edited ${i}`));
  await receiver.wait(asked + 13);
  assert.equal((await scene.server('GET', `/v1/conversations/${cid}`)).status, 200);
  for (const answer of [...held]) answer();
  const answers = await Promise.all(edits);
  assert.ok(most > 6, `${most} were asked about at once`);
  const [first, last] = [answers[0]!.status, answers[12]!.status].sort();
  assert.deepEqual([first, last], [200, 409]);
  assert.deepEqual(new Set(answers.slice(1, 12).map((a) => a.status)), new Set([200]));
  await scene.server('DELETE', beforeSend);
});

test('hooks#failures (T6.6): of 1,000 sends through a hook that is killed in the middle of its answers, none is lost or doubled', async () => {
  const people = await Promise.all(Array.from({ length: 10 }, () => scene.actor()));
  for (const onFailure of ['reject', 'allow'] as const) {
    const { id: cid } = await scene.group(people[0]!, people.slice(1));
    let hook = await startReceiver();
    const port = Number(new URL(hook.url).port);
    // It dies with half an answer to one and none to the others that wait, and is started again.
    let killed = 0;
    let restarted = Promise.resolve();
    const dying: Answer = (received, res) => {
      if (hook.received.length % 40 !== 0 || killed === 6) return ok(received, res);
      partly(res, '{"act');
      killed += 1;
      const dead = hook;
      restarted = dead.close().then(async () => {
        hook = await startReceiver(port);
        hook.answer = dying;
      });
    };
    hook.answer = dying;
    await setHook(scene.server, hook.url, { onFailure, timeoutMs: 1_000, servers: true });
    const send = async (by: Actor, clientMsgId: string): Promise<string | null> => {
      const sent = { senderId: by.id, clientMsgId, text: clientMsgId };
      const answer = await scene.server('POST', `/v1/conversations/${cid}/messages`, sent);
      if (answer.status === 201) return answer.body.id as string;
      assertError(answer, 503, 'hook_unavailable');
      assert.equal(onFailure, 'reject');
      return null;
    };
    const wanted = people.flatMap((by) =>
      Array.from({ length: 100 }, () => ({ by, clientMsgId: randomUUID() })),
    );
    const done = new Map<string, string>();
    let left = wanted;
    for (let round = 0; left.length > 0; round++) {
      assert.ok(round < 100, `${left.length} are left`);
      for (let i = 0; i < left.length; i += 100) {
        await Promise.all(
          left.slice(i, i + 100).map(async ({ by, clientMsgId }) => {
            const id = await send(by, clientMsgId);
            if (id !== null) done.set(clientMsgId, id);
          }),
        );
        await restarted;
        // The circuit lets a call try again.
        time.advance(5_000);
      }
      left = left.filter(({ clientMsgId }) => !done.has(clientMsgId));
      if (onFailure === 'allow') assert.equal(left.length, 0, 'nothing is refused');
    }
    assert.ok(killed > 1, `killed ${killed} times`);
    for (const { by, clientMsgId } of wanted.filter((_, i) => i % 50 === 0))
      assert.equal(await send(by, clientMsgId), done.get(clientMsgId), 'a repetition gets the original');
    const all: { id: string; seq: number; text: string }[] = [];
    for (let before = ''; ; before = `&before=${all.at(-1)!.seq}`) {
      const { body } = await people[0]!.api('GET', `/v1/conversations/${cid}/messages?limit=200${before}`);
      all.push(...body.data);
      if (!body.hasMore) break;
    }
    assert.deepEqual(new Map(all.map((m) => [m.text, m.id])), done);
    assert.equal(all.length, wanted.length);
    await hook.close();
  }
  await scene.server('DELETE', beforeSend);
});
