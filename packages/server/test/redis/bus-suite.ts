import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Bus } from '../../src/platform/bus/port.ts';
import { until } from './tools.ts';

export interface BusSubject {
  /** Buses of as many nodes of one service, connected. */
  nodes(count: number): Promise<Bus[]>;
}

export interface Heard {
  messages: [channel: string, payload: string][];
  restored: number;
}

export function hear(bus: Bus): Heard {
  const heard: Heard = { messages: [], restored: 0 };
  bus.listen({
    message: (channel, payload) => heard.messages.push([channel, payload]),
    restored: () => heard.restored++,
  });
  return heard;
}

export function busSuite(name: string, subject: BusSubject): void {
  let open: Bus[] = [];
  const nodes = async (count: number): Promise<{ buses: Bus[]; heard: Heard[] }> => {
    const buses = await subject.nodes(count);
    open.push(...buses);
    return { buses, heard: buses.map(hear) };
  };
  afterEach(async () => {
    await Promise.all(open.map((bus) => bus.close()));
    open = [];
  });

  test(`socket#nodes: ${name}: a message reaches every other node that listens, and no other`, async () => {
    const { buses, heard } = await nodes(3);
    await buses[1]!.subscribe(['c:1', 'c:2']);
    await buses[2]!.subscribe(['c:2']);
    await buses[0]!.subscribe(['end']);
    await buses[2]!.subscribe(['end']);
    buses[0]!.publish('c:1', 'one');
    buses[0]!.publish('c:2', 'two {"t":"ü"} \n');
    await until(() => heard[1]!.messages.length === 2 && heard[2]!.messages.length === 1);
    buses[1]!.publish('end', 'x');
    await until(() => heard[0]!.messages.length === 1 && heard[2]!.messages.length === 2);
    assert.deepEqual(
      new Map(heard[1]!.messages),
      new Map([
        ['c:1', 'one'],
        ['c:2', 'two {"t":"ü"} \n'],
      ]),
    );
    assert.deepEqual(heard[2]!.messages, [
      ['c:2', 'two {"t":"ü"} \n'],
      ['end', 'x'],
    ]);
    assert.deepEqual(heard[0]!.messages, [['end', 'x']]);
  });

  test(`socket#nodes: ${name}: a node does not hear itself`, async () => {
    const { buses, heard } = await nodes(2);
    await Promise.all(buses.map((bus) => bus.subscribe(['c:1'])));
    buses[0]!.publish('c:1', 'from 0');
    buses[1]!.publish('c:1', 'from 1');
    await until(() => heard.every((h) => h.messages.length > 0));
    buses[0]!.publish('c:1', 'again');
    await until(() => heard[1]!.messages.length === 2);
    assert.deepEqual(heard[0]!.messages, [['c:1', 'from 1']]);
    assert.deepEqual(heard[1]!.messages, [
      ['c:1', 'from 0'],
      ['c:1', 'again'],
    ]);
  });

  test(`socket#nodes: ${name}: messages of one channel arrive in order`, async () => {
    const { buses, heard } = await nodes(2);
    await buses[1]!.subscribe(['c:1']);
    for (let i = 0; i < 2_000; i++) buses[0]!.publish('c:1', String(i));
    await until(() => heard[1]!.messages.length === 2_000);
    assert.deepEqual(
      heard[1]!.messages.map(([, payload]) => Number(payload)),
      Array.from({ length: 2_000 }, (_, i) => i),
    );
  });

  test(`socket#nodes: ${name}: nothing is heard after unsubscribing, and subscribing twice is once`, async () => {
    const { buses, heard } = await nodes(3);
    await buses[1]!.subscribe(['c:1', 'c:2']);
    await buses[1]!.subscribe(['c:1', 'c:2']);
    await buses[2]!.subscribe(['c:1']);
    buses[1]!.unsubscribe(['c:1']);
    buses[0]!.publish('c:1', 'no');
    buses[0]!.publish('c:2', 'yes');
    // Channels may take different ways: whoever still listens to the first one says when its message has passed.
    await until(() => heard[1]!.messages.length > 0 && heard[2]!.messages.length > 0);
    buses[1]!.unsubscribe(['c:2']);
    await buses[1]!.subscribe(['c:1']);
    buses[0]!.publish('c:2', 'no');
    buses[0]!.publish('c:1', 'again');
    await until(() => heard[1]!.messages.length > 1);
    assert.deepEqual(heard[1]!.messages, [
      ['c:2', 'yes'],
      ['c:1', 'again'],
    ]);
  });

  test(`socket#nodes: ${name}: what is subscribed, left and subscribed at once is heard`, async () => {
    const { buses, heard } = await nodes(2);
    const channels = Array.from({ length: 50 }, (_, i) => `c:${i}`);
    void buses[1]!.subscribe(channels);
    buses[1]!.unsubscribe(channels);
    void buses[1]!.subscribe(channels);
    await buses[1]!.subscribe(channels);
    for (const channel of channels) buses[0]!.publish(channel, 'x');
    await until(() => heard[1]!.messages.length >= 50);
    assert.equal(heard[1]!.messages.length, 50);
  });

  test(`socket#nodes: ${name}: tens of thousands of channels`, async () => {
    const { buses, heard } = await nodes(2);
    const channels = Array.from({ length: 30_000 }, (_, i) => `c:${i}`);
    await buses[1]!.subscribe(channels);
    for (let i = 0; i < channels.length; i += 100) buses[0]!.publish(channels[i]!, String(i));
    await until(() => heard[1]!.messages.length === 300);
    buses[1]!.unsubscribe(channels);
    assert.equal(heard[1]!.restored, 0);
  });
}
