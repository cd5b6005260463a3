import { realtime } from '@parley/protocol';
import { createFeatures } from './compose/features.ts';
import { createLog } from './compose/log.ts';
import { listParts } from './compose/parts.ts';
import { createPlatform } from './compose/platform.ts';
import type { ServiceOptions } from './compose/platform.ts';
import { createRealtime } from './compose/realtime.ts';
import { createTransport } from './compose/transport.ts';
import type { Bootstrapped } from './features/accounts/bootstrap.ts';
import type { Services } from './features/context.ts';
import { prepareStore } from './prepare.ts';

export type { ServiceOptions } from './compose/platform.ts';

export interface Service {
  port: number;
  /** The services that the operations of this process get. */
  services: Services;
  /** What the first start created; null if the store was not empty. */
  first: Bootstrapped | null;
  /** The environments in which anybody can be anybody. */
  open: string[];
  stop(): Promise<void>;
  /** The stop waits for no socket if there is no other node to go to, or if all of them come from this machine. */
  hurry(): void;
}

/** Milliseconds for close handshakes and all that stops after the sockets, so that a stop takes 30 s and not more. */
const afterDrainMs = 4_000;

/** Builds the service floor by floor (compose/), each from those before it, and starts its parts. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, store, logger, drainMs = realtime.drainMs - afterDrainMs, force = false } = options;
  const platform = createPlatform(options);
  const live = createRealtime(platform);
  const log = createLog(platform, live);
  const features = createFeatures(options, platform, log, live);
  const transport = createTransport(platform, log, live, features);
  const { db, logDb, masterKeys, parts, port } = platform;
  const { services } = features;

  let prepared: Awaited<ReturnType<typeof prepareStore>> = { first: null, open: [] };
  const prepare = async (): Promise<void> => {
    const announce = async (key: string): Promise<void> => {
      await Promise.all([db.announce(key), logDb.announce(key)]);
    };
    const onMasterKeys = masterKeys.set;
    prepared = await prepareStore({ store, db, services, config, logger, force, announce, onMasterKeys });
  };
  await parts.start(listParts(platform, log, live, features, transport, { prepare, drainMs }));
  return {
    port: port.get(),
    services,
    ...prepared,
    stop: () => parts.stop(),
    hurry: () => transport.gateway.hurry(),
  };
}
