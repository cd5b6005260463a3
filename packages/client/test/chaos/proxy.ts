import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Random } from './random.ts';

/** A TCP proxy between one client and whichever node is behind it, which misbehaves on request. */
export interface FaultyProxy {
  url: string;
  /** Cuts every connection. */
  cut(): void;
  /** Ends one direction of every connection. */
  halfClose(): void;
  /** Lets nothing through for a while, connections stay open. */
  stall(ms: number): void;
  /** Everything takes this much longer. */
  delay(ms: number): void;
  /** Each chunk cuts its connection with this probability, and is lost. */
  lose(probability: number): void;
  /** No faults from now on. */
  heal(): void;
  close(): Promise<void>;
}

export async function startProxy(target: () => number | null, random: Random): Promise<FaultyProxy> {
  const pairs = new Set<{ client: Socket; server: Socket }>();
  let delayMs = 0;
  let stalledUntil = 0;
  let loss = 0;

  /** In order: a chunk never overtakes the one before it. */
  function pipe(from: Socket, to: Socket): void {
    let last = Promise.resolve();
    let waiting = 0;
    let dueAt = 0;
    const after = (act: () => void): void => {
      // A delay is a longer way, not a narrower one: what comes together leaves together.
      dueAt = Math.max(dueAt, Date.now() + delayMs, stalledUntil);
      if (dueAt <= Date.now() && waiting === 0) return act();
      const due = dueAt;
      waiting++;
      last = last.then(async () => {
        const wait = due - Date.now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        waiting--;
        act();
      });
    };
    from.on('data', (chunk) => {
      if (loss > 0 && random.chance(loss)) {
        from.destroy();
        to.destroy();
      } else after(() => void to.write(chunk));
    });
    from.on('end', () => after(() => void to.end()));
    from.on('error', () => to.destroy());
    from.on('close', () => after(() => void to.destroy()));
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    const port = target();
    if (port === null) return client.destroy();
    const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const pair = { client, server: upstream };
    pairs.add(pair);
    client.on('close', () => pairs.delete(pair));
    pipe(client, upstream);
    pipe(upstream, client);
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => {
      for (const { client, server: upstream } of pairs) {
        client.destroy();
        upstream.destroy();
      }
    },
    halfClose: () => {
      for (const { client, server: upstream } of pairs) (random.chance(0.5) ? client : upstream).end();
    },
    stall: (ms) => (stalledUntil = Date.now() + ms),
    delay: (ms) => (delayMs = ms),
    lose: (probability) => (loss = probability),
    heal: () => {
      loss = 0;
      delayMs = 0;
      stalledUntil = 0;
    },
    close: () =>
      new Promise((resolve) => {
        for (const { client, server: upstream } of pairs) {
          client.destroy();
          upstream.destroy();
        }
        server.close(() => resolve());
      }),
  };
}
