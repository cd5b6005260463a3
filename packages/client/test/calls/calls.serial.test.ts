import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { mediaPort, startMediaService } from '../../../server/test/calls/media-service.ts';
import { use, useService } from '../../../server/test/support/use.ts';
import { person, reload, startBrowsers } from './browser.ts';
import type { Person } from './browser.ts';
import { hasFirefox, startFirefox } from './firefox.ts';
import { startNetwork } from './network.ts';
import type { Network } from './network.ts';

/** calls#frames, in real Chromium with fake devices: what is asked for is media that arrives. */

let turn: ChildProcess | undefined;
let turnLog = '';
after(() => turn?.kill('SIGKILL'));

async function startTurn(): Promise<Record<string, string>> {
  const port = await mediaPort(1);
  const secret = 'a secret of the test';
  // A page that is closed leaves its relays to their lifetime of ten minutes: there are enough for all tests.
  const relays = await mediaPort(200);
  // The configuration of docs/calls.md, without TLS and on loopback.
  const folder = await mkdtemp(join(tmpdir(), 'parley-turn-'));
  after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(
    join(folder, 'turnserver.conf'),
    `listening-ip=127.0.0.1
relay-ip=127.0.0.1
listening-port=${port}
min-port=${relays}
max-port=${relays + 199}
realm=parley
use-auth-secret
static-auth-secret=${secret}
denied-peer-ip=0.0.0.0-255.255.255.255
allowed-peer-ip=127.0.0.1
allow-loopback-peers
no-multicast-peers
no-tls
no-dtls
no-cli
log-file=stdout
verbose
`,
  );
  turn = spawn('turnserver', ['-c', join(folder, 'turnserver.conf')], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  turn.stdout!.on('data', (lines) => (turnLog = `${turnLog}${lines}`.slice(-8_000)));
  return { CHAT_TURN_URLS: `turn:127.0.0.1:${port}?transport=udp`, CHAT_TURN_SECRET: secret };
}

const { service, scene, server } = useService({
  start: async (env) =>
    startMediaService({ ...env, ...(await startTurn()), CHAT_MEDIA_CODECS: 'h264,vp9,av1' }),
});
const browsers = use(startBrowsers, (b) => b.close());

const someone = (actor?: Person['actor'], at: { url: string } = service) =>
  person(browsers, at, scene, actor);
const shown = async (of: Person) => (await of.shown())!;
const view = async (of: Person, whom: Person) =>
  (await shown(of)).participants.find((p) => p.userId === whom.actor.id)!;
const connected = (one: Person) =>
  one.until('connected', async () => (await one.shown())?.state === 'connected');
const close = (...people: Person[]) => Promise.all(people.map((p) => p.tab.close()));

/** Two people in a call of theirs. */
async function pair(
  kind: 'audio' | 'video',
  options = {},
  network?: Network,
): Promise<[Person, Person, string]> {
  const [a, b] = await Promise.all([someone(undefined, network), someone(undefined, network)]);
  if (network) for (const one of [a, b]) await one.through(network.offset);
  const { id: cid } = await scene.direct(a.actor, b.actor);
  const id = await a.start(cid, kind, options);
  await b.until('ringing', async () => (await b.ringing()).includes(id));
  await b.accept(options);
  await Promise.all([connected(a), connected(b)]);
  return [a, b, id];
}

describe('calls#frames, with media', () => {
  it('1:1 audio and video over UDP: pictures and sound arrive on both sides; mute, remote mute, camera, devices', async () => {
    const [a, b, id] = await pair('video');
    await Promise.all([a.growing(), b.growing()]);
    for (const one of [a, b]) assert.equal((await one.received()).protocol, 'udp');
    await b.until('joined', async () => (await view(b, a)).tracks === 'audio video');
    const { body } = await server('GET', `/v1/calls/${id}`);
    assert.deepEqual(
      [body.status, ...body.participants.map((p: any) => p.state)],
      ['active', 'joined', 'joined'],
    );
    const { isLocal, inCall, audioMuted, videoMuted } = await view(a, a);
    assert.deepEqual([isLocal, inCall, audioMuted, videoMuted], [true, true, false, false]);
    // The fake microphone beeps.
    await a.until('speaking', async () => {
      const { speaking, audioLevel } = await view(a, b);
      return speaking && audioLevel > 0;
    });
    await a.until('an active speaker', async () => (await shown(a)).activeSpeaker !== null);
    const { activeSpeaker, network } = await shown(a);
    assert.ok([a, b].some(({ actor }) => actor.id === activeSpeaker));
    const { level, reason } = network;
    assert.ok(level >= 1 && level <= 5 && (reason === null) === (level === 5), `${level} ${reason}`);

    await a.mute();
    await b.until('muted', async () => (await view(b, a)).audioMuted);
    await a.unmute();
    await b.until('unmuted', async () => !(await view(b, a)).audioMuted);
    const muted = await server('POST', `/v1/calls/${id}/participants/${a.actor.id}/mute`, { source: 'mic' });
    assert.equal(muted.status, 200);
    for (const one of [a, b])
      await one.until('muted by the server', async () => (await view(one, a)).audioMuted);
    await a.unmute();
    await b.until('unmuted again', async () => !(await view(b, a)).audioMuted);
    await b.growing();

    await a.camera(false);
    await b.until('no picture', async () => (await view(b, a)).tracks === 'audio');
    await a.camera(true);
    await b.until('a picture', async () => (await view(b, a)).tracks === 'audio video');
    await b.growing();
    assert.ok((await a.devices()).includes('mic') && (await a.devices()).includes('camera'));
    assert.match(await a.microphone(1), /Fake/);
    await b.growing();
    const [chosen, used] = await a.speaker();
    assert.deepEqual(used, [chosen], 'the sound of the other comes out there');

    await b.leave();
    await a.until('ended', async () => (await shown(a)).state === 'ended');
    assert.equal((await shown(a)).endReason, 'completed');
    await close(a, b);
  });

  it('over TCP alone', async () => {
    const [a, b] = await pair('video', { tcp: true });
    await Promise.all([a.growing(), b.growing()]);
    for (const one of [a, b]) assert.equal((await one.received()).protocol, 'tcp');
    await close(a, b);
  });

  it('over TURN alone', async () => {
    const [a, b] = await pair('audio', { relay: true });
    await Promise.all([a.growing(false), b.growing(false)]);
    for (const one of [a, b]) assert.equal((await one.received()).type, 'relay');
    assert.deepEqual(
      (await a.test()).map(({ route, works, problem }) => [route, works, problem]),
      ['udp', 'tcp', 'turn'].map((route) => [route, true, null]),
      `and a test of the connection finds all three ways; the relay's log:\n${turnLog}`,
    );
    await close(a, b);
  });

  it('a network that is cut for 10 s, chat and media, heals by itself', async () => {
    const media = { first: Number(service.env['CHAT_MEDIA_PORT']), count: 2 };
    const network = await startNetwork({ chat: service.port, media, port: await mediaPort(2) });
    const [a, b, id] = await pair('audio', {}, network);
    await Promise.all([a.growing(false), b.growing(false)]);
    network.cut();
    const cut = delay(10_000);
    for (const one of [a, b]) {
      await one.until('lost', async () => (await shown(one)).state === 'reconnecting');
      await one.until('a restart of ICE', async () => (await one.asked('call.restart')) > 0);
    }
    await cut;
    network.mend();
    await Promise.all([connected(a), connected(b)]);
    await Promise.all([a.growing(false), b.growing(false)]);
    assert.equal((await server('GET', `/v1/calls/${id}`)).body.status, 'active');
    await close(a, b);
    network.close();
  });

  it('H264, VP9 and AV1 where the service has them: each sends what it was asked to, and gets what the others send', async () => {
    const codecs = ['h264', 'vp9', 'av1'] as const;
    const people = await Promise.all(codecs.map(() => someone()));
    for (const one of people) await one.small();
    const [a, ...rest] = people as [Person, ...Person[]];
    const { id: cid } = await scene.group(
      a.actor,
      rest.map((p) => p.actor),
    );
    const id = await a.start(cid, 'video', { codec: codecs[0] });
    for (const [i, one] of rest.entries()) {
      await one.until('ringing', async () => (await one.ringing()).includes(id));
      await one.accept({ codec: codecs[i + 1]! });
    }
    // A browser that cannot encode one sends VP8 instead.
    const sent = await Promise.all(
      codecs.map(async (name) =>
        (await a.sends(`video/${name.toUpperCase()}`)) ? name.toUpperCase() : 'VP8',
      ),
    );
    assert.ok(sent.includes('VP9') && sent.includes('AV1'), String(sent));
    for (const [i, one] of people.entries())
      await one.until(`all but ${sent[i]}`, async () => {
        const wanted = sent.filter((_, k) => k !== i).map((name) => `video/${name}`);
        return String(await one.codecs()) === String(wanted.sort());
      });
    await close(...people);
  });

  it('a picture in a codec that a device does not know is told from a camera that is off, and the rest goes on', async () => {
    const [a, b] = await Promise.all([someone(), someone()]);
    await b.forgetCodec('video/VP9');
    const { id: cid } = await scene.direct(a.actor, b.actor);
    const id = await a.start(cid, 'video', { codec: 'vp9' });
    await b.until('ringing', async () => (await b.ringing()).includes(id));
    await b.accept();
    await b.until('a picture that cannot be shown', async () => (await view(b, a)).videoUnsupported);
    assert.deepEqual(await b.unsupported(), [`${a.actor.id} camera`]);
    const { tracks, videoMuted } = await view(b, a);
    assert.deepEqual([tracks, videoMuted], ['audio', false]);
    await Promise.all([a.growing(), b.growing(false)]);
    await a.camera(false);
    await b.until('a camera that is off', async () => {
      const now = await view(b, a);
      return !now.videoUnsupported && now.videoMuted;
    });
    await close(a, b);
  });

  it('four people with simulcast: each chooses how large it gets the others; a screen is shared', async () => {
    const people = await Promise.all([someone(), someone(), someone(), someone()]);
    const [a, b, ...rest] = people as [Person, Person, Person, Person];
    const { id: cid } = await scene.group(
      a.actor,
      people.slice(1).map((p) => p.actor),
    );
    const id = await a.start(cid, 'video');
    // All at once: on a slow machine it would ring in vain for whoever comes last.
    const answer = async (one: Person): Promise<void> => {
      await one.until('ringing', async () => (await one.ringing()).includes(id));
      await one.accept();
    };
    await Promise.all([b, ...rest].map(answer));
    await Promise.all(people.map(connected));
    for (const one of people)
      await one.until('three others', async () => (await one.received()).sources >= 6);
    await Promise.all(people.map((p) => p.growing()));
    await a.quality(b.actor.id, 'low');
    await a.until('a small picture', async () => {
      const height = await a.height(b.actor.id);
      return height > 0 && height <= 180;
    });
    await a.quality(b.actor.id, 'medium');
    await a.until('a larger picture', async () => (await a.height(b.actor.id)) > 180);
    const [c] = rest as [Person, Person];
    await a.quality(b.actor.id, 'off');
    await a.until('no more pictures of one', async () => {
      const [one, other] = [await a.pictures(b.actor.id), await a.pictures(c.actor.id)];
      await a.until('pictures of another', async () => (await a.pictures(c.actor.id)) > other + 5);
      return (await a.pictures(b.actor.id)) === one;
    });
    // By itself: as large as it is shown.
    await a.attach(b.actor.id, 200);
    await a.until('a small picture by itself', async () => {
      const height = await a.height(b.actor.id);
      return height > 0 && height <= 180;
    });
    await a.attach(b.actor.id, 700);
    await a.until('a larger one by itself', async () => (await a.height(b.actor.id)) > 180);
    await a.share();
    for (const one of [b, ...rest])
      await one.until('a screen', async () => (await view(one, a)).tracks.includes('screen'));
    await b.growing();
    // The sound of three people, and that of the screen.
    await b.until('the sound of the screen', async () => (await b.received()).sounds === 4);
    await a.unshare();
    await b.until('no screen', async () => !(await view(b, a)).tracks.includes('screen'));
    await close(...people);
  });

  it('a page that is loaded anew is back in its call; a second device stops ringing; what cannot be received at first comes later', async () => {
    const [a, b] = await Promise.all([someone(), someone()]);
    const second = await someone(b.actor);
    const { id: cid } = await scene.direct(a.actor, b.actor);
    const id = await a.start(cid, 'audio');
    for (const one of [b, second]) await one.until('ringing', async () => (await one.ringing()).includes(id));
    // More failures than tries: the media is opened anew by itself.
    await b.fail('call.layers', 4);
    await b.accept();
    await second.until('no ringing', async () => (await shown(second)).endedHere === 'answered_elsewhere');
    await b.until('all failures', async () => (await b.failing()) === 0);
    await Promise.all([connected(a), connected(b)]);
    await Promise.all([a.growing(false), b.growing(false)]);
    await reload(b);
    assert.equal(await b.rejoin(), id);
    await connected(b);
    await Promise.all([a.growing(false), b.growing(false)]);
    await close(a, b, second);
  });

  it('kill -9 of the media worker: the call goes on on another one', async () => {
    const [a, b, id] = await pair('audio');
    await Promise.all([a.growing(false), b.growing(false)]);
    await Promise.all([a.forgetStates(), b.forgetStates()]);
    const killed = Date.now();
    for (const pid of workersOf(service.process.pid!)) process.kill(pid, 'SIGKILL');
    await Promise.all([a, b].map((one) => one.until('lost', () => one.was('reconnecting'))));
    await Promise.all([connected(a), connected(b)]);
    assert.ok(Date.now() - killed < 10_000, `it took ${Date.now() - killed} ms`);
    await Promise.all([a.growing(false), b.growing(false)]);
    assert.equal((await server('GET', `/v1/calls/${id}`)).body.status, 'active');
    await close(a, b);
  });

  it('calls#errors: without a microphone nobody rings; without a camera it is an audio call', async () => {
    const [a, b] = await Promise.all([someone(), someone()]);
    const { id: cid } = await scene.direct(a.actor, b.actor);
    const refuse = (kind: string, name: string) =>
      a.tab.evaluate(
        ([denied, error]) => {
          const { mediaDevices } = navigator;
          const real = MediaDevices.prototype.getUserMedia.bind(mediaDevices);
          mediaDevices.getUserMedia = (wanted) =>
            wanted && denied! in wanted ? Promise.reject(new DOMException('no', error)) : real(wanted);
        },
        [kind, name],
      );
    for (const [name, code] of [
      ['NotAllowedError', 'media_permission_denied'],
      ['NotFoundError', 'media_device_not_found'],
      ['NotReadableError', 'media_device_busy'],
    ] as const) {
      await refuse('audio', name);
      const rejects = (device: string) =>
        assert.rejects(a.start(cid, 'video'), (e: Error) => {
          assert.match(e.message, new RegExp(`${code}: .*${device}`));
          return true;
        });
      await rejects('microphone');
      await refuse('video', name);
      if (code !== 'media_permission_denied') await rejects('camera');
    }
    assert.deepEqual((await a.actor.api('GET', `/v1/calls?conversationId=${cid}`)).body.data, []);
    await refuse('video', 'NotAllowedError');
    const id = await a.start(cid, 'video');
    assert.deepEqual(await a.errors(), ['media_permission_denied']);
    await b.until('ringing', async () => (await b.ringing()).includes(id));
    await b.accept();
    await connected(b);
    await b.until('sound alone', async () => (await view(b, a)).tracks === 'audio');
    await close(a, b);
  });
});

if (hasFirefox)
  describe('docs/calls.md, Browsers: Firefox and Chromium in one call', () => {
    const firefox = use(startFirefox, (f) => f.close());

    it('pictures and sound arrive on both sides, and what Firefox is asked to send in VP9 is VP8 in three layers', async () => {
      const [a, b] = await Promise.all([
        person({ newTab: () => firefox.newTab(), url: browsers.url }, service, scene),
        someone(),
      ]);
      const { id: cid } = await scene.direct(a.actor, b.actor);
      const id = await a.start(cid, 'video', { codec: 'vp9' });
      await b.until('ringing', async () => (await b.ringing()).includes(id));
      await b.accept();
      await Promise.all([connected(a), connected(b)]);
      await Promise.all([a.growing(), b.growing()]);
      assert.deepEqual(await a.layers(), ['video/VP8', 'video/VP8', 'video/VP8']);
      assert.deepEqual(await b.codecs(), ['video/VP8']);
      await a.mute();
      await b.until('muted', async () => (await view(b, a)).audioMuted);
      await a.leave();
      await b.until('ended', async () => (await shown(b)).state === 'ended');
      await close(a, b);
    });

    it('a picture in H264 is shown, or said to be one that cannot be shown', async () => {
      const [a, b] = await Promise.all([
        someone(),
        person({ newTab: () => firefox.newTab(), url: browsers.url }, service, scene),
      ]);
      const { id: cid } = await scene.direct(a.actor, b.actor);
      const id = await a.start(cid, 'video', { codec: 'h264' });
      await b.until('ringing', async () => (await b.ringing()).includes(id));
      await b.accept();
      await Promise.all([connected(a), connected(b)]);
      await b.until('a picture, or a word of it', async () => {
        const [{ videoUnsupported }, pictures] = [await view(b, a), await b.pictures(a.actor.id)];
        return videoUnsupported !== pictures > 0;
      });
      await close(a, b);
    });
  });
else console.log('!!! FIREFOX WAS NOT THERE (firefox-esr): CALLS WERE TESTED WITH CHROMIUM ALONE.');

/** The media workers that a process has started. */
function workersOf(pid: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8');
      const isWorker = readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('mediasoup-worker');
      return isWorker && status.includes(`PPid:\t${pid}\n`) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}
