import { readdirSync } from 'node:fs';
import { version } from '../version.ts';

const migrations = readdirSync(new URL('../../../migrations/', import.meta.url));

/** The newest migration of this program. */
const schema = Math.max(...migrations.map((name) => Number(/^(\d{4})_/.exec(name)?.[1] ?? 0)));

/**
 * What the connections of a process are called in PostgreSQL. A newer program finds by it which versions are running: the name
 * goes with the connection, however the process ends.
 */
export const programName = `parley ${version} schema ${schema}`;

/** With the fingerprint of the master key that the process seals with, once it is known. */
export const keyedName = (fingerprint: string): string => `${programName} key ${fingerprint}`;

/** Names of connections that serve; versions before these names are plain `parley`. The group is the schema. */
export const programPattern = '^parley(?: \\S+ schema (\\d+)(?: key [0-9a-f]+)?)?$';
