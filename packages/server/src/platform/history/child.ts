import { createHook, executionAsyncResource } from 'node:async_hooks';
import { closeSync, existsSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { createOutbound } from '../outbound/outbound.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { createResolver } from '../outbound/resolver.ts';
import { pooledRandom } from '../clock.ts';
import {
  answerBytes,
  askBytes,
  beatId,
  frame,
  frameReader,
  mainOf,
  receivedBytes,
  settingsId,
} from './messages.ts';
import type { Ask, Header, Settings, Told } from './messages.ts';
import { migrateHistory, openHistory } from './open.ts';
import { HistoryError } from './port.ts';
import type { History, MessageRecord } from './port.ts';
import { messageFields } from './record.ts';
import { messageBytes, tooMuch } from './shared.ts';
import type { HistoryDeps } from './shared.ts';

/**
 * The process of customers' databases, started by remote.ts. All drivers run here, so whatever a database sends can
 * only stop this process. Three descriptors come with it: 3 is the channel to the service, 4 a file that always holds
 * the number of the history that is being worked for, so that the service knows whose database stopped the process, and
 * 5 ends when the service ends.
 */

const [channelFd, markFd, lifeFd] = [3, 4, 5];

// What the service inherited itself, and never opened, it may have passed on: only such files survive a start.
const ownFds = existsSync('/proc/self/fdinfo') ? readdirSync('/proc/self/fdinfo').map(Number) : [];
for (const fd of ownFds) if (fd > lifeFd && isInherited(fd)) closeSync(fd);

function isInherited(fd: number): boolean {
  try {
    const flags = /^flags:\s*0*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & 0o2000000) === 0;
  } catch {
    // It was open for the list alone.
    return false;
  }
}

// A thread of its own ends this process with the service even while a driver keeps all of its time.
new Worker(
  `const life = new (require('node:net').Socket)({ fd: ${lifeFd} });
   life.on('error', () => undefined).on('close', () => process.kill(process.pid, 'SIGKILL')).resume();`,
  { eval: true, resourceLimits: { maxOldGenerationSizeMb: 8 } },
);

/** An open history. */
interface Opened {
  history: Promise<History>;
  /** The handles of its connections, and how many bytes each had received when they were last counted. */
  handles: { handle: WeakRef<Handle>; seen: number }[];
  received: number;
  /** The same at the last beat. */
  receivedBefore: number;
  /** How many bytes it may receive in all, by what it has been asked so far. */
  allowed: number;
  /** What the requests under way allow. */
  underWay: number;
  /** Ends the requests under way. */
  stop: PromiseWithResolvers<never>;
}

interface Handle {
  bytesRead?: number;
  close(): void;
}

const histories = new Map<number, Opened>();

// ── For whom this process works ──

const worksFor = Symbol('history');
type Resource = Record<symbol, number | undefined>;
let current = 0;
let marked = 0;
const mark = Buffer.alloc(4);

function enter(history: number): void {
  current = history;
  if (history === marked) return;
  marked = history;
  mark.writeUInt32BE(history);
  writeSync(markFd, mark, 0, 4, 0);
}

// Whatever begins while this process works for a history goes on for it: callbacks, timers, sockets.
createHook({
  init(_id, type, _trigger, resource) {
    if (current === 0) return;
    (resource as Resource)[worksFor] = current;
    // TLS is read from a handle of TCP too.
    if (type === 'TCPWRAP')
      histories.get(current)?.handles.push({ handle: new WeakRef(resource as Handle), seen: 0 });
  },
  before: () => enter((executionAsyncResource() as Resource)[worksFor] ?? 0),
  after: () => (current = 0),
}).enable();

/** Not process.exit, which waits for the threads of a driver: a database may keep them busy with hashing for hours. */
const endNow = (): void => void process.kill(process.pid, 'SIGKILL');

// The mark says whose it was, and the word behind it that this is why the process ends.
process.on('uncaughtException', () => {
  mark.writeUInt32BE(1);
  writeSync(markFd, mark, 0, 4, 4);
  endNow();
});
// A promise that a driver forgot does no harm: the request has its deadline.
process.on('unhandledRejection', () => undefined);

/** Rounds of a login; a server that asks for billions would keep a thread for hours. */
const mostRounds = 1_000_000;
const derive = crypto.subtle.deriveBits.bind(crypto.subtle);
Object.defineProperty(crypto.subtle, 'deriveBits', {
  value: (how: { iterations?: number }, ...rest: never[]) =>
    (how.iterations ?? 0) > mostRounds
      ? Promise.reject(new HistoryError('failed', undefined, 'its login has too many rounds'))
      : derive(how as never, ...(rest as unknown as [never, never])),
});

// ── How much databases send ──

const countMs = 50;
/** What a connection may receive besides answers: greetings, notices, news of its cluster. */
const unaskedBytes = 1_048_576;

function count(opened: Opened): void {
  opened.handles = opened.handles.filter((one) => {
    const { bytesRead } = one.handle.deref() ?? {};
    opened.received += Math.max(0, (bytesRead ?? one.seen) - one.seen);
    one.seen = bytesRead ?? one.seen;
    return one.handle.deref() !== undefined;
  });
}

