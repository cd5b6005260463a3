import { once } from 'node:events';
import { compressed, packed } from './files.ts';

/** The process of `runBuilder`: builds what the named module builds, and prints it packed. */
const { build } = (await import(process.argv[2]!)) as { build: () => Promise<Map<string, Uint8Array>> };
const files = packed(await compressed(await build()));
if (!process.stdout.write(files)) await once(process.stdout, 'drain');
