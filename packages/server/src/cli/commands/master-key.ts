import { dropPreviousKey, newMasterKey, replaceKeyFile } from '../../platform/secrets.ts';
import { rotate, RotationRefused } from '../../reseal/rotate.ts';
import { UsageError } from '../command.ts';
import type { Command } from '../command.ts';
import { requireDataDirectory } from '../store.ts';

const page = 'docs/operations/master-key.md has the steps.';

export const masterKeyCommands: readonly Command[] = [
  {
    name: 'master-key new',
    summary: 'Prints a new master key, or puts one into the data directory',
    details: [
      'Without --write nothing is changed. With --write the key in CHAT_DATA_DIR/master.key becomes master.key.previous, and a new one takes its place: restart the service then, and run parley master-key rotate. ' +
        page,
    ],
    flags: [{ name: 'write', text: 'replaces the key file of the data directory' }],
    needs: 'settings',
    run: async ({ config, flags }) => {
      if (!flags['write']) return { key: newMasterKey() };
      if (config.masterKey)
        throw new UsageError('CHAT_MASTER_KEY is set, so the file in the data directory is not used.');
      await requireDataDirectory(config);
      await replaceKeyFile(config.dataDir);
      return { written: 'master.key', kept: 'master.key.previous' };
    },
  },
  {
    name: 'master-key rotate',
    summary: 'Seals every value of the store with the current master key, while the service runs',
    details: [
      'It needs the new key as CHAT_MASTER_KEY and the older one as CHAT_MASTER_KEY_PREVIOUS (or both in their files), as every process of the service does by then: it refuses while a connected process seals with another key. It may be interrupted and repeated. ' +
        page,
    ],
    needs: 'store',
    run: async ({ ctx, opened, config, json }) => {
      try {
        const done = await rotate(ctx.db, opened, (text) => json || process.stderr.write(`${text}\n`));
        if (!config.masterKey) await dropPreviousKey(config.dataDir);
        return done;
      } catch (error) {
        if (error instanceof RotationRefused) throw new UsageError(error.message);
        throw error;
      }
    },
  },
];
