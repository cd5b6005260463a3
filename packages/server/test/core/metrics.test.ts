import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { it } from 'node:test';
import { act, done, start } from '../calls/tools.ts';
import { startMediaService } from '../calls/media-service.ts';
import { receiving } from '../calls/rtp.ts';
import { until } from '../cluster/nodes.ts';
import { metricNames, repositoryFile } from '../operations/files.ts';
import { freePort } from '../storage/process.ts';
import { useService } from '../support/use.ts';

const port = await freePort();
const { scene, server } = useService({
  start: (env) => startMediaService({ ...env, CHAT_METRICS_PORT: String(port) }, 1),
});

const scrape = () => fetch(`http://127.0.0.1:${port}/metrics`);
const metrics = async () => (await scrape()).text();
/** The value of a series; undefined if there is none. */
const value = (text: string, series: string): number | undefined => {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
};

it('calls are measured: started by kind, ended by reason, those with media here, their participants, workers', async () => {
  const [a, b] = await Promise.all([scene.person(), scene.person()]);
  const { id: cid } = await scene.group(a.actor, [b.actor]);
  const before = await metrics();
  assert.equal(value(before, 'parley_media_workers'), 1);
  assert.equal(value(before, 'parley_media_calls'), 0);
  const { id: callId } = await start(a.actor, cid, { kind: 'video' });
  for (const { actor, socket } of [a, b]) {
    const { media } = await done(
      actor.api('POST', `/v1/calls/${callId}/join?sessionId=${socket.hello.sessionId}`),
    );
    await socket.request('call.open', { callId, device: media.device, rtpCapabilities: receiving });
  }
  const during = await metrics();
  assert.equal(value(during, 'parley_calls_started_total{kind="video"}'), 1);
  assert.equal(value(during, 'parley_media_calls'), 1);
  assert.equal(value(during, 'parley_media_participants'), 2);
  assert.equal(value(during, 'parley_calls_ended_total{reason="ended_by_server"}'), undefined);
  await done(server('POST', `/v1/calls/${callId}/end`));
  const declined = await start(a.actor, cid);
  await done(act(b.actor, declined.id, 'decline'));
  // The media node is told after the answer.
  await until(async () => value(await metrics(), 'parley_media_calls') === 0);
  const after = await metrics();
  assert.equal(value(after, 'parley_calls_started_total{kind="audio"}'), 1);
  assert.equal(value(after, 'parley_calls_ended_total{reason="ended_by_server"}'), 1);
  assert.equal(value(after, 'parley_calls_ended_total{reason="declined"}'), 1);
  assert.equal(value(after, 'parley_media_participants'), 0);
});

it('Prometheus takes /metrics without a complaint: names, units, help and types (promtool check metrics)', async () => {
  const response = await scrape();
  assert.match(response.headers.get('content-type')!, /^text\/plain; version=0\.0\.4/);
  const input = await response.text();
  for (const name of ['parley_sink_records_total', 'parley_push_total', 'parley_webhook_attempts_total'])
    assert.match(input, new RegExp(`^# HELP ${name} .+\n# TYPE ${name} counter$`, 'm'));
  const checked = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' });
  assert.deepEqual([checked.stdout + checked.stderr, checked.status], ['', 0]);
});

it('docs/operations/metrics.md lists every metric with its type, and nothing else', async () => {
  const shown = [...(await metrics()).matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(
    ([, name, type]) => `${name} ${type}`,
  );
  const rows = repositoryFile('docs/operations/metrics.md').matchAll(
    /^\| (`parley_.*?) \| (\w+) \| (\w+) \|/gm,
  );
  const listed = [...rows].flatMap(([, names, type]) =>
    [...metricNames(names!)].map((name) => `${name} ${type}`),
  );
  assert.deepEqual(listed.sort(), shown.sort());
});
