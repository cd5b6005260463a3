import { createServer } from 'node:http';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

/** Prometheus metrics on a port of their own, off by default. */
export type Metrics = ReturnType<typeof createMetrics>;

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'parley_' });
  // Gauges with the ending of a counter; the same by type stay.
  for (const what of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`parley_nodejs_active_${what}_total`);
  const registers = [registry];
  return {
    registry,
    requestSeconds: new Histogram({
      name: 'parley_request_seconds',
      help: 'Time to answer, by operation and status',
      labelNames: ['operation', 'status'] as const,
      buckets: seconds,
      registers,
    }),
    commitSize: new Histogram({
      name: 'parley_commit_messages',
      help: 'Messages in one group commit',
      buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
      registers,
    }),
    commitSeconds: new Histogram({
      name: 'parley_commit_seconds',
      help: 'Time of one group commit',
      buckets: seconds,
      registers,
    }),
    gauge: (name: string, help: string, read: () => number | Promise<number>): void => {
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          this.set(await read());
        },
      });
    },
    /** The name of a counter ends with `_total`, as Prometheus wants it. */
    counter: <L extends string>(name: `${string}_total`, help: string, labelNames: readonly L[]) =>
      new Counter({ name, help, labelNames, registers }),
  };
}

export function serveMetrics(registry: Registry, host: string, port: number): Promise<() => void> {
  const server = createServer((req, res) => {
    if (req.url !== '/metrics') {
      res.writeHead(404).end();
      return;
    }
    registry.metrics().then(
      (text) => res.writeHead(200, { 'content-type': registry.contentType }).end(text),
      () => res.writeHead(500).end(),
    );
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(() => server.close()));
  });
}
