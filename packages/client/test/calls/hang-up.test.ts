import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallHandle } from '../../src/calls/call.ts';
import type { CallHost } from '../../src/calls/host.ts';
import { ParleyError } from '../../src/errors.ts';
import type { Call } from '../../src/types.ts';
import { settle } from '../fake-clock.ts';

/** What becomes of devices and requests that are on their way when a call ends. */

const call = (state: string, status = 'active') =>
  ({
    id: 'call_1',
    kind: 'audio',
    status,
    participants: [{ userId: 'ann', state }],
  }) as unknown as Call;

/** A promise that the test fulfils. */
function later<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}

interface Track {
  kind: string;
  stopped: boolean;
  stop(): void;
}
const track = (kind: string): Track => ({
  kind,
  stopped: false,
  stop() {
    this.stopped = true;
  },
});

function world(state: 'incoming' | 'connecting') {
  const posts: string[] = [];
  const answers: Record<string, Promise<unknown>> = { leave: Promise.resolve({ call: call('left') }) };
  const host: CallHost = {
    wire: {
      session: () => 's1',
      request: () => Promise.reject(new ParleyError('disconnected')),
      http: async (_method: string, path: string) => {
        const action = path.split('/').at(-1)!;
        posts.push(action);
        return answers[action] as never;
      },
    },
    me: () => 'ann',
    online: () => true,
    onError: () => undefined,
    onUnsupported: () => undefined,
    onEnd: () => undefined,
    onJoined: () => undefined,
  };
  const opened = later<Track[]>();
  /** Each of them gives what is there, so many tracks at most. */
  const open = (most: number) => async () => {
    const tracks = (await opened.promise).splice(0, most);
    return { getTracks: () => tracks };
  };
  Object.defineProperty(navigator, 'mediaDevices', {
    value: { getUserMedia: open(1), getDisplayMedia: open(2) },
    configurable: true,
  });
  return { posts, answers, opened, handle: new CallHandle(host, call('joined'), state) };
}

for (const [name, use] of Object.entries<(handle: CallHandle) => Promise<void>>({
  camera: (handle) => handle.setCamera(true),
  microphone: (handle) => handle.setMicrophone('m2'),
  screen: (handle) => handle.shareScreen(),
  'microphone to join with': (handle) => handle.prepare({}),
}))
  test(`calls#end: a ${name} that opens after the call has ended is closed at once`, async () => {
    const { handle, opened } = world('connecting');
    const using = use(handle).catch((e: ParleyError) => assert.equal(e.code, 'call_ended'));
    await settle();
    handle.endedBy(call('left', 'ended'), undefined);
    const tracks = [track('video'), track('audio')].slice(0, name === 'screen' ? 2 : 1);
    opened.resolve([...tracks]);
    await using;
    assert.ok(tracks.every(({ stopped }) => stopped));
  });

test('calls#answer: of two answers at once no microphone stays open', async () => {
  const { handle, opened, answers } = world('incoming');
  answers['join'] = Promise.reject(new ParleyError('call_ended'));
  answers['join'].catch(() => undefined);
  const tracks = [track('audio'), track('audio')];
  const both = [handle.accept(), handle.accept()];
  opened.resolve([...tracks]);
  await Promise.allSettled(both);
  assert.ok(tracks.every(({ stopped }) => stopped));
});

/** A call that was accepted, and whose join is on its way. */
async function joining() {
  const { handle, opened, answers, posts } = world('incoming');
  const joined = later<unknown>();
  answers['join'] = joined.promise;
  opened.resolve([track('audio')]);
  const accepting = handle.accept();
  while (!posts.includes('join')) await settle();
  return { handle, joined, accepting, posts };
}

test('calls#end: who hangs up while the answer to the join is on its way leaves after it', async () => {
  const { handle, joined, accepting, posts } = await joining();
  await handle.leave();
  assert.deepEqual(posts, ['join', 'leave']);
  joined.resolve({ call: call('joining'), media: {} });
  await assert.rejects(accepting, { code: 'call_ended' });
  assert.deepEqual(posts, ['join', 'leave', 'leave']);
});

test('calls#device: a join that another device has overtaken does not end the call there', async () => {
  const { handle, joined, accepting, posts } = await joining();
  handle.endedBy(call('joining'), 'moved');
  joined.resolve({ call: call('joining'), media: {} });
  await assert.rejects(accepting, { code: 'call_ended' });
  assert.deepEqual(posts, ['join']);
});