setInterval(() => {
  for (const [number, opened] of histories) {
    count(opened);
    if (opened.received <= opened.allowed) continue;
    histories.delete(number);
    for (const { handle } of opened.handles) handle.deref()?.close();
    opened.stop.reject(tooMuch());
    opened.history.then((history) => history.close()).catch(() => undefined);
  }
}, countMs);

// ── Requests ──

let outbound: Outbound;
let seconds = 0;
const random = pooledRandom();

function configure({ allowPrivate, dnsServers }: Settings): void {
  const names = createResolver({ now: () => performance.now(), servers: dnsServers });
  outbound = createOutbound({ allowPrivate, resolve: names.resolve });
}

async function run(number: number, ask: Ask): Promise<unknown> {
  if (ask.op === 'open' || ask.op === 'migrate') {
    const { tenant, env } = ask;
    const deps: HistoryDeps = { outbound, tenant, env, random, seconds: () => seconds };
    if (ask.op === 'migrate') return migrateHistory(ask.source, deps);
    const opened = histories.get(number)!;
    opened.history = openHistory(ask.source, deps);
    return { writesAtOnce: (await opened.history).writesAtOnce };
  }
  const opened = histories.get(number);
  if (!opened) throw new HistoryError('unreachable', undefined);
  const history = await opened.history;
  switch (ask.op) {
    case 'test':
      return history.test();
    case 'get':
      return plain(await history.get(ask.id));
    case 'read': {
      const { data, hasMore } = await history.read(ask.range);
      return { data: data.map(plain), hasMore };
    }
    case 'write':
      await history.write(ask.records, { rewrite: ask.rewrite });
      return {};
    case 'erase':
      await history.erase(ask.erasure);
      return {};
    case 'close':
      await history.close();
      return {};
  }
}

/** Only what a message consists of; of one that is larger than a message can be, its place. */
function plain(message: MessageRecord | null): object | null {
  if (message === null) return null;
  const fields = Object.fromEntries(messageFields.map((name) => [name, (message as never)[name]]));
  return Buffer.byteLength(JSON.stringify(fields)) > messageBytes ? { seq: message.seq } : fields;
}

async function answered(number: number, ask: Ask): Promise<Buffer> {
  if (ask.op === 'open' || ask.op === 'migrate') {
    const stop = Promise.withResolvers<never>();
    stop.promise.catch(() => undefined);
    const history = Promise.reject<History>(new HistoryError('unreachable', undefined));
    histories.set(number, {
      history,
      handles: [],
      received: 0,
      receivedBefore: 0,
      allowed: 0,
      underWay: 0,
      stop,
    });
  }
  const opened = histories.get(number);
  let told: Told;
  try {
    const value = opened ? await bounded(opened, ask, run(number, ask)) : await run(number, ask);
    told = { value };
  } catch (error) {
    told = failed(error instanceof HistoryError ? error : 'what it sent cannot be read');
  }
  if (ask.op === 'close' || ask.op === 'migrate' || (ask.op === 'open' && told.error))
    histories.delete(number);
  const body = Buffer.from(JSON.stringify(told));
  if (body.length <= answerBytes(ask)) return body;
  return Buffer.from(JSON.stringify(failed('what it sent is larger than it can be')));
}

function failed(why: HistoryError | string): Told {
  const { errorClass, message } =
    why instanceof HistoryError ? why : new HistoryError('failed', undefined, why);
  return { error: { errorClass, message } };
}

/** Ends what is asked when the database sends more than it can need. */
async function bounded<T>(opened: Opened, ask: Ask, work: Promise<T>): Promise<T> {
  const bytes = receivedBytes(ask);
  count(opened);
  opened.underWay += bytes;
  opened.allowed = Math.max(opened.allowed, opened.received + unaskedBytes) + bytes;
  try {
    return await Promise.race([work, opened.stop.promise]);
  } finally {
    count(opened);
    opened.underWay -= bytes;
    // What a request did not use is not left for later.
    opened.allowed = Math.min(opened.allowed, opened.received + unaskedBytes + opened.underWay);
  }
}

const channel = new Socket({ fd: channelFd });
const send = (id: number, body: Buffer, history = 0): void => {
  for (const part of frame(id, history, 0, body)) channel.write(part);
};

function onFrame(header: Header, body: Buffer): void {
  if (header.id === settingsId) return configure(JSON.parse(body.toString()) as Settings);
  seconds = header.seconds;
  if (header.id === beatId) {
    enter(0);
    const received = new Map<number, number>();
    for (const [number, opened] of histories) {
      count(opened);
      received.set(number, opened.received - opened.receivedBefore);
      opened.receivedBefore = opened.received;
    }
    const rss = Buffer.alloc(8);
    rss.writeBigUInt64BE(BigInt(process.memoryUsage.rss()));
    return send(beatId, rss, mainOf(received));
  }
  enter(header.history);
  void answered(header.history, JSON.parse(body.toString()) as Ask).then((answer) => send(header.id, answer));
  enter(0);
}

channel.on(
  'data',
  frameReader(() => askBytes, onFrame),
);
// Without the service nothing is left to do, however it ended.
for (const end of ['end', 'error', 'close']) channel.on(end, endNow);
