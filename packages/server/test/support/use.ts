import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { PgDb } from '../../src/platform/postgres/db.ts';
import { runningPostgres } from '../../src/platform/postgres/embedded/index.ts';
import type { Answer, Api } from './api.ts';
import { createScene } from './scene.ts';
import type { Scene } from './scene.ts';
import { startService } from './service.ts';
import type { Service } from './service.ts';
import { sharedService } from './shared-service.ts';

/** Stands for a value that exists later: every use of it goes to what `get` gives at that moment. */
export function lazy<T extends object>(get: () => T): T {
  return new Proxy((() => undefined) as unknown as T, {
    get(_target, key) {
      const value = get();
      const found: unknown = Reflect.get(value, key);
      return typeof found === 'function' ? (found.bind(value) as unknown) : found;
    },
    set: (_target, key, to) => Reflect.set(get(), key, to),
    apply: (_target, _this, args) => Reflect.apply(get() as () => unknown, undefined, args),
  });
}

let earlier: Promise<unknown> = Promise.resolve();

/**
 * A `before` hook that waits for those registered by `use` and `setUp` above it. Node starts the hooks of a file as
 * they are registered, all at the same time.
 */
export function setUp(run: () => unknown): void {
  before(() => {
    const mine = earlier.then(run);
    earlier = mine.catch(() => undefined);
    return mine;
  });
}

/** Starts something before the tests of the file, or of the `describe`, and stops it after them. */
export function use<T extends object>(start: () => Promise<T>, stop: (started: T) => unknown): T {
  let started: T | undefined;
  setUp(async () => {
    started = await start();
  });
  after(async () => {
    if (started) await stop(started);
  });
  return lazy(() => {
    assert.ok(started, 'it is started before the first test: use it in a test or in setUp()');
    return started;
  });
}

/** A second connection to the store under a running service. */
export async function openDb(service: Service): Promise<PgDb> {
  const outside = service.env['DATABASE_URL'];
  const connection = outside ? { connectionString: outside } : await runningPostgres(service.dataDir);
  assert.ok(connection, 'the embedded PostgreSQL answers');
  return new PgDb(connection, { max: 4, onError: () => undefined });
}

type Settings = Record<string, string>;

export interface UsedService {
  service: Service;
  /** Users, conversations and sockets of the environment `dev`. */
  scene: Scene;
  server: Api;
  db: PgDb;
  /** A query whose rows are not typed. */
  sql(text: string, values?: unknown[]): Promise<Record<string, Answer['body']>[]>;
  /** Stops the service, and starts it again on the same data and another port. */
  restart(): Promise<void>;
}

/**
 * The real service, with what speaks to it, for all tests of the file or of the `describe`: there before them, gone
 * after them. All parts may be taken out at once, before anything runs. Without options it is the service of the lane,
 * which other files used before, with new environments: whoever stops it, reads its output or looks at whole tables
 * asks for one to itself.
 */
export function useService(
  options: {
    /** Settings; a function where they depend on something that is started first. */
    env?: Settings | (() => Settings);
    start?: (env: Settings) => Promise<Service>;
    /** A service that nobody else used. */
    own?: true;
  } = {},
): UsedService {
  const isShared = Object.keys(options).length === 0;
  const own = (settings: Settings) => startService({ env: settings });
  const { env = {}, start = isShared ? async () => (await sharedService()) ?? own({}) : own } = options;
  const around = async (service: Service) => ({
    service,
    scene: createScene(service.url),
    db: await openDb(service),
  });
  const running = use(
    async () => around(await start(typeof env === 'function' ? env() : env)),
    async ({ db, service }) => {
      await db.close();
      await service.dispose();
    },
  );
  return {
    service: lazy(() => running.service),
    scene: lazy(() => running.scene),
    server: lazy(() => running.scene.server),
    db: lazy(() => running.db),
    sql: (text, values) => running.db.query(text, values),
    async restart() {
      await running.db.close();
      await running.service.stop();
      Object.assign(running, await around(await running.service.restart()));
    },
  };
}
