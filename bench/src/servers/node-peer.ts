import { fileURLToPath } from 'node:url';
import { lineOf, start } from '../children.ts';
import type { WireName } from '../load/messages.ts';
import { countRows, query } from './postgres.ts';
import type { Database } from './postgres.ts';
import { accountsOf } from './server.ts';
import type { Server, ServerName } from './server.ts';

/** The servers written for the comparison, in peers/. */

interface Options {
  name: ServerName;
  label: string;
  script: URL;
  wire: WireName;
  args?: string[];
  /** Where messages are stored; without it they are not. */
  database?: () => Promise<Database>;
}

const table = `CREATE TABLE IF NOT EXISTS messages (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, room text NOT NULL, sender text NOT NULL, client_msg_id text NOT NULL,
  text text NOT NULL, created_at timestamptz NOT NULL DEFAULT now())`;

export const createNodePeer = ({ name, label, script, wire, args = [], database }: Options): Server => ({
  name,
  label,
  durable: database !== undefined,
  async start() {
    const store = await database?.();
    if (store) {
      await store.create('socketio');
      await query(store.config('socketio'), table);
    }
    const child = start(process.execPath, [fileURLToPath(script), ...args], {
      env: { PATH: process.env['PATH'] ?? '', ...(store ? { DATABASE_URL: store.url('socketio') } : {}) },
    });
    const [, port] = await lineOf(child, /listening on (\d+)/);
    return {
      wire,
      port: Number(port),
      roots: store ? [child.pid, store.pid] : [child.pid],
      gateway: child.pid,
      accounts: (plan) =>
        Promise.resolve(
          accountsOf(
            plan,
            (index) => `${plan.name}-r${index}`,
            () => '',
          ),
        ),
      ...(store ? { stored: () => countRows(store.config('socketio'), 'messages') } : {}),
      stop: () => child.stop(),
    };
  },
});
