import type { Command } from '../command.ts';
import { all, environmentId, inEnvironment, readJson, run } from '../operation.ts';
import type { Page } from '../operation.ts';

const provider = {
  name: 'provider',
  text: 'the push provider',
  values: ['fcm', 'apns', 'expo', 'webpush'],
} as const;
const email = { name: 'email', text: 'the e-mail address of the account' } as const;
const slot = { name: 'slot', text: 'the slot of the database', values: ['a', 'b'] } as const;

export const operatorCommands: readonly Command[] = [
  {
    name: 'push list',
    summary: 'Lists the push providers of an environment, without their credentials',
    args: [environmentId],
    needs: 'store',
    run: async (line) => ((await run('push.listCredentials', await inEnvironment(line), {})) as Page).data,
  },
  {
    name: 'push set',
    summary: 'Stores the credentials of a push provider',
    args: [environmentId, provider, { name: 'file', text: 'the credentials as JSON' }],
    needs: 'store',
    run: async (line) => {
      const ctx = await inEnvironment(line);
      const credentials = await readJson(line.env, line.args['file']!);
      return run('push.setCredentials', ctx, { provider: line.args['provider'], credentials });
    },
  },
  {
    name: 'push remove',
    summary: 'Removes the credentials of a push provider',
    args: [environmentId, provider],
    needs: 'store',
    run: async (line) => {
      const named = line.args['provider'];
      await run('push.removeCredentials', await inEnvironment(line), { provider: named });
      return { removed: named };
    },
  },
  {
    name: 'account reset',
    summary: 'Creates a link to set a new password',
    args: [email],
    needs: 'store',
    run: ({ ctx, args }) => run('accounts.reset', ctx, { email: args['email'] }),
  },
  {
    name: 'account sign-out',
    summary: 'Ends all sessions of an account',
    args: [email],
    needs: 'store',
    run: async ({ ctx, args }) => {
      await run('accounts.endSessions', ctx, { email: args['email'] });
      return { signedOut: args['email'] };
    },
  },
  {
    name: 'account drop-second-factor',
    summary: 'Removes the one-time codes and passkeys of an account',
    args: [email],
    needs: 'store',
    run: async ({ ctx, args }) => {
      await run('accounts.removeSecondFactor', ctx, { email: args['email'] });
      return { dropped: args['email'] };
    },
  },
  {
    name: 'storage list',
    summary: 'Lists the slots of customers’ databases and their state',
    args: [{ ...environmentId, optional: true }],
    needs: 'store',
    run: async ({ ctx, args }) =>
      ((await run('storage.listSlots', ctx, { environmentId: args['env id'] })) as Page).data,
  },
  {
    name: 'storage set-aside',
    summary: 'Stops connecting to this customer’s database',
    args: [environmentId, slot],
    needs: 'store',
    run: async (line) => {
      await run('storage.setAside', await inEnvironment(line), { slot: line.args['slot'] });
      return { setAside: line.args['slot'] };
    },
  },
  {
    name: 'storage retry',
    summary: 'Uses this customer’s database again',
    args: [environmentId, slot],
    needs: 'store',
    run: async (line) => {
      await run('storage.takeBack', await inEnvironment(line), { slot: line.args['slot'] });
      return { retried: line.args['slot'] };
    },
  },
  {
    name: 'audit list',
    summary: 'Lists changes with their authors, newest first',
    args: [{ ...environmentId, optional: true }],
    flags: [
      { name: 'action', value: 'operation', text: 'only this operation, such as keys.revoke' },
      { name: 'actor', value: 'name', text: 'only changes by this person or program' },
    ],
    columns: ['at', 'environmentId', 'actor', 'action', 'target', 'ip'],
    needs: 'store',
    run: ({ ctx, args, flags: { action, actor } }) =>
      all((cursor) =>
        run('audit.list', ctx, { limit: '200', cursor, environmentId: args['env id'], action, actor }),
      ),
  },
];
