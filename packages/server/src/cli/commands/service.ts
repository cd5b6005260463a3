import { resolve } from 'node:path';
import { backUp, passphraseFrom, restore } from '../../backup/backup.ts';
import type { Command, Line } from '../command.ts';
import { fromHere } from '../operation.ts';

const backupFile = async ({ args, env }: Line) => ({
  file: fromHere(env, args['file']!),
  passphrase: await passphraseFrom(env),
});

export const serviceCommands: readonly Command[] = [
  {
    name: 'start',
    summary: 'Runs the service until SIGTERM or Ctrl-C, as npm start does',
    details: [
      'Its settings are environment variables; the page /docs/operations/settings of a running service lists them. The first start creates the data directory.',
    ],
    flags: [
      {
        name: 'force',
        text: 'migrates the store although processes of earlier versions use it, which fail from then on',
      },
    ],
    needs: 'nothing',
    run: async ({ flags }) => {
      const { serve } = await import('../../serve.ts');
      return serve(flags['force'] ? ['--force'] : []);
    },
  },
  {
    name: 'backup',
    summary: 'Writes a consistent copy of all rows, uploaded files and the master key into a new file',
    details: [
      'It may run while the service runs. The file is encrypted if PARLEY_BACKUP_PASSPHRASE (or PARLEY_BACKUP_PASSPHRASE_FILE) is set; otherwise protect it like the master key.',
    ],
    args: [{ name: 'file', text: 'the file to write, which must not exist' }],
    needs: 'store',
    run: async (line) => {
      const where = await backupFile(line);
      const counts = await backUp({ connection: line.connection, dataDir: line.config.dataDir, ...where });
      return { file: where.file, ...counts };
    },
  },
  {
    name: 'restore',
    summary: 'Reads a backup into a new data directory (CHAT_DATA_DIR), with its embedded store',
    args: [{ name: 'file', text: 'the backup' }],
    needs: 'settings',
    run: async (line) => {
      const { dataDir } = line.config;
      const counts = await restore({ dataDir, logger: line.logger, ...(await backupFile(line)) });
      return { restored: resolve(dataDir), ...counts };
    },
  },
  {
    name: 'history check',
    summary: 'Checks a history database or endpoint against the contract',
    details: [
      'The signing secret of an http endpoint is read from HISTORY_SECRET. The command writes under an environment id that nothing else uses.',
    ],
    args: [{ name: 'url', text: 'the database or endpoint' }],
    needs: 'settings',
    run: async (line) => (await import('../check-history.ts')).checkHistory(line),
  },
];
