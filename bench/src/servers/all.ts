import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from '../bench.ts';
import type { Options } from '../options.ts';
import type { Results } from '../results.ts';
import { createCentrifugo, hasCentrifugo } from './centrifugo.ts';
import { createNodePeer } from './node-peer.ts';
import { createParley } from './parley.ts';
import type { Parley } from './parley.ts';
import { startPostgres } from './postgres.ts';
import type { Database } from './postgres.ts';
import type { Server, ServerName } from './server.ts';
import { createEjabberd, createProsody, hasEjabberd, hasProsody, installPeers } from './xmpp.ts';

/** Below the range of outgoing ports, so that no client socket sits on them. */
const ports = { postgres: 25_432, ejabberd: 25_280, prosody: 25_290, centrifugo: 25_300 };

export interface Servers {
  servers: Server[];
  parley: Parley | null;
  database(): Promise<Database>;
  freshParley: Bench['freshParley'];
  stop(): Promise<void>;
}

export function createServers(options: Options, directory: string, results: Results): Servers {
  chmodSync(directory, 0o755); // the peers run as users of their own
  let started: Promise<Database> | undefined;
  const database = () => (started ??= startPostgres(join(directory, 'peers-postgres'), ports.postgres));
  const wanted = (name: ServerName) => options.servers.includes(name);
  if (!options.quick && (wanted('ejabberd') || wanted('prosody'))) {
    const problem = installPeers();
    if (problem) results.note(problem);
  }
  const freshParley: Bench['freshParley'] = (name, env, wrap) =>
    createParley(join(directory, `parley-${name}`), env, wrap);
  const parley = wanted('parley') ? freshParley('main') : null;
  const socketIo = new URL('../peers/socketio.ts', import.meta.url);
  const peers: Server[] = [
    createNodePeer({
      name: 'ws',
      label: 'bare `ws`, in memory',
      script: new URL('../peers/ws.ts', import.meta.url),
      wire: 'plain',
    }),
    createNodePeer({
      name: 'raw',
      label: 'bare loop, coalesced frames, in memory',
      script: new URL('../peers/raw.ts', import.meta.url),
      wire: 'plain',
    }),
    createNodePeer({
      name: 'socketio-group',
      label: 'Socket.IO, group commit',
      script: socketIo,
      wire: 'socketio',
      args: ['group'],
      database,
    }),
    createNodePeer({
      name: 'socketio-row',
      label: 'Socket.IO, a commit per message',
      script: socketIo,
      wire: 'socketio',
      args: ['row'],
      database,
    }),
    createEjabberd(join(directory, 'ejabberd'), ports.ejabberd, database),
    createProsody(join(directory, 'prosody'), ports.prosody, database),
    createCentrifugo({
      name: 'centrifugo',
      label: 'Centrifugo 6, history in memory',
      engine: 'memory',
      directory: join(directory, 'centrifugo'),
      port: ports.centrifugo,
    }),
    createCentrifugo({
      name: 'centrifugo-redis',
      label: 'Centrifugo 6, history in Redis streams',
      engine: 'redis',
      directory: join(directory, 'centrifugo'),
      port: ports.centrifugo,
    }),
  ];
  const present = (name: ServerName): boolean => {
    const known: Partial<Record<ServerName, () => boolean>> = {
      ejabberd: hasEjabberd,
      prosody: hasProsody,
      centrifugo: hasCentrifugo,
      'centrifugo-redis': hasCentrifugo,
    };
    const here = known[name]?.() ?? true;
    if (!here) results.note(`${name} is not installed and was left out.`);
    return here;
  };
  const chosen = peers.filter((p) => wanted(p.name) && present(p.name));
  return {
    servers: parley ? [parley, ...chosen] : chosen,
    parley,
    database,
    freshParley,
    stop: async () => (await started?.catch(() => undefined))?.stop(),
  };
}
